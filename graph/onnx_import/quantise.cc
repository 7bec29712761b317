#include "graph/onnx_import/quantise.h"

#include <algorithm>
#include <optional>

#include "fmt/format.h"

#include "graph/onnx_import/handler.h"
#include "graph/onnx_import/window_attributes.h"

// Quantised operators: integer contractions, and scaling composed from element-wise operators.
namespace hone::graph::onnx_import {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::UnaryOp;
using Shape = std::vector<int64_t>;

/// A scale or zero point so that it broadcasts over `x`: one element, one per element of `axis`, or
/// one per block of `block` elements of it.
ValueId Fitted(NodeImport& n, ValueId parameter, ValueId x, int64_t axis, int64_t block) {
  if (parameter == kNoValue || !n.ok()) return parameter;
  const Shape shape = n.ShapeOf(x);
  const Shape own = n.ShapeOf(parameter);
  if (n.TypeOf(parameter).NumElements() == 1 && own.size() <= 1) return n.Reshape(parameter, {});
  const auto a = static_cast<size_t>(n.Axis(axis, shape.size()));
  if (!n.ok()) return kNoValue;
  if (own.size() == 1 && own[0] == shape[a]) {
    Shape spread(shape.size(), 1);
    spread[a] = own[0];
    return n.Reshape(parameter, std::move(spread));
  }
  Shape blocks = shape;
  if (block > 0) blocks[a] = shape[a] / block + (shape[a] % block != 0 ? 1 : 0);
  if (block <= 0 || own != blocks) {
    n.Invalid(fmt::format("scale or zero point {} does not fit {}", ToText(n.TypeOf(parameter)),
                          ToText(n.TypeOf(x))));
    return kNoValue;
  }
  if (!n.CheckTable(shape[a], 1, "the block of each element")) return kNoValue;
  Shape indices;
  for (int64_t i = 0; i < shape[a]; ++i) indices.push_back(i / block);
  return n.Emit("Gather", {parameter, n.Int64s(indices)}, {{"axis", static_cast<int64_t>(a)}});
}

int64_t BlockSize(NodeImport& n) { return n.opset() >= 21 ? n.Int("block_size", 0) : 0; }

}  // namespace

// The cast saturates.
ValueId Quantised(NodeImport& n, ValueId x, ValueId scale, ValueId zero, DType to) {
  const DType type = ir::SizeOf(to) > 2 ? DType::kF64 : DType::kF32;
  const ValueId scaled = n.Div(n.Cast(x, DType::kF32), n.Cast(scale, DType::kF32));
  ValueId rounded = n.Cast(n.Unary(UnaryOp::kRound, scaled), type);
  if (zero != kNoValue) rounded = n.Add(rounded, n.Cast(zero, type));
  return n.Cast(rounded, to);
}

ValueId Dequantised(NodeImport& n, ValueId x, ValueId scale, ValueId zero) {
  ValueId wide = n.Cast(x, DType::kI32);
  if (zero != kNoValue) wide = n.Sub(wide, n.Cast(zero, DType::kI32));
  return n.Mul(n.Cast(wide, DType::kF32), n.Cast(scale, DType::kF32));
}

namespace {

void QuantizeLinear(NodeImport& n) {
  const ValueId x = n.Input(0);
  const int64_t axis = n.opset() >= 13 ? n.Int("axis", 1) : 1;
  const int64_t block = BlockSize(n);
  n.Int("saturate", 1);
  if (n.opset() >= 23) n.Int("precision", 0);
  const ValueId zero = n.OptionalInput(2);
  DType to = zero == kNoValue ? DType::kU8 : n.DTypeOf(zero);
  if (n.opset() >= 21 && n.HasAttribute("output_dtype") && n.Int("output_dtype", 0) != 0)
    to = n.ElementType("output_dtype", to);
  if (!ir::IsInteger(to))
    return n.Invalid(fmt::format("the result must be of an integer type, not {}", ToString(to)));
  const ValueId scale = Fitted(n, n.Input(1), x, axis, block);
  n.SetOutput(0, Quantised(n, x, scale, Fitted(n, zero, x, axis, block), to));
}

void DequantizeLinear(NodeImport& n) {
  const ValueId x = n.Input(0);
  const int64_t axis = n.opset() >= 13 ? n.Int("axis", 1) : 1;
  const int64_t block = BlockSize(n);
  const ValueId scale = n.Input(1);
  if (!n.ok()) return;
  DType to = n.DTypeOf(scale);
  if (n.opset() >= 23 && n.HasAttribute("output_dtype") && n.Int("output_dtype", 0) != 0)
    to = n.ElementType("output_dtype", to);
  if (!ir::IsInteger(n.DTypeOf(x)))
    return n.Invalid(fmt::format("it takes integers, not {}", ToString(n.DTypeOf(x))));
  const ValueId zero = Fitted(n, n.OptionalInput(2), x, axis, block);
  n.SetOutput(0, n.Cast(Dequantised(n, x, Fitted(n, scale, x, axis, block), zero), to));
}

}  // namespace

