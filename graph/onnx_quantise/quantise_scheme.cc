#include "graph/onnx_quantise/quantise_scheme.h"

#include <array>
#include <utility>

#include "base/status.h"

namespace hone::graph::onnx_quantise {
namespace {

constexpr std::array<std::pair<Scheme, std::string_view>, 6> kSchemes = {{
    {Scheme::kInt8, "int8"},
    {Scheme::kInt8Dynamic, "int8-dynamic"},
    {Scheme::kInt8Weights, "int8-weights"},
    {Scheme::kInt4Weights, "int4-weights"},
    {Scheme::kBf16, "bf16"},
    {Scheme::kF16, "f16"},
}};

}  // namespace

std::optional<Scheme> ParseScheme(std::string_view text) {
  for (const auto& [scheme, name] : kSchemes) {
    if (name == text) return scheme;
  }
  return std::nullopt;
}

std::string_view ToText(Scheme scheme) {
  for (const auto& [each, name] : kSchemes) {
    if (each == scheme) return name;
  }
  HONE_UNREACHABLE();
}

bool RoundsData(Scheme scheme) { return IsIntegerProduct(scheme) || scheme == Scheme::kBf16; }

}  // namespace hone::graph::onnx_quantise
