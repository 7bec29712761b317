#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

class ArithmeticSimplifier {
 public:
  explicit ArithmeticSimplifier(Graph& graph) : rewriter_(graph), graph_(graph) {}

  absl::StatusOr<int> Run() {
    int changes = 0;
    for (const Node& old : rewriter_.old_nodes()) {
      HONE_ASSIGN_OR_RETURN(const bool changed, Simplify(rewriter_.Mapped(old)));
      if (changed) {
        ++changes;
      } else {
        rewriter_.Keep(old);
      }
    }
    HONE_RETURN_IF_ERROR(rewriter_.Finish());
    return changes;
  }

 private:
  const TensorType& TypeOf(ValueId id) const { return rewriter_.TypeOf(id); }
  std::string FunctionOf(const Node& node) const { return MakeCall(graph_, node).String("fn", ""); }

  absl::StatusOr<bool> ReplaceBy(const Node& node, ValueId value) {
    if (!rewriter_.MayReplace(node.outputs[0], value)) return false;
    rewriter_.Replace(node.outputs[0], value);
    return true;
  }

  absl::StatusOr<bool> ReplaceBy(const Node& node, const char* op, const char* fn,
                                 std::vector<ValueId> inputs) {
    HONE_ASSIGN_OR_RETURN(ValueId value, rewriter_.Add(op, node.origin, std::move(inputs),
                                                       {{"fn", std::string(fn)}}));
    return ReplaceBy(node, value);
  }

  absl::StatusOr<bool> Simplify(const Node& node) {
    if (node.op == "Unary") return SimplifyUnary(node);
    if (node.op == "Binary") return SimplifyBinary(node);
    if (node.op == "Select") return SimplifySelect(node);
    if (node.op == "MatMul") return ScaleOneFactor(node);
    return false;
  }

  absl::StatusOr<bool> SimplifyUnary(const Node& node) {
    const std::string fn = FunctionOf(node);
    const ValueId x = node.inputs[0];
    // neg(neg(x)), not(not(x)) are x; abs, floor and the like change nothing the second time.
    for (const char* inverse : {"neg", "not"}) {
      const Node* inner = fn == inverse ? rewriter_.ProducerOf(x, "Unary", inverse) : nullptr;
      if (inner != nullptr) return ReplaceBy(node, inner->inputs[0]);
    }
    for (const char* idempotent : {"abs", "floor", "ceil", "round", "trunc", "sign"}) {
      if (fn == idempotent && rewriter_.ProducerOf(x, "Unary", idempotent) != nullptr)
        return ReplaceBy(node, x);
    }
    return false;
  }

  // Whether `value` is a neutral right operand: x fn value = x.
  static bool IsNeutral(const std::string& fn, double value) {
    if (fn == "add" || fn == "sub") return value == 0;
    return (fn == "mul" || fn == "div" || fn == "pow") && value == 1;
  }

  absl::StatusOr<bool> SimplifyBinary(const Node& node) {
    const std::string fn = FunctionOf(node);
    const TensorType type = TypeOf(node.outputs[0]);
    const ValueId a = node.inputs[0];
    const ValueId b = node.inputs[1];
    const std::optional<double> left = rewriter_.Uniform(a);
    const std::optional<double> right = rewriter_.Uniform(b);
    if (right && IsNeutral(fn, *right) && TypeOf(a) == type) return ReplaceBy(node, a);
    const bool commutes = fn == "add" || fn == "mul";
    if (left && commutes && IsNeutral(fn, *left) && TypeOf(b) == type) return ReplaceBy(node, b);
    if (!ir::IsFloat(type.dtype)) return false;
    if (fn == "mul" && (left == -1.0 || right == -1.0)) return Negate(node, left == -1.0 ? b : a);
    if (fn == "sub" && left == 0.0) return Negate(node, b);
    if (fn == "pow" && right) return SimplifyPower(node, *right);
    if (fn == "div" && right) return DivideByPowerOfTwo(node, *right);
    if (fn == "div" && left == 1.0) return SimplifyReciprocal(node);
    if (fn == "max" || fn == "min") return MergeBounds(node, fn);
    return false;
  }

  // -1 · x and 0 - x, which differs from -x in the sign of a zero.
  absl::StatusOr<bool> Negate(const Node& node, ValueId x) {
    if (TypeOf(x) != TypeOf(node.outputs[0])) return false;
    return ReplaceBy(node, "Unary", "neg", {x});
  }

  absl::StatusOr<bool> SimplifyPower(const Node& node, double exponent) {
    const ValueId x = node.inputs[0];
    if (TypeOf(x) != TypeOf(node.outputs[0])) return false;
    if (exponent == 2) return ReplaceBy(node, "Binary", "mul", {x, x});
    // sqrt(-0) is -0 and pow(-0, 0.5) is 0: equal.
    if (exponent == 0.5) return ReplaceBy(node, "Unary", "sqrt", {x});
    if (exponent == -0.5) return ReplaceBy(node, "Unary", "rsqrt", {x});
    return false;
  }

  // x / c = x · (1/c) when c is a power of two and both are normal numbers: f16, whose exponents go
  // from -14 to 15, has no 2^17, and some processors flush what is smaller than the normal ones.
  absl::StatusOr<bool> DivideByPowerOfTwo(const Node& node, double divisor) {
    int exponent = 0;
    if (divisor == 0 || !std::isfinite(divisor) || std::abs(std::frexp(divisor, &exponent)) != 0.5)
      return false;
    const TensorType type = TypeOf(node.inputs[1]);
    // frexp's fraction is 1/2: the divisor is 2^(exponent - 1).
    if (std::abs(exponent - 1) > (type.dtype == ir::DType::kF16 ? 14 : 64)) return false;
    const std::vector<double> values(static_cast<size_t>(type.NumElements()), 1.0 / divisor);
    const ConstantPtr factor = MakeConstant(type.dtype, type.shape, values);
    if (factor->DoubleAt(0) != values[0]) return false;
    return ReplaceBy(node, "Binary", "mul", {node.inputs[0], rewriter_.AddConstant(factor)});
  }