namespace {

/// Whether all elements are known and are this.
bool IsKnownToBe(NodeImport& n, ValueId value, int64_t each) {
  const ConstantPtr known = n.Known(value);
  if (known == nullptr || !ir::IsInteger(known->type.dtype)) return false;
  const std::vector<int64_t> values = known->AsInt64s();
  return std::ranges::all_of(values, [&](int64_t v) { return v == each; });
}

/// Known weights as signed bytes around zero: with zero points in the middle of their type they are
/// that, or become it. kNoValue: they are not.
ValueId SignedWeights(NodeImport& n, ValueId w, ValueId zero) {
  const ConstantPtr known = n.Known(w);
  if (!n.ok() || known == nullptr) return kNoValue;
  if (known->type.dtype == DType::kI8 && IsKnownToBe(n, zero, 0)) return w;
  if (known->type.dtype != DType::kU8 || !IsKnownToBe(n, zero, 128)) return kNoValue;
  std::vector<std::byte> bytes(known->bytes.begin(), known->bytes.end());
  for (std::byte& byte : bytes) byte ^= std::byte{128};
  return n.Constant(MakeConstant({DType::kI8, known->type.shape}, std::move(bytes)));
}

bool IsKnownScalar(NodeImport& n, ValueId value) {
  return n.Known(value) != nullptr && n.TypeOf(value).NumElements() == 1;
}

/// The operator's inputs: data, its scale and zero point, weights and theirs, then those of the
/// result. Where they are known they are written as QuantizeLinear and DequantizeLinear around the
/// operator are, so that all that holds for these holds here too: the data and the weights as f32.
struct Dequantisation {
  ValueId data = kNoValue, weights = kNoValue;
};
std::optional<Dequantisation> Dequantised(NodeImport& n, ValueId weight_scale) {
  const ValueId w = SignedWeights(n, n.Input(3), n.Input(5));
  const bool known = IsKnownScalar(n, n.Input(1)) && IsKnownScalar(n, n.Input(2)) &&
                     IsKnownScalar(n, n.Input(6)) && IsKnownScalar(n, n.Input(7));
  if (w == kNoValue || !known || n.Known(weight_scale) == nullptr) return std::nullopt;
  return Dequantisation{
      Dequantised(n, n.Input(0), n.Reshape(n.Input(1), {}), n.Reshape(n.Input(2), {})),
      Dequantised(n, w, weight_scale, kNoValue)};
}

ValueId QuantisedResult(NodeImport& n, ValueId y) {
  const ValueId zero = n.Reshape(n.Input(7), {});
  return Quantised(n, y, n.Reshape(n.Input(6), {}), zero, n.DTypeOf(zero));
}

}  // namespace

