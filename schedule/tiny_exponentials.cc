#include "schedule/tiny_exponentials.h"

#include <set>

#include "ir/expr.h"

namespace hone::schedule {

namespace {

using ir::Expr;
using ir::ExprKind;

constexpr double kSmallestNormal = -87.33654;  // log(2^-126), rounded towards zero

/// Follows what an expression reads.
class Reader {
 public:
  explicit Reader(const ir::Workload& workload) : w_(workload) {}

  /// Whether every value of `e` is the maximum of a row, of several blocks of it, or a constant in
  /// the place of one, and some value is no constant.
  bool IsMaximum(const Expr& e) { return MayBeMaximum(e) && reduced_; }

 private:
  bool MayBeMaximum(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kConst: return true;
      case ExprKind::kSelect: return MayBeMaximum(e->args[1]) && MayBeMaximum(e->args[2]);
      case ExprKind::kBinary:
        return e->binary() == ir::BinaryOp::kMax && MayBeMaximum(e->args[0]) &&
               MayBeMaximum(e->args[1]);
      case ExprKind::kLoad: return IsMadeByMaximum(w_.Producer(e->id));
      default: return false;
    }
  }
  bool IsMadeByMaximum(int producer) {
    if (producer < 0) return false;
    const ir::Stage& stage = w_.stages[static_cast<size_t>(producer)];
    if (stage.results.size() != 1) return false;
    reduced_ |= stage.combiner == ir::Combiner::kMax;
    if (stage.combiner == ir::Combiner::kMax) return true;
    // A running maximum reads itself.
    return stage.combiner == ir::Combiner::kNone &&
           (!seen_.insert(producer).second || MayBeMaximum(stage.body[0]));
  }

  const ir::Workload& w_;
  std::set<int> seen_;
  bool reduced_ = false;
};

}  // namespace

void ZeroTinyExponentials(ir::Workload& workload) {
  const auto replace = [&](const Expr& e) -> Expr {
    if (e->kind != ExprKind::kUnary || e->unary() != ir::UnaryOp::kExp) return nullptr;
    const Expr& x = e->args[0];
    if (e->dtype != ir::DType::kF32 || x->kind != ExprKind::kBinary ||
        x->binary() != ir::BinaryOp::kSub || !Reader(workload).IsMaximum(x->args[1]))
      return nullptr;
    const Expr tiny = ir::Lt(x, ir::Const(ir::DType::kF32, kSmallestNormal));
    return ir::Select(tiny, ir::Const(ir::DType::kF32, 0), e);
  };
  for (ir::Stage& stage : workload.stages) {
    for (Expr& body : stage.body) body = ir::Rewrite(body, replace);
  }
}

}  // namespace hone::schedule
