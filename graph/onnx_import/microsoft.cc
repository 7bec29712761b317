#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"

#include "graph/onnx_import/handler.h"
#include "graph/onnx_import/microsoft_layers.h"
#include "graph/onnx_import/quantise.h"
#include "graph/onnx_import/window_attributes.h"

// Operators of com.microsoft that ONNX Runtime's quantisers and optimiser write.
namespace hone::graph::onnx_import {
namespace {

using ir::BinaryOp;
using ir::DType;
using Shape = std::vector<int64_t>;

/// A scale or zero point of one element as a scalar; absent ones stay so.
ValueId Scalar(NodeImport& n, ValueId parameter) {
  return parameter == kNoValue ? parameter : n.Reshape(parameter, {});
}

ValueId DequantisedInput(NodeImport& n, size_t i) {
  const ValueId x = n.Input(i);
  const ValueId scale = Scalar(n, n.Input(i + 1));
  return Dequantised(n, x, scale, Scalar(n, n.OptionalInput(i + 2)));
}

/// `x` by the scale in input i and the zero point after it, where there is one; as `to` where not.
void SetQuantised(NodeImport& n, ValueId x, size_t i, DType to) {
  const ValueId scale = Scalar(n, n.Input(i));
  const ValueId zero = Scalar(n, n.OptionalInput(i + 1));
  n.SetOutput(0, Quantised(n, x, scale, zero, zero == kNoValue ? to : n.DTypeOf(zero)));
}

/// Add and Mul of bytes: a, its scale and zero point, the same of b, those of the result.
template <BinaryOp kFn>
void QLinearBinary(NodeImport& n) {
  const DType to = n.DTypeOf(n.Input(0));
  SetQuantised(n, n.Binary(kFn, DequantisedInput(n, 0), DequantisedInput(n, 3)), 6, to);
}

void QLinearConcat(NodeImport& n) {
  if (n.num_inputs() % 3 != 2)
    return n.Invalid("each part needs a tensor, a scale and a zero point");
  std::vector<ValueId> parts;
  for (size_t i = 2; i < n.num_inputs(); i += 3) parts.push_back(DequantisedInput(n, i));
  const int64_t axis = n.Axis(n.Int("axis", 0), n.RankOf(parts[0]));
  SetQuantised(n, n.Emit("Concat", parts, {{"axis", axis}}), 0, DType::kU8);
}

/// Σ (a - za)(b - zb) + c by the scales of a and b (one, or one per column), quantised where the
/// result has a scale.
void QGemm(NodeImport& n) {
  ValueId a = n.Input(0);
  ValueId b = n.Input(3);
  if (!n.CheckRank(a, 2, 2, "A") || !n.CheckRank(b, 2, 2, "B")) return;
  if (n.Int("transA", 0) != 0) a = n.Transpose(a, {1, 0});
  if (n.Int("transB", 0) != 0) b = n.Transpose(b, {1, 0});
  ValueId sum = IntegerProduct(n, a, b, n.Input(2), n.Input(5));
  if (n.Has(6)) sum = n.Add(sum, n.Input(6));
  const ValueId scale =
      n.Binary(BinaryOp::kMul, n.Mul(n.Input(1), n.Input(4)), n.Float("alpha", 1));
  const ValueId y = n.Mul(n.Cast(sum, DType::kF32), scale);
  if (!n.Has(7)) return n.SetOutput(0, y);
  SetQuantised(n, y, 7, DType::kU8);
}

/// A sum of products of bytes with its scales and bias, as f32.
ValueId Scaled(NodeImport& n, ValueId sum, ValueId scale_a, ValueId scale_b, size_t bias) {
  const ValueId y = n.Mul(n.Cast(sum, DType::kF32), n.Mul(scale_a, scale_b));
  return n.Has(bias) ? n.Add(y, n.Input(bias)) : y;
}

void DynamicQuantizeMatMul(NodeImport& n) {
  const DynamicBytes a = DynamicallyQuantised(n, n.Input(0));
  const ValueId b = n.Input(1);
  const ValueId scale = n.Input(2);
  const ValueId sum = IntegerProduct(n, a.bytes, b, a.zero, n.OptionalInput(3));
  n.SetOutput(0, Scaled(n, sum, a.scale, scale, 4));
}

void MatMulIntegerToFloat(NodeImport& n) {
  const ValueId a = n.Input(0);
  const ValueId sum = IntegerProduct(n, a, n.Input(1), n.OptionalInput(4), n.OptionalInput(5));
  n.SetOutput(0, Scaled(n, sum, n.Input(2), n.Input(3), 6));
}

void FusedMatMul(NodeImport& n) {
  const ValueId a = n.Input(0);
  const ValueId b = n.Input(1);
  if (!n.CheckRank(a, 2, 6, "the first operand") || !n.CheckRank(b, 2, 6, "the second operand"))
    return;
  for (const char* name : {"transBatchA", "transBatchB"}) {
    if (n.Int(name, 0) != 0)
      return n.Unsupported(fmt::format("{} other than 0 is not supported", name));
  }
  const ValueId y = n.Emit("MatMul", {a, b},
                           {{"transpose_a", int64_t{n.Int("transA", 0) != 0}},
                            {"transpose_b", int64_t{n.Int("transB", 0) != 0}}});
  const double alpha = n.Float("alpha", 1);
  n.SetOutput(0, alpha == 1 ? y : n.Binary(BinaryOp::kMul, y, alpha));
}

ValueId Activated(NodeImport& n, ValueId x) {
  const std::string fn =
      n.Choice("activation", "", {"Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"});
  std::vector<double> p = n.Floats("activation_params");
  p.resize(2, 0);
  const auto clipped = [&](ValueId v, double low, double high) {
    return n.Binary(BinaryOp::kMin, n.Binary(BinaryOp::kMax, v, low), high);
  };
  if (fn == "Relu") return n.Binary(BinaryOp::kMax, x, 0.0);
  if (fn == "Tanh") return n.Unary(ir::UnaryOp::kTanh, x);
  if (fn == "Sigmoid") return n.Unary(ir::UnaryOp::kSigmoid, x);
  if (fn == "LeakyRelu")
    return n.Select(n.Binary(BinaryOp::kGe, x, 0.0), x, n.Binary(BinaryOp::kMul, x, p[0]));
  if (fn == "Clip") return clipped(x, p[0], p[1]);
  if (fn == "HardSigmoid")
    return clipped(n.Binary(BinaryOp::kAdd, n.Binary(BinaryOp::kMul, x, p[0]), p[1]), 0, 1);
  return x;
}

void FusedConv(NodeImport& n) {
  const ValueId x = n.Input(0);
  const ValueId w = n.Input(1);
  const WindowAttributes window = ReadWindow(n, x, w);
  std::vector<ValueId> inputs = {x, w};
  if (n.Has(2)) inputs.push_back(n.Input(2));
  ValueId y = n.Emit("Conv", inputs,
                     {{"strides", window.strides},
                      {"dilations", window.dilations},
                      {"pads", window.pads},
                      {"group", n.Int("group", 1)},
                      {"layout", std::string("nchw")}});
  if (n.Has(3)) y = n.Add(y, n.Input(3));
  n.SetOutput(0, Activated(n, y));
}

/// What MatMulNBits says of its weights.
struct NarrowWeights {
  int64_t k = 0, columns = 0, bits = 4, block = 0, blocks = 0;
};

/// -zero · scale of each block, zero points of bytes lying side by side, or of four bits two in a
/// byte with a row's last half left over.
ConstantPtr OffsetsOf(const NarrowWeights& w, const TensorData& zeros, const TensorData& scales) {
  const std::vector<double> zero = zeros.AsDoubles();
  const std::vector<double> scale = scales.AsDoubles();
  const bool packed = !ir::IsFloat(zeros.type.dtype) && w.bits == 4;
  const int64_t row = packed ? (w.blocks + 1) / 2 : w.blocks;
  std::vector<double> offsets;
  for (int64_t n = 0; n < w.columns; ++n) {
    for (int64_t g = 0; g < w.blocks; ++g) {
      const double stored = zero[static_cast<size_t>(n * row + (packed ? g / 2 : g))];
      const auto byte = static_cast<int64_t>(stored);
      const double own = !packed ? stored : static_cast<double>(g % 2 == 0 ? byte % 16 : byte / 16);
      offsets.push_back(-own * scale[static_cast<size_t>(n * w.blocks + g)]);
    }
  }
  return MakeConstant(DType::kF32, {w.columns, w.blocks}, offsets);
}

/// The first operand with zeros behind, up to whole blocks.
ValueId FilledUp(NodeImport& n, ValueId a, const NarrowWeights& w) {
  const int64_t more = w.blocks * w.block - w.k;
  if (more == 0 || !n.ok()) return a;
  const Shape none(n.RankOf(a), 0);
  Shape end = none;
  end.back() = more;
  return n.Emit("Pad", {a}, {{"begin", none}, {"end", end}, {"mode", std::string("constant")}});
}

/// a · Wᵀ, W of [N, K] in blocks along K, each with a scale and a zero point (8 of 4 bits).
void MatMulNBits(NodeImport& n) {
  const ValueId a = n.Input(0);
  const ValueId bytes = n.Input(1);
  NarrowWeights w = {n.Int("K", 0), n.Int("N", 0), n.Int("bits", 4), n.Int("block_size", 0)};
  n.Int("accuracy_level", 0);
  if (w.bits != 4 && w.bits != 8)
    return n.Unsupported(fmt::format("{} bits are not supported, only 4 and 8", w.bits));
  if (n.Has(4)) return n.Unsupported("input g_idx is not supported");
  constexpr int64_t kMost = int64_t{1} << 31;
  const bool sized = w.k > 0 && w.k <= kMost && w.columns > 0 && w.block > 0 && w.block <= kMost;
  if (!sized || w.block % 2 != 0)
    return n.Invalid(
        fmt::format("K {}, N {} and block_size {} must be at least 1 and block_size even", w.k,
                    w.columns, w.block));
  w.blocks = (w.k + w.block - 1) / w.block;
  if (n.TypeOf(bytes) != TensorType{DType::kU8, {w.columns, w.blocks, w.block * w.bits / 8}})
    return n.Invalid(fmt::format("B {} does not fit {} blocks of {}", ToText(n.TypeOf(bytes)),
                                 w.blocks, w.block));
  const ValueId scale = n.Cast(n.Reshape(n.Input(2), {w.columns, w.blocks}), DType::kF32);
  const ValueId x = FilledUp(n, n.Cast(a, DType::kF32), w);
  std::vector<ValueId> inputs = {x, bytes, scale};
  int64_t zero = int64_t{1} << (w.bits - 1);
  if (n.Has(3) && n.ok()) {
    zero = 0;
    const ConstantPtr zeros = n.Known(n.Input(3));
    const ConstantPtr scales = n.Known(n.Input(2));
    if (zeros == nullptr || scales == nullptr)
      return n.Unsupported("scales and zero points must be constants");
    const bool packed = !ir::IsFloat(zeros->type.dtype) && w.bits == 4;
    const int64_t expected = w.columns * (packed ? (w.blocks + 1) / 2 : w.blocks);
    if (zeros->type.NumElements() != expected)
      return n.Invalid(
          fmt::format("the zero points are {}, but {} are needed", ToText(zeros->type), expected));
    inputs.push_back(n.Constant(OffsetsOf(w, *zeros, *scales)));
  }
  ValueId y = n.Emit("MatMulNarrow", inputs, {{"bits", w.bits}, {"zero", zero}});
  y = n.Cast(y, n.DTypeOf(a));
  if (n.Has(5)) y = n.Add(y, n.Input(5));
  n.SetOutput(0, y);
}

constexpr Handler kHandlers[] = {
    {"DynamicQuantizeLSTM", 1, 12, 12, 3, DynamicQuantizeLstm},
    {"DynamicQuantizeMatMul", 1, 3, 5, 1, DynamicQuantizeMatMul},
    {"FusedConv", 1, 2, 4, 1, FusedConv},
    {"FusedMatMul", 1, 2, 2, 1, FusedMatMul},
    {"MatMulIntegerToFloat", 1, 4, 7, 1, MatMulIntegerToFloat},
    {"MatMulNBits", 1, 3, 6, 1, MatMulNBits},
    {"QAttention", 1, 5, 9, 2, QAttention},
    {"QGemm", 1, 6, 9, 1, QGemm},
    {"QLinearAdd", 1, 7, 8, 1, QLinearBinary<BinaryOp::kAdd>},
    {"QLinearConcat", 1, 5, kAnyNumber, 1, QLinearConcat},
    {"QLinearMul", 1, 7, 8, 1, QLinearBinary<BinaryOp::kMul>},
};

}  // namespace

const Handler* FindMicrosoftHandler(std::string_view op) {
  for (const Handler& handler : kHandlers) {
    if (handler.op == op) return &handler;
  }
  return nullptr;
}

}  // namespace hone::graph::onnx_import