DynamicBytes DynamicallyQuantised(NodeImport& n, ValueId x) {
  Shape axes;
  for (size_t i = 0; i < n.RankOf(x); ++i) axes.push_back(static_cast<int64_t>(i));
  const auto extreme = [&](const char* fn, BinaryOp with_zero) {
    const ValueId value =
        n.Emit("Reduce", {x}, {{"fn", std::string(fn)}, {"axes", axes}, {"keepdims", int64_t{0}}});
    return n.Binary(with_zero, value, 0.0);
  };
  const ValueId low = extreme("min", BinaryOp::kMin);
  const ValueId high = extreme("max", BinaryOp::kMax);
  // Where all values are zero the scale is one, as in ONNX Runtime, and no division by zero.
  const ValueId width = n.Sub(high, low);
  const ValueId scale = n.Select(n.Binary(BinaryOp::kEq, width, 0.0), n.Scalar(n.DTypeOf(width), 1),
                                 n.Binary(BinaryOp::kDiv, width, 255.0));
  const ValueId shifted = n.Div(n.Unary(UnaryOp::kNeg, low), scale);
  const ValueId limited = n.Binary(BinaryOp::kMin, n.Binary(BinaryOp::kMax, shifted, 0.0), 255.0);
  const ValueId zero = n.Cast(n.Unary(UnaryOp::kRound, limited), DType::kU8);
  return {Quantised(n, x, scale, zero, DType::kU8), scale, zero};
}

ValueId IntegerProduct(NodeImport& n, ValueId a, ValueId b, ValueId zero_a, ValueId zero_b) {
  if (!n.CheckRank(a, 1, 6, "the first operand") || !n.CheckRank(b, 1, 6, "the second operand"))
    return kNoValue;
  const Shape left = n.ShapeOf(a);
  const Shape right = n.ShapeOf(b);
  if (left.size() == 1) a = n.Reshape(a, {1, left[0]});
  if (right.size() == 1) b = n.Reshape(b, {right[0], 1});
  // A known zero point is a tensor of one an element, so that it is no number of the Workload's.
  const auto flat = [&](ValueId zero, int64_t count) {
    if (zero == kNoValue || IsKnownToBe(n, zero, 0)) return kNoValue;
    const int64_t own = n.TypeOf(zero).NumElements();
    zero = n.Reshape(zero, {own});
    return own == 1 && n.Known(zero) != nullptr ? n.Expand(zero, {count}) : zero;
  };
  if (!n.ok()) return kNoValue;
  const int64_t rows = left.size() == 1 ? 1 : left[left.size() - 2];
  const int64_t columns = right.size() == 1 ? 1 : right.back();
  const ValueId y = n.Emit("MatMulInteger", {a, b, flat(zero_a, rows), flat(zero_b, columns)});
  if (!n.ok()) return kNoValue;
  Shape shape = n.ShapeOf(y);
  if (right.size() == 1) shape.pop_back();
  if (left.size() == 1) shape.erase(shape.end() - (right.size() == 1 ? 1 : 2));
  return n.Reshape(y, std::move(shape));
}

