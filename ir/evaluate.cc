#include "ir/evaluate.h"

#include <array>
#include <utility>

#include "base/core/check.h"

namespace hone::ir {

void ExprEvaluator::FailWith(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

Value ExprEvaluator::EvaluateLoad(const ExprNode& load, std::span<const int64_t> vars) {
  constexpr size_t kMostIndices = 16;
  std::array<int64_t, kMostIndices> indices;
  HONE_CHECK(load.args.size() <= kMostIndices);
  for (size_t i = 0; i < load.args.size(); ++i) indices[i] = Evaluate(*load.args[i], vars).i;
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
      const Value a = Evaluate(*e.args[0], vars);
      return Apply(e.binary(), e.args[0]->dtype, a, Evaluate(*e.args[1], vars));
    }
  }
  return {};
}

}  // namespace hone::ir
