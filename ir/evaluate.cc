#include "ir/evaluate.h"

#include <array>
#include <utility>

#include "base/core/check.h"
#include "ir/integer.h"

namespace hone::ir {
namespace {

/// The shortcut for index arithmetic, which is most of the work: i64 expressions of constants and
/// variables with the commonest operators. False for all others.
bool PlainIndex(const ExprNode& e, std::span<const int64_t> vars, int64_t* result) {
  if (e.dtype != DType::kI64) return false;
  if (e.kind == ExprKind::kConst) {
    *result = e.int_value;
    return true;
  }
  if (e.kind == ExprKind::kVar) {
    if (static_cast<size_t>(e.id) >= vars.size()) return false;
    *result = vars[static_cast<size_t>(e.id)];
    return true;
  }
  int64_t a = 0;
  int64_t b = 0;
  if (e.kind != ExprKind::kBinary || !PlainIndex(*e.args[0], vars, &a) ||
      !PlainIndex(*e.args[1], vars, &b)) {
    return false;
  }
  switch (e.binary()) {
    case BinaryOp::kAdd: *result = WrapAdd(a, b); return true;
    case BinaryOp::kSub: *result = WrapSub(a, b); return true;
    case BinaryOp::kMul: *result = WrapMul(a, b); return true;
    case BinaryOp::kDiv: *result = FloorDivide(DType::kI64, a, b); return true;
    case BinaryOp::kMod: *result = FloorRemainder(DType::kI64, a, b); return true;
    default: return false;
  }
}

}  // namespace

int64_t ExprEvaluator::EvaluateIndex(const ExprNode& e, std::span<const int64_t> vars) {
  int64_t result = 0;
  return PlainIndex(e, vars, &result) ? result : Evaluate(e, vars).i;
}

void ExprEvaluator::FailWith(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

Value ExprEvaluator::EvaluateLoad(const ExprNode& load, std::span<const int64_t> vars) {
  constexpr size_t kMostIndices = 16;
  std::array<int64_t, kMostIndices> indices;
  HONE_CHECK(load.args.size() <= kMostIndices);
  for (size_t i = 0; i < load.args.size(); ++i) indices[i] = EvaluateIndex(*load.args[i], vars);
  if (failed()) return {};
  return LoadFrom(load, std::span(indices.data(), load.args.size()), vars);
}

Value ExprEvaluator::Evaluate(const ExprNode& e, std::span<const int64_t> vars) {
  if (failed()) return {};
  switch (e.kind) {
    case ExprKind::kConst: return {.f = e.float_value, .i = e.int_value};
    case ExprKind::kVar:
      HONE_CHECK(static_cast<size_t>(e.id) < vars.size()) << "variable " << e.id << " has no value";
      return {.i = vars[static_cast<size_t>(e.id)]};
    case ExprKind::kLoad: return EvaluateLoad(e, vars);
    case ExprKind::kCast: return ApplyCast(e.args[0]->dtype, e.dtype, Evaluate(*e.args[0], vars));
    case ExprKind::kSelect: {
      const Value condition = Evaluate(*e.args[0], vars);
      const ExprNode& taken = condition.i != 0 ? *e.args[1] : *e.args[2];
      if (condition.bound == 0) return Evaluate(taken, vars);
      return ApplySelect(e.dtype, condition, Evaluate(*e.args[1], vars),
                         Evaluate(*e.args[2], vars));
    }
    case ExprKind::kUnary: return Apply(e.unary(), e.args[0]->dtype, Evaluate(*e.args[0], vars));
    case ExprKind::kBinary: {
      Value x;
      Value y;
      if (PlainIndex(*e.args[0], vars, &x.i) && PlainIndex(*e.args[1], vars, &y.i)) {
        return Apply(e.binary(), DType::kI64, x, y);
      }
      const Value a = Evaluate(*e.args[0], vars);
      return Apply(e.binary(), e.args[0]->dtype, a, Evaluate(*e.args[1], vars));
    }
  }
  return {};
}

}  // namespace hone::ir
