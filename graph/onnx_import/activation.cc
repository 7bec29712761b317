#include "fmt/format.h"

#include "graph/onnx_import/handler.h"

// Activations, composed from Unary, Binary and Select with scalar constants.
namespace hone::graph::onnx_import {
namespace {

using ir::BinaryOp;
using ir::UnaryOp;

void Relu(NodeImport& n) {
  const ValueId x = n.Input(0);
  n.SetOutput(0, n.Binary(BinaryOp::kMax, x, 0.0));
}

ValueId WhereNegative(NodeImport& n, ValueId x, ValueId negative, ValueId otherwise) {
  return n.Select(n.Binary(BinaryOp::kLt, x, 0.0), negative, otherwise);
}

void LeakyRelu(NodeImport& n) {
  const ValueId x = n.Input(0);
  const double alpha = n.Float("alpha", 0.01F);
  n.SetOutput(0, WhereNegative(n, x, n.Binary(BinaryOp::kMul, x, alpha), x));
}

void PRelu(NodeImport& n) {
  const ValueId x = n.Input(0);
  n.SetOutput(0, WhereNegative(n, x, n.Mul(x, n.Input(1)), x));
}

/// exp(x) - 1
ValueId ExpMinusOne(NodeImport& n, ValueId x) {
  return n.Binary(BinaryOp::kSub, n.Unary(UnaryOp::kExp, x), 1.0);
}

void Elu(NodeImport& n) {
  const ValueId x = n.Input(0);
  const double alpha = n.Float("alpha", 1.0);
  n.SetOutput(0, WhereNegative(n, x, n.Binary(BinaryOp::kMul, ExpMinusOne(n, x), alpha), x));
}

void Selu(NodeImport& n) {
  const ValueId x = n.Input(0);
  const double alpha = n.Float("alpha", 1.67326319217681884765625);
  const double gamma = n.Float("gamma", 1.05070102214813232421875);
  const ValueId negative = n.Binary(BinaryOp::kMul, ExpMinusOne(n, x), alpha);
  n.SetOutput(0, n.Binary(BinaryOp::kMul, WhereNegative(n, x, negative, x), gamma));
}

void Celu(NodeImport& n) {
  const ValueId x = n.Input(0);
  const double alpha = n.Float("alpha", 1.0);
  const ValueId scaled = n.Binary(BinaryOp::kDiv, x, alpha);
  n.SetOutput(0, WhereNegative(n, x, n.Binary(BinaryOp::kMul, ExpMinusOne(n, scaled), alpha), x));
}

void HardSigmoid(NodeImport& n) {
  n.SetOutput(0, n.Emit("Activation", {n.Input(0)},
                        {{"fn", std::string("hard_sigmoid")},
                         {"alpha", n.Float("alpha", 0.2F)},
                         {"beta", n.Float("beta", 0.5)}}));
}

void HardSwish(NodeImport& n) {
  n.SetOutput(0, n.Emit("Activation", {n.Input(0)}, {{"fn", std::string("hard_swish")}}));
}

/// log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), which does not overflow.
ValueId SoftplusOf(NodeImport& n, ValueId x) {
  const ValueId small = n.Unary(UnaryOp::kExp, n.Unary(UnaryOp::kNeg, n.Unary(UnaryOp::kAbs, x)));
  const ValueId log = n.Unary(UnaryOp::kLog, n.Binary(BinaryOp::kAdd, small, 1.0));
  return n.Add(n.Binary(BinaryOp::kMax, x, 0.0), log);
}

void Softplus(NodeImport& n) { n.SetOutput(0, SoftplusOf(n, n.Input(0))); }

void Mish(NodeImport& n) {
  const ValueId x = n.Input(0);
  n.SetOutput(0, n.Mul(x, n.Unary(UnaryOp::kTanh, SoftplusOf(n, x))));
}

void Softsign(NodeImport& n) {
  const ValueId x = n.Input(0);
  n.SetOutput(0, n.Div(x, n.Binary(BinaryOp::kAdd, n.Unary(UnaryOp::kAbs, x), 1.0)));
}

void ThresholdedRelu(NodeImport& n) {
  const ValueId x = n.Input(0);
  const ValueId above = n.Binary(BinaryOp::kGt, x, n.Float("alpha", 1.0));
  n.SetOutput(0, n.Select(above, x, n.Scalar(n.DTypeOf(x), 0)));
}

void Shrink(NodeImport& n) {
  const ValueId x = n.Input(0);
  const double bias = n.Float("bias", 0);
  const double lambda = n.Float("lambd", 0.5);
  const ir::DType dtype = n.DTypeOf(x);
  // In f32, so that a fractional threshold means the same for integers.
  const ValueId wide = ir::IsFloat(dtype) ? x : n.Cast(x, ir::DType::kF32);
  const ValueId above =
      n.Select(n.Binary(BinaryOp::kGt, wide, lambda), n.Binary(BinaryOp::kSub, wide, bias),
               n.Scalar(n.DTypeOf(wide), 0));
  const ValueId result =
      n.Select(n.Binary(BinaryOp::kLt, wide, -lambda), n.Binary(BinaryOp::kAdd, wide, bias), above);
  n.SetOutput(0, n.Cast(result, dtype));
}

void Gelu(NodeImport& n) {
  const std::string approximate = n.Choice("approximate", "none", {"none", "tanh"});
  n.SetOutput(0, n.Emit("Activation", {n.Input(0)},
                        {{"fn", std::string(approximate == "none" ? "gelu" : "gelu_tanh")}}));
}

ValueId SiluOf(NodeImport& n, ValueId x, double alpha) {
  return n.Emit("Activation", {x}, {{"fn", std::string("silu")}, {"alpha", alpha}});
}

void Swish(NodeImport& n) { n.SetOutput(0, SiluOf(n, n.Input(0), n.Float("alpha", 1.0))); }

void SwiGlu(NodeImport& n) {
  const ValueId gate = n.Input(0);
  const ValueId linear = n.Input(1);
  const double alpha = n.Float("alpha", 1.0);
  if (n.ok() && n.ShapeOf(gate) != n.ShapeOf(linear)) {
    return n.Invalid(
        fmt::format("the gate {} and the linear input {} must have equal types and shapes",
                    ToText(n.TypeOf(gate)), ToText(n.TypeOf(linear))));
  }
  n.SetOutput(0, n.Mul(SiluOf(n, gate, alpha), linear));
}

ValueId Limit(NodeImport& n, BinaryOp fn, ValueId x, size_t input) {
  const ValueId limit = n.OptionalInput(input);
  if (limit == kNoValue) return x;
  if (n.RankOf(limit) != 0 && n.TypeOf(limit).NumElements() != 1) {
    n.Invalid("min and max must be scalars, not " + ToText(n.TypeOf(limit)));
  }
  return n.Binary(fn, x, n.Reshape(limit, {}));
}

void Clip(NodeImport& n) {
  const ValueId x = n.Input(0);
  n.SetOutput(0,
              n.Reshape(Limit(n, BinaryOp::kMin, Limit(n, BinaryOp::kMax, x, 1), 2), n.ShapeOf(x)));
}

void ClipWithAttributes(NodeImport& n) {
  ValueId x = n.Input(0);
  if (n.HasAttribute("min")) x = n.Binary(BinaryOp::kMax, x, n.Float("min", 0));
  if (n.HasAttribute("max")) x = n.Binary(BinaryOp::kMin, x, n.Float("max", 0));
  n.SetOutput(0, x);
}

constexpr Handler kHandlers[] = {
    {"Relu", 1, 1, 1, 1, Relu},
    {"LeakyRelu", 1, 1, 1, 1, LeakyRelu},
    {"PRelu", 7, 2, 2, 1, PRelu},
    {"Elu", 1, 1, 1, 1, Elu},
    {"Selu", 1, 1, 1, 1, Selu},
    {"Celu", 12, 1, 1, 1, Celu},
    {"HardSigmoid", 1, 1, 1, 1, HardSigmoid},
    {"HardSwish", 14, 1, 1, 1, HardSwish},
    {"Softplus", 1, 1, 1, 1, Softplus},
    {"Softsign", 1, 1, 1, 1, Softsign},
    {"Mish", 18, 1, 1, 1, Mish},
    {"ThresholdedRelu", 10, 1, 1, 1, ThresholdedRelu},
    {"Shrink", 9, 1, 1, 1, Shrink},
    {"Gelu", 20, 1, 1, 1, Gelu},
    {"Swish", 24, 1, 1, 1, Swish},
    {"SwiGLU", 28, 2, 2, 1, SwiGlu},
    {"Clip", 1, 1, 1, 1, ClipWithAttributes},
    {"Clip", 11, 1, 3, 1, Clip},
};

}  // namespace

std::span<const Handler> ActivationHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
