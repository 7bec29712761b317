#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hone::graph::onnx_quantise {

/// What a product's operands become.
enum class Scheme : uint8_t {
  kInt8,         ///< u8 data by ranges that calibration found, i8 weights by columns
  kInt8Dynamic,  ///< u8 data by the range of each run, i8 weights by columns
  kInt8Weights,  ///< f32 data, i8 weights by columns
  kInt4Weights,  ///< f32 data, weights of 4 bits in groups along the sum
  kBf16,         ///< both rounded to bf16
  kF16,          ///< f32 data, weights stored in f16
};

/// "int8", "int8-dynamic", …; nothing for another word.
std::optional<Scheme> ParseScheme(std::string_view text);
std::string_view ToText(Scheme scheme);

/// Whether the data that a product reads are rounded, not only its weights.
bool RoundsData(Scheme scheme);
/// Whether products are sums of integers, which must not leave 32 bits.
inline bool IsIntegerProduct(Scheme scheme) {
  return scheme == Scheme::kInt8 || scheme == Scheme::kInt8Dynamic;
}

}  // namespace hone::graph::onnx_quantise
