#include "fmt/format.h"

#include "base/status.h"
#include "graph/onnx_import/handler.h"

// Operator sets 1 to 6, where they differ: operands broadcast only where the attribute says so, the
// second one along the axes from `axis` on.
namespace hone::graph::onnx_import {
namespace {

using ir::BinaryOp;
using Shape = std::vector<int64_t>;

/// The second operand with as many trailing axes of 1 as make ONNX 6's broadcast that of NumPy;
/// kNoValue after an error.
ValueId SecondOperand(NodeImport& n, ValueId a) {
  const ValueId b = n.Input(1);
  const bool broadcast = n.Int("broadcast", 0) != 0;
  const bool placed = n.HasAttribute("axis");
  const int64_t given = n.Int("axis", 0);
  if (!n.ok()) return kNoValue;
  const Shape left = n.ShapeOf(a);
  Shape right = n.ShapeOf(b);
  if (!broadcast) {
    if (left == right) return b;
    n.Invalid(
        fmt::format("operands {} and {} have different shapes, and attribute 'broadcast' is not 1",
                    ToText(n.TypeOf(a)), ToText(n.TypeOf(b))));
    return kNoValue;
  }
  if (right.size() > left.size()) {
    n.Invalid(
        fmt::format("operand {} has more axes than {}", ToText(n.TypeOf(b)), ToText(n.TypeOf(a))));
    return kNoValue;
  }
  if (!placed || right.empty()) return b;
  const auto axis = static_cast<size_t>(n.Axis(given, left.size()));
  if (!n.ok()) return kNoValue;
  if (axis + right.size() > left.size()) {
    n.Invalid(fmt::format("operand {} does not fit into {} from axis {} on", ToText(n.TypeOf(b)),
                          ToText(n.TypeOf(a)), axis));
    return kNoValue;
  }
  right.resize(left.size() - axis, 1);
  return n.Reshape(b, std::move(right));
}

template <BinaryOp kFn>
void TwoOperands(NodeImport& n) {
  const ValueId a = n.Input(0);
  n.SetOutput(0, n.Binary(kFn, a, SecondOperand(n, a)));
}

void Div(NodeImport& n) {
  const ValueId a = n.Input(0);
  const bool is_float = ir::IsFloat(n.DTypeOf(a));
  n.SetOutput(0, n.Binary(is_float ? BinaryOp::kDiv : BinaryOp::kTruncDiv, a, SecondOperand(n, a)));
}

/// One slope, or one for each channel.
void PRelu(NodeImport& n) {
  const ValueId x = n.Input(0);
  ValueId slope = n.Input(1);
  if (!n.CheckRank(x, 1, 6, "the input") || !n.CheckRank(slope, 0, 1, "the slope")) return;
  if (n.TypeOf(slope).NumElements() != 1 && n.RankOf(x) > 2) {
    Shape shape(n.RankOf(x) - 1, 1);
    shape[0] = n.TypeOf(slope).NumElements();
    slope = n.Reshape(slope, std::move(shape));
  }
  const ValueId negative = n.Binary(BinaryOp::kLt, x, 0.0);
  n.SetOutput(0, n.Select(negative, n.Mul(x, slope), x));
}

/// The type by its name.
void Cast(NodeImport& n) {
  const ValueId x = n.Input(0);
  const std::string name = n.String("to", "");
  onnx::TensorProto::DataType type = onnx::TensorProto::UNDEFINED;
  if (!onnx::TensorProto::DataType_Parse(name, &type))
    return n.Invalid(
        fmt::format("attribute 'to' is '{}', which is not the name of a type, as FLOAT is", name));
  const auto dtype = DTypeOf(type);
  if (!dtype.ok()) return n.Fail(Annotate(dtype.status(), "attribute 'to'"));
  n.SetOutput(0, n.Cast(x, *dtype));
}

constexpr Handler kHandlers[] = {
    {"Cast", 1, 1, 1, 1, Cast},
    {"Add", 1, 2, 2, 1, TwoOperands<BinaryOp::kAdd>},
    {"Sub", 1, 2, 2, 1, TwoOperands<BinaryOp::kSub>},
    {"Mul", 1, 2, 2, 1, TwoOperands<BinaryOp::kMul>},
    {"Div", 1, 2, 2, 1, Div},
    {"Pow", 1, 2, 2, 1, TwoOperands<BinaryOp::kPow>},
    {"And", 1, 2, 2, 1, TwoOperands<BinaryOp::kAnd>},
    {"Or", 1, 2, 2, 1, TwoOperands<BinaryOp::kOr>},
    {"Xor", 1, 2, 2, 1, TwoOperands<BinaryOp::kXor>},
    {"Equal", 1, 2, 2, 1, TwoOperands<BinaryOp::kEq>},
    {"Greater", 1, 2, 2, 1, TwoOperands<BinaryOp::kGt>},
    {"Less", 1, 2, 2, 1, TwoOperands<BinaryOp::kLt>},
    {"PRelu", 1, 2, 2, 1, PRelu},
};

}  // namespace

std::span<const Handler> LegacyHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