  // 1 / (1 + exp(-x)) is the sigmoid, 1 / sqrt(x) the reciprocal root.
  absl::StatusOr<bool> SimplifyReciprocal(const Node& node) {
    const ValueId x = node.inputs[1];
    if (TypeOf(x) != TypeOf(node.outputs[0])) return false;
    if (const Node* root = rewriter_.ProducerOf(x, "Unary", "sqrt"))
      return ReplaceBy(node, "Unary", "rsqrt", {root->inputs[0]});
    const Node* sum = rewriter_.ProducerOf(x, "Binary", "add");
    if (sum == nullptr) return false;
    for (size_t k = 0; k < 2; ++k) {
      const std::optional<double> one = rewriter_.Uniform(sum->inputs[k]);
      const Node* power = rewriter_.ProducerOf(sum->inputs[1 - k], "Unary", "exp");
      if (one != 1.0 || power == nullptr) continue;
      const Node* negated = rewriter_.ProducerOf(power->inputs[0], "Unary", "neg");
      if (negated == nullptr || TypeOf(negated->inputs[0]) != TypeOf(x)) continue;
      return ReplaceBy(node, "Unary", "sigmoid", {negated->inputs[0]});
    }
    return false;
  }

  // max(max(x, a), b) = max(x, max(a, b)) for constants.
  absl::StatusOr<bool> MergeBounds(const Node& node, const std::string& fn) {
    for (size_t k = 0; k < 2; ++k) {
      const std::optional<double> outer = rewriter_.Uniform(node.inputs[1 - k]);
      const Node* inner = rewriter_.ProducerOf(node.inputs[k], "Binary", fn);
      if (!outer || inner == nullptr || TypeOf(node.inputs[1 - k]).NumElements() != 1) continue;
      for (size_t j = 0; j < 2; ++j) {
        const std::optional<double> bound = rewriter_.Uniform(inner->inputs[1 - j]);
        const ValueId x = inner->inputs[j];
        if (!bound || TypeOf(x) != TypeOf(node.outputs[0])) continue;
        const double both = fn == "max" ? std::max(*outer, *bound) : std::min(*outer, *bound);
        const ValueId limit = rewriter_.AddConstant(MakeConstant(TypeOf(x).dtype, {}, {both}));
        return ReplaceBy(node, "Binary", fn.c_str(), {x, limit});
      }
    }
    return false;
  }

  absl::StatusOr<bool> SimplifySelect(const Node& node) {
    const std::optional<double> condition = rewriter_.Uniform(node.inputs[0]);
    const TensorType type = TypeOf(node.outputs[0]);
    if (condition) {
      const ValueId taken = node.inputs[*condition != 0 ? 1 : 2];
      if (TypeOf(taken) == type) return ReplaceBy(node, taken);
    }
    if (node.inputs[1] == node.inputs[2] && TypeOf(node.inputs[1]) == type)
      return ReplaceBy(node, node.inputs[1]);
    return false;
  }

  // x and the factor of x · factor, one number.
  struct Scaled {
    ValueId x = kNoValue;
    double factor = 0;
  };
  std::optional<Scaled> AsScaled(ValueId id) const {
    const Node* product = rewriter_.ProducerOf(id, "Binary", "mul");
    for (size_t k = 0; product != nullptr && k < 2; ++k) {
      const std::optional<double> factor = rewriter_.Uniform(product->inputs[k]);
      const ValueId x = product->inputs[1 - k];
      if (factor && std::isfinite(*factor) && TypeOf(x) == TypeOf(id)) return Scaled{x, *factor};
    }
    return std::nullopt;
  }

  // (x · a) × (y · b) = x × (y · ab): attention that scales queries and keys. The left factor of a
  // product is read again and again, the right one is copied into panels once.
  absl::StatusOr<bool> ScaleOneFactor(const Node& node) {
    if (TypeOf(node.outputs[0]).dtype != ir::DType::kF32) return false;
    const std::optional<Scaled> left = AsScaled(node.inputs[0]), right = AsScaled(node.inputs[1]);
    if (!left || !right) return false;
    const double factor = left->factor * right->factor;
    if (!std::isnormal(static_cast<float>(factor))) return false;
    const ValueId constant = rewriter_.AddConstant(MakeConstant(ir::DType::kF32, {}, {factor}));
    HONE_ASSIGN_OR_RETURN(
        const ValueId scaled,
        rewriter_.Add("Binary", node.origin, {right->x, constant}, {{"fn", std::string("mul")}}));
    Node product = node;
    product.outputs.clear();
    product.inputs = {left->x, scaled};
    HONE_ASSIGN_OR_RETURN(const ValueId result, rewriter_.Add(std::move(product)));
    return ReplaceBy(node, result);
  }

  Rewriter rewriter_;
  Graph& graph_;
};

}  // namespace

absl::StatusOr<int> SimplifyArithmetic(Graph& graph, const PassContext&) {
  int total = 0;
  for (int walk = 0; walk < 8; ++walk) {
    HONE_ASSIGN_OR_RETURN(const int changes, ArithmeticSimplifier(graph).Run());
    total += changes;
    if (changes == 0) break;
  }
  return total;
}

}  // namespace hone::graph
