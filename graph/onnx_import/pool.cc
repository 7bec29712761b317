#include <numeric>

#include "fmt/format.h"

#include "graph/onnx_import/handler.h"
#include "graph/onnx_import/window_attributes.h"

// Pooling over windows and over the whole image.
namespace hone::graph::onnx_import {
namespace {

Attributes PoolAttributes(NodeImport& n, const WindowAttributes& window, std::string_view kind) {
  return {{"kind", std::string(kind)},    {"kernel", window.kernel},
          {"strides", window.strides},    {"dilations", window.dilations},
          {"pads", window.pads},          {"ceil_mode", int64_t{n.Int("ceil_mode", 0) != 0}},
          {"layout", std::string("nchw")}};
}

void MaxPool(NodeImport& n) {
  const ValueId x = n.Input(0);
  const WindowAttributes window = ReadWindow(n, x, kNoValue);
  Attributes attributes = PoolAttributes(n, window, "max");
  const int64_t storage_order = n.Int("storage_order", 0);
  if (!n.Wants(1)) return n.SetOutput(0, n.Emit("Pool", {x}, std::move(attributes)));
  attributes["storage_order"] = storage_order;
  const std::vector<ValueId> made = n.EmitMany("Pool", {x}, std::move(attributes), 2);
  n.SetOutput(0, made[0]);
  n.SetOutput(1, made[1]);
}

void AveragePool(NodeImport& n) {
  const ValueId x = n.Input(0);
  Attributes attributes = PoolAttributes(n, ReadWindow(n, x, kNoValue), "average");
  attributes["count_include_pad"] = int64_t{n.Int("count_include_pad", 0) != 0};
  n.SetOutput(0, n.Emit("Pool", {x}, std::move(attributes)));
}

int64_t NormOrder(NodeImport& n) {
  const int64_t p = n.Int("p", 2);
  if (p < 1) n.Invalid(fmt::format("attribute p is {}, not 1 or more", p));
  return p;
}

void LpPool(NodeImport& n) {
  const ValueId x = n.Input(0);
  Attributes attributes = PoolAttributes(n, ReadWindow(n, x, kNoValue), "lp");
  attributes["p"] = NormOrder(n);
  n.SetOutput(0, n.Emit("Pool", {x}, std::move(attributes)));
}

/// A reduction of `x` over all spatial axes.
ValueId ReduceImage(NodeImport& n, ValueId x, std::string_view fn) {
  if (!n.CheckRank(x, 3, 6, "the input")) return kNoValue;
  std::vector<int64_t> axes(n.RankOf(x) - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return n.Emit("Reduce", {x}, {{"fn", std::string(fn)}, {"axes", axes}, {"keepdims", int64_t{1}}});
}

void GlobalAveragePool(NodeImport& n) { n.SetOutput(0, ReduceImage(n, n.Input(0), "mean")); }
void GlobalMaxPool(NodeImport& n) { n.SetOutput(0, ReduceImage(n, n.Input(0), "max")); }

void GlobalLpPool(NodeImport& n) {
  const ValueId x = n.Input(0);
  const int64_t p = NormOrder(n);
  if (p <= 2) return n.SetOutput(0, ReduceImage(n, x, p == 1 ? "l1" : "l2"));
  // In f32 at least: powers of 16-bit floats soon leave their range.
  const ir::DType dtype = n.DTypeOf(x);
  const ir::DType wide = ir::SizeOf(dtype) < 4 ? ir::DType::kF32 : dtype;
  const auto exponent = static_cast<double>(p);
  const ValueId powers =
      n.Binary(ir::BinaryOp::kPow, n.Unary(ir::UnaryOp::kAbs, n.Cast(x, wide)), exponent);
  const ValueId root = n.Binary(ir::BinaryOp::kPow, ReduceImage(n, powers, "sum"), 1 / exponent);
  n.SetOutput(0, n.Cast(root, dtype));
}

constexpr Handler kHandlers[] = {
    {"MaxPool", 1, 1, 1, 2, MaxPool},
    {"AveragePool", 1, 1, 1, 1, AveragePool},
    {"LpPool", 2, 1, 1, 1, LpPool},
    {"GlobalAveragePool", 1, 1, 1, 1, GlobalAveragePool},
    {"GlobalMaxPool", 1, 1, 1, 1, GlobalMaxPool},
    {"GlobalLpPool", 2, 1, 1, 1, GlobalLpPool},
};

}  // namespace

std::span<const Handler> PoolHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
