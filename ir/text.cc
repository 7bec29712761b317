#include "ir/text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/core/check.h"
#include "ir/half.h"
#include "ir/kept_panels.h"

namespace hone::ir {
namespace {

/// Infix form of a binary operator: its sign and how strongly it binds; level 0: written as a call.
struct Infix {
  std::string_view sign;
  int level = 0;
};

Infix InfixOf(BinaryOp op, DType operand) {
  switch (op) {
    case BinaryOp::kMul: return {"*", 7};
    case BinaryOp::kDiv: return {IsFloat(operand) ? "/" : "//", 7};
    case BinaryOp::kMod: return {"%", 7};
    case BinaryOp::kAdd: return {"+", 6};
    case BinaryOp::kSub: return {"-", 6};
    case BinaryOp::kShl: return {"<<", 5};
    case BinaryOp::kShr: return {">>", 5};
    case BinaryOp::kEq: return {"==", 4};
    case BinaryOp::kNe: return {"!=", 4};
    case BinaryOp::kLt: return {"<", 4};
    case BinaryOp::kLe: return {"<=", 4};
    case BinaryOp::kGt: return {">", 4};
    case BinaryOp::kGe: return {">=", 4};
    case BinaryOp::kAnd: return {"&", 3};
    case BinaryOp::kXor: return {"^", 2};
    case BinaryOp::kOr: return {"|", 1};
    default: return {};
  }
}

template <typename T>
std::string Shortest(T value) {
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return std::string(buffer.data(), end.ptr);
}

std::string ConstText(const ExprNode& node) {
  const std::string type = ":" + std::string(ToString(node.dtype));
  if (IsBool(node.dtype)) return node.int_value != 0 ? "true" : "false";
  if (node.dtype == DType::kI64) return std::to_string(node.int_value);
  if (node.dtype == DType::kU64) {
    return std::to_string(static_cast<uint64_t>(node.int_value)) + type;
  }
  if (IsInteger(node.dtype)) return std::to_string(node.int_value) + type;
  std::string text = NumberText(node.dtype, node.float_value);
  if (node.dtype != DType::kF32) return text + type;
  // A bare f32 must not look like an i64.
  if (text.find_first_of(".einf") == std::string::npos) text += ".0";
  return text;
}

class ExprPrinter {
 public:
  explicit ExprPrinter(const ExprNames& names) : names_(names) {}

  /// Appends `e`, in parentheses when it binds weaker than `level`.
  void Print(const Expr& e, int level, std::string* out) const {
    switch (e->kind) {
      case ExprKind::kConst: *out += ConstText(*e); return;
      case ExprKind::kVar: *out += names_.var(e->id); return;
      case ExprKind::kLoad:
        *out += names_.tensor(e->id);
        PrintList(e->args, '[', ']', out);
        return;
      case ExprKind::kCast: PrintCall(ToString(e->dtype), e->args, out); return;
      case ExprKind::kSelect: PrintCall("select", e->args, out); return;
      case ExprKind::kUnary: PrintCall(ToString(e->unary()), e->args, out); return;
      case ExprKind::kBinary: PrintBinary(*e, level, out); return;
    }
  }

 private:
  void PrintBinary(const ExprNode& e, int level, std::string* out) const {
    const Infix infix = InfixOf(e.binary(), e.args[0]->dtype);
    if (infix.level == 0) {
      PrintCall(ToString(e.binary()), e.args, out);
      return;
    }
    const bool parentheses = infix.level < level;
    // Comparisons do not chain; everything else groups from the left.
    const int left = IsComparison(e.binary()) ? infix.level + 1 : infix.level;
    if (parentheses) *out += '(';
    Print(e.args[0], left, out);
    *out += ' ';
    *out += infix.sign;
    *out += ' ';
    Print(e.args[1], infix.level + 1, out);
    if (parentheses) *out += ')';
  }

  void PrintCall(std::string_view name, const std::vector<Expr>& args, std::string* out) const {
    *out += name;
    PrintList(args, '(', ')', out);
  }

  void PrintList(const std::vector<Expr>& args, char open, char close, std::string* out) const {
    *out += open;
    for (size_t i = 0; i < args.size(); ++i) {
      if (i > 0) *out += ", ";
      Print(args[i], 0, out);
    }
    *out += close;
  }