namespace {

void DynamicQuantizeLinear(NodeImport& n) {
  const DynamicBytes q = DynamicallyQuantised(n, n.Input(0));
  n.SetOutput(0, q.bytes);
  n.SetOutput(1, q.scale);
  n.SetOutput(2, q.zero);
}

void MatMulInteger(NodeImport& n) {
  const ValueId a = n.Input(0);
  n.SetOutput(0, IntegerProduct(n, a, n.Input(1), n.OptionalInput(2), n.OptionalInput(3)));
}

/// An i32 sum with the scales of its factors as a quantised result.
ValueId Requantised(NodeImport& n, ValueId sum, ValueId scale_a, ValueId scale_b, ValueId scale_y,
                    ValueId zero_y) {
  const ValueId factor = n.Div(n.Mul(scale_a, scale_b), scale_y);
  const ValueId scaled = n.Mul(n.Cast(sum, DType::kF32), n.Cast(factor, DType::kF32));
  const ValueId rounded = n.Add(n.Unary(UnaryOp::kRound, scaled), n.Cast(zero_y, DType::kF32));
  return n.Cast(rounded, n.DTypeOf(zero_y));
}

/// A scale of b per column needs no more than its own axis; of a per row it stands in a column.
ValueId PerRow(NodeImport& n, ValueId scale) {
  const Shape shape = n.ShapeOf(scale);
  return shape.size() == 1 && shape[0] > 1 ? n.Reshape(scale, {shape[0], 1}) : scale;
}

void QLinearMatMul(NodeImport& n) {
  const ValueId a = n.Input(0);
  const bool plain = n.RankOf(a) >= 2 && n.RankOf(n.Input(3)) == 2 &&
                     (n.TypeOf(n.Input(4)).NumElements() == 1 || n.RankOf(n.Input(4)) == 1);
  const bool one = n.TypeOf(n.Input(4)).NumElements() == 1;
  const auto real =
      plain ? Dequantised(n, one ? n.Reshape(n.Input(4), {}) : n.Input(4)) : std::nullopt;
  if (real)
    return n.SetOutput(0, QuantisedResult(n, n.Emit("MatMul", {real->data, real->weights})));
  const ValueId sum = IntegerProduct(n, a, n.Input(3), n.Input(2), n.Input(5));
  const Shape shape = n.ShapeOf(sum);
  const ValueId y = Requantised(n, sum, PerRow(n, n.Input(1)), n.Input(4), PerRow(n, n.Input(6)),
                                PerRow(n, n.Input(7)));
  n.SetOutput(0, n.Reshape(y, shape));
}

Attributes ConvAttributes(NodeImport& n, const WindowAttributes& window) {
  return {{"strides", window.strides},
          {"dilations", window.dilations},
          {"pads", window.pads},
          {"group", n.Int("group", 1)},
          {"layout", std::string("nchw")}};
}

void ConvInteger(NodeImport& n) {
  const ValueId x = n.Input(0);
  const ValueId w = n.Input(1);
  const WindowAttributes window = ReadWindow(n, x, w);
  n.SetOutput(0, n.Emit("ConvInteger", {x, w, n.OptionalInput(2), n.OptionalInput(3)},
                        ConvAttributes(n, window)));
}

/// Scales or bias of output channels, over weights or results of this rank.
ValueId OverChannels(NodeImport& n, ValueId v, size_t rank) {
  const int64_t count = n.TypeOf(v).NumElements();
  if (count == 1 || !n.ok()) return n.Reshape(v, {});
  Shape shape(rank, 1);
  shape[0] = count;
  return n.Reshape(v, std::move(shape));
}

void QLinearConv(NodeImport& n) {
  const ValueId x = n.Input(0);
  const ValueId w = n.Input(3);
  const WindowAttributes window = ReadWindow(n, x, w);
  if (const auto real = Dequantised(n, OverChannels(n, n.Input(4), n.RankOf(w)))) {
    std::vector<ValueId> inputs = {real->data, real->weights};
    if (n.Has(8))
      inputs.push_back(n.Mul(n.Cast(n.Input(8), DType::kF32),
                             n.Mul(n.Reshape(n.Input(1), {}),
                                   n.Reshape(n.Input(4), {n.TypeOf(n.Input(4)).NumElements()}))));
    return n.SetOutput(0, QuantisedResult(n, n.Emit("Conv", inputs, ConvAttributes(n, window))));
  }
  ValueId sum = n.Emit("ConvInteger", {x, w, n.Input(2), n.Input(5)}, ConvAttributes(n, window));
  const auto per_channel = [&](ValueId v) { return OverChannels(n, v, n.RankOf(sum) - 1); };
  if (n.Has(8)) sum = n.Add(sum, per_channel(n.Input(8)));
  n.SetOutput(0, Requantised(n, sum, per_channel(n.Input(1)), per_channel(n.Input(4)),
                             per_channel(n.Input(6)), per_channel(n.Input(7))));
}

constexpr Handler kHandlers[] = {
    {"QuantizeLinear", 10, 2, 3, 1, QuantizeLinear},
    {"DequantizeLinear", 10, 2, 3, 1, DequantizeLinear},
    {"DynamicQuantizeLinear", 11, 1, 1, 3, DynamicQuantizeLinear},
    {"MatMulInteger", 10, 2, 4, 1, MatMulInteger},
    {"QLinearMatMul", 10, 8, 8, 1, QLinearMatMul},
    {"ConvInteger", 10, 2, 4, 1, ConvInteger},
    {"QLinearConv", 10, 8, 9, 1, QLinearConv},
};

}  // namespace

std::span<const Handler> QuantiseHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
