#include <algorithm>
#include <iterator>
#include <utility>

#include "graph/onnx_import/handler.h"

// Unary, binary, comparing and logical operators, Where, Cast.
namespace hone::graph::onnx_import {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::UnaryOp;

template <UnaryOp kFn>
void OneOperand(NodeImport& n) {
  n.SetOutput(0, n.Unary(kFn, n.Input(0)));
}

template <BinaryOp kFn>
void TwoOperands(NodeImport& n) {
  const ValueId a = n.Input(0);
  n.SetOutput(0, n.Binary(kFn, a, n.Input(1)));
}

void Identity(NodeImport& n) { n.SetOutput(0, n.Input(0)); }

void Reciprocal(NodeImport& n) { n.SetOutput(0, n.Binary(BinaryOp::kDiv, 1.0, n.Input(0))); }

/// ONNX divides integers toward zero.
void Div(NodeImport& n) {
  const ValueId a = n.Input(0);
  n.SetOutput(
      0, n.Binary(ir::IsFloat(n.DTypeOf(a)) ? BinaryOp::kDiv : BinaryOp::kTruncDiv, a, n.Input(1)));
}

void Mod(NodeImport& n) {
  const ValueId a = n.Input(0);
  const bool truncate = n.Int("fmod", 0) != 0;
  n.SetOutput(0, n.Binary(truncate ? BinaryOp::kTruncMod : BinaryOp::kMod, a, n.Input(1)));
}

/// The result has the base's type whatever the exponent's.
void Pow(NodeImport& n) {
  const ValueId base = n.Input(0);
  const ValueId exponent = n.Input(1);
  const DType dtype = n.DTypeOf(base);
  const DType other = n.DTypeOf(exponent);
  const DType common = !ir::IsFloat(dtype) && ir::IsFloat(other) ? other : dtype;
  n.SetOutput(
      0, n.Cast(n.Binary(BinaryOp::kPow, n.Cast(base, common), n.Cast(exponent, common)), dtype));
}

void IsInf(NodeImport& n) {
  const ValueId x = n.Input(0);
  const bool negative = n.Int("detect_negative", 1) != 0;
  const bool positive = n.Int("detect_positive", 1) != 0;
  ValueId result = n.Unary(UnaryOp::kIsInf, x);
  if (!negative) result = n.Binary(BinaryOp::kAnd, result, n.Binary(BinaryOp::kGt, x, 0.0));
  if (!positive) result = n.Binary(BinaryOp::kAnd, result, n.Binary(BinaryOp::kLt, x, 0.0));
  n.SetOutput(0, result);
}

template <BinaryOp kFn>
ValueId FoldInputs(NodeImport& n) {
  ValueId result = n.Input(0);
  for (size_t i = 1; i < n.num_inputs(); ++i) result = n.Binary(kFn, result, n.Input(i));
  return result;
}

template <BinaryOp kFn>
void AnyOperands(NodeImport& n) {
  n.SetOutput(0, FoldInputs<kFn>(n));
}

void Mean(NodeImport& n) {
  const auto count = static_cast<double>(n.num_inputs());
  n.SetOutput(0, n.Binary(BinaryOp::kDiv, FoldInputs<BinaryOp::kAdd>(n), count));
}

void BitShift(NodeImport& n) {
  const ValueId a = n.Input(0);
  if (!n.HasAttribute("direction")) n.Invalid("attribute 'direction' is missing");
  const std::string direction = n.Choice("direction", "LEFT", {"LEFT", "RIGHT"});
  n.SetOutput(0, n.Binary(direction == "LEFT" ? BinaryOp::kShl : BinaryOp::kShr, a, n.Input(1)));
}

void Where(NodeImport& n) {
  const ValueId condition = n.Input(0);
  const ValueId a = n.Input(1);
  n.SetOutput(0, n.Select(condition, a, n.Input(2)));
}

void CheckCastMode(NodeImport& n) {
  n.Int("saturate", 1);  // concerns 8-bit floats only
  n.Choice("round_mode", "up", {"up", "down", "nearest"});
}

void Cast(NodeImport& n) {
  CheckCastMode(n);
  const ValueId x = n.Input(0);
  if (!n.HasAttribute("to")) n.Invalid("attribute 'to' is missing");
  n.SetOutput(0, n.Cast(x, n.ElementType("to", DType::kF32)));
}

void CastLike(NodeImport& n) {
  CheckCastMode(n);
  const ValueId x = n.Input(0);
  n.SetOutput(0, n.Cast(x, n.DTypeOf(n.Input(1))));
}

/// Between integers of one width a wrapping Cast keeps the bits.
void BitCast(NodeImport& n) {
  const ValueId x = n.Input(0);
  if (!n.HasAttribute("to")) n.Invalid("attribute 'to' is missing");
  const DType from = n.DTypeOf(x);
  const DType to = n.ElementType("to", DType::kF32);
  if (!n.ok()) return;
  if (ir::SizeOf(from) != ir::SizeOf(to))
    return n.Invalid(fmt::format("{} and {} differ in width", ToString(from), ToString(to)));
  if (from != to && (ir::IsFloat(from) || ir::IsFloat(to) || to == DType::kBool))
    return n.Unsupported(
        fmt::format("the bits of {} cannot be read as {}; only integer types are supported",
                    ToString(from), ToString(to)));
  n.SetOutput(0, n.Cast(x, to));
}

constexpr Handler kHandlers[] = {
    {"Identity", 1, 1, 1, 1, Identity},
    {"Abs", 1, 1, 1, 1, OneOperand<UnaryOp::kAbs>},
    {"Neg", 1, 1, 1, 1, OneOperand<UnaryOp::kNeg>},
    {"Not", 1, 1, 1, 1, OneOperand<UnaryOp::kNot>},
    {"BitwiseNot", 18, 1, 1, 1, OneOperand<UnaryOp::kNot>},
    {"Sqrt", 1, 1, 1, 1, OneOperand<UnaryOp::kSqrt>},
    {"Exp", 1, 1, 1, 1, OneOperand<UnaryOp::kExp>},
    {"Log", 1, 1, 1, 1, OneOperand<UnaryOp::kLog>},
    {"Sin", 7, 1, 1, 1, OneOperand<UnaryOp::kSin>},
    {"Cos", 7, 1, 1, 1, OneOperand<UnaryOp::kCos>},
    {"Tan", 7, 1, 1, 1, OneOperand<UnaryOp::kTan>},
    {"Asin", 7, 1, 1, 1, OneOperand<UnaryOp::kAsin>},
    {"Acos", 7, 1, 1, 1, OneOperand<UnaryOp::kAcos>},
    {"Atan", 7, 1, 1, 1, OneOperand<UnaryOp::kAtan>},
    {"Sinh", 9, 1, 1, 1, OneOperand<UnaryOp::kSinh>},
    {"Cosh", 9, 1, 1, 1, OneOperand<UnaryOp::kCosh>},
    {"Tanh", 1, 1, 1, 1, OneOperand<UnaryOp::kTanh>},
    {"Asinh", 9, 1, 1, 1, OneOperand<UnaryOp::kAsinh>},
    {"Acosh", 9, 1, 1, 1, OneOperand<UnaryOp::kAcosh>},
    {"Atanh", 9, 1, 1, 1, OneOperand<UnaryOp::kAtanh>},
    {"Erf", 9, 1, 1, 1, OneOperand<UnaryOp::kErf>},
    {"Sigmoid", 1, 1, 1, 1, OneOperand<UnaryOp::kSigmoid>},
    {"Floor", 1, 1, 1, 1, OneOperand<UnaryOp::kFloor>},
    {"Ceil", 1, 1, 1, 1, OneOperand<UnaryOp::kCeil>},
    {"Round", 11, 1, 1, 1, OneOperand<UnaryOp::kRound>},
    {"Sign", 9, 1, 1, 1, OneOperand<UnaryOp::kSign>},
    {"IsNaN", 9, 1, 1, 1, OneOperand<UnaryOp::kIsNan>},
    {"IsInf", 10, 1, 1, 1, IsInf},
    {"Reciprocal", 1, 1, 1, 1, Reciprocal},
    {"Add", 7, 2, 2, 1, TwoOperands<BinaryOp::kAdd>},
    {"Sub", 7, 2, 2, 1, TwoOperands<BinaryOp::kSub>},
    {"Mul", 7, 2, 2, 1, TwoOperands<BinaryOp::kMul>},
    {"Div", 7, 2, 2, 1, Div},
    {"Mod", 10, 2, 2, 1, Mod},
    {"Pow", 7, 2, 2, 1, Pow},
    {"And", 7, 2, 2, 1, TwoOperands<BinaryOp::kAnd>},
    {"Or", 7, 2, 2, 1, TwoOperands<BinaryOp::kOr>},
    {"Xor", 7, 2, 2, 1, TwoOperands<BinaryOp::kXor>},
    {"BitwiseAnd", 18, 2, 2, 1, TwoOperands<BinaryOp::kAnd>},
    {"BitwiseOr", 18, 2, 2, 1, TwoOperands<BinaryOp::kOr>},
    {"BitwiseXor", 18, 2, 2, 1, TwoOperands<BinaryOp::kXor>},
    {"Equal", 7, 2, 2, 1, TwoOperands<BinaryOp::kEq>},
    {"Greater", 7, 2, 2, 1, TwoOperands<BinaryOp::kGt>},
    {"Less", 7, 2, 2, 1, TwoOperands<BinaryOp::kLt>},
    {"GreaterOrEqual", 12, 2, 2, 1, TwoOperands<BinaryOp::kGe>},
    {"LessOrEqual", 12, 2, 2, 1, TwoOperands<BinaryOp::kLe>},
    {"BitShift", 11, 2, 2, 1, BitShift},
    {"Max", 1, 1, kAnyNumber, 1, AnyOperands<BinaryOp::kMax>},
    {"Min", 1, 1, kAnyNumber, 1, AnyOperands<BinaryOp::kMin>},
    {"Sum", 1, 1, kAnyNumber, 1, AnyOperands<BinaryOp::kAdd>},
    {"Mean", 1, 1, kAnyNumber, 1, Mean},
    {"Where", 9, 3, 3, 1, Where},
    {"Cast", 6, 1, 1, 1, Cast},
    {"CastLike", 15, 2, 2, 1, CastLike},
    {"BitCast", 26, 1, 1, 1, BitCast},
};

}  // namespace

std::span<const Handler> ElementwiseHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