  const ExprNames& names_;
};

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

std::string AxesText(const std::vector<int64_t>& extents, char letter) {
  std::string text = "[";
  for (size_t i = 0; i < extents.size(); ++i) {
    if (i > 0) text += ',';
    text += letter + std::to_string(i) + ":" + std::to_string(extents[i]);
  }
  return text + "]";
}

std::string TensorText(const Tensor& tensor) {
  return tensor.name + ": " + std::string(ToString(tensor.dtype)) + ShapeText(tensor.shape);
}

std::string DeclarationText(const Tensor& tensor) {
  std::string text = TensorText(tensor);
  switch (tensor.kind) {
    case TensorKind::kInput:
      return text + " input range(" + NumberText(DType::kF64, tensor.range.low) + "," +
             NumberText(DType::kF64, tensor.range.high) + ")\n";
    case TensorKind::kConstant: {
      const std::optional<KeptPanels> panels = PanelsOf(tensor);
      return text + " constant" + (panels ? " " + ToText(*panels) : "") + "\n";
    }
    case TensorKind::kImmediate:
      text += " immediate {";
      for (size_t i = 0; i < tensor.immediate.size(); ++i) {
        if (i > 0) text += ", ";
        text += NumberText(tensor.dtype, tensor.immediate[i]);
      }
      return text + "}\n";
    case TensorKind::kStage: break;
  }
  return "";
}

std::string StageText(const Workload& workload, const Stage& stage) {
  const ExprNames names = NamesOf(workload, stage);
  const ExprPrinter printer(names);
  std::string text;
  bool identity = stage.store.empty();
  for (size_t k = 0; k < stage.results.size(); ++k) {
    const Tensor& result = workload.tensors[static_cast<size_t>(stage.results[k])];
    if (k > 0) text += ", ";
    text += TensorText(result);
    if (result.output) text += " output";
    identity &= result.shape == stage.spatial;
  }
  if (stage.scan >= 0) text += " scan " + std::to_string(stage.scan);
  if (!identity) text += " over " + AxesText(stage.spatial, 'i');
  if (!stage.store.empty()) {
    text += " at [";
    for (size_t i = 0; i < stage.store.size(); ++i) {
      if (i > 0) text += ", ";
      printer.Print(stage.store[i], 0, &text);
    }
    text += "]";
  }
  text += " = ";
  const bool plain =
      stage.combiner == Combiner::kNone && stage.reduce.empty() && stage.body.size() == 1;
  if (!plain) text += std::string(ToString(stage.combiner)) + AxesText(stage.reduce, 'r') + " (";
  for (size_t k = 0; k < stage.body.size(); ++k) {
    if (k > 0) text += ", ";
    printer.Print(stage.body[k], 0, &text);
  }
  if (!plain) text += ")";
  return text + "\n";
}

}  // namespace

std::string NumberText(DType dtype, double value) {
  if (IsFloat(dtype)) value = RoundTo(dtype, value);
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  constexpr double kPlainBelow = 1e15;
  if (value == std::trunc(value) && std::fabs(value) < kPlainBelow &&
      (value != 0 || !std::signbit(value))) {
    return std::to_string(static_cast<int64_t>(value));
  }
  if (dtype == DType::kF64 || !IsFloat(dtype)) return Shortest(value);
  // f16 and bf16 are floats too, so that the shortest float reads back to them.
  return Shortest(static_cast<float>(value));
}

std::string ToText(const Expr& e, const ExprNames& names) {
  std::string text;
  ExprPrinter(names).Print(e, 0, &text);
  return text;
}

ExprNames NamesOf(const Workload& workload, const Stage& stage) {
  ExprNames names;
  names.var = [spatial = stage.num_spatial()](int id) {
    return id < spatial ? "i" + std::to_string(id) : "r" + std::to_string(id - spatial);
  };
  names.tensor = [&workload](int id) { return workload.tensors[static_cast<size_t>(id)].name; };
  return names;
}

std::string ToText(const Workload& workload) {
  std::string text = "workload 1\n";
  for (const Tensor& tensor : workload.tensors) text += DeclarationText(tensor);
  for (const Stage& stage : workload.stages) text += StageText(workload, stage);
  return text;
}

}  // namespace hone::ir
