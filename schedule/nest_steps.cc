#include <algorithm>
#include <optional>

#include "base/status.h"
#include "ir/index/simplify.h"
#include "schedule/nest_builder.h"
#include "schedule/scan_rules.h"

// Which iterations of a scan are needed: no reader outside asks for later ones than it says. So the
// blocks of keys that a causal mask hides from all rows of a block are passed over.
namespace hone::schedule {

using ir::BinaryOp;
using ir::Expr;
using ir::ExprKind;

namespace {

/// An upper bound of an expression that grows with its variables, from theirs; null: it may not.
Expr UpperBound(const Expr& e, const std::vector<Expr>& upper) {
  if (e->kind == ExprKind::kConst) return e;
  if (e->kind == ExprKind::kVar) return upper[static_cast<size_t>(e->id)];
  if (e->kind != ExprKind::kBinary || e->dtype != ir::DType::kI64) return nullptr;
  const std::optional<int64_t> right = ir::AsInt(e->args[1]);
  bool grows = false;
  switch (e->binary()) {
    case BinaryOp::kAdd:
    case BinaryOp::kMin:
    case BinaryOp::kMax: grows = true; break;
    case BinaryOp::kSub: grows = right.has_value(); break;
    case BinaryOp::kMul: grows = right && *right >= 0; break;
    case BinaryOp::kDiv: grows = right && *right > 0; break;
    default: break;
  }
  if (!grows) return nullptr;
  const Expr a = UpperBound(e->args[0], upper), b = UpperBound(e->args[1], upper);
  return a && b ? ir::Binary(e->binary(), a, b) : nullptr;
}

/// The last iteration that this load, in a Stage outside of the scan, reads of the elements at
/// `made`; null: any.
Expr LastStepRead(const ir::ExprNode& load, const ir::Stage& reader,
                  const std::vector<Span>& made) {
  std::vector<Expr> upper;
  for (int a = 0; a < reader.num_axes(); ++a) upper.push_back(ir::Int(reader.Extent(a) - 1));
  for (size_t d = 1; d < load.args.size(); ++d) {
    const Expr& i = load.args[d];
    if (i->kind != ExprKind::kVar) continue;
    upper[static_cast<size_t>(i->id)] = made[d].low + (made[d].width - 1);
  }
  return UpperBound(load.args[0], upper);
}

}  // namespace

/// The condition under which this iteration of a scan is computed, where the loops around it tell;
/// null: always. It holds for all iterations up to some, so what it reads of earlier ones is there.
absl::StatusOr<Expr> NestBuilder::IsStepNeeded(const Instance& instance, size_t position) {
  const ir::Stage& owner = s_.workload.stages[instance.stage];
  const StageSchedule& schedule = s_.stages[instance.stage];
  const std::vector<int> leaves = LeavesOfT(schedule);
  if (owner.scan < 0 || schedule.place != Place::kRoot || schedule.order[0] == 0 ||
      schedule.order[position] != leaves.back())
    return nullptr;
  HONE_ASSIGN_OR_RETURN(const std::vector<Needed> inside, RegionsInside(instance, position));
  std::vector<Expr> lasts;
  bool known = true;
  for (int id : stage_order_) {
    const ir::Stage& reader = s_.workload.stages[id];
    for (int r : reader.results)
      known &= reader.scan != owner.scan || !s_.workload.tensors[r].output;
    if (reader.scan == owner.scan) continue;
    for (const Expr& body : reader.body) {
      ir::Visit(body, [&](const ir::ExprNode& e) {
        const int producer = e.kind == ExprKind::kLoad ? s_.workload.Producer(e.id) : -1;
        if (producer < 0 || s_.workload.stages[producer].scan != owner.scan) return;
        const auto made = std::ranges::find_if(
            inside, [&](const Needed& n) { return n.region.stage == producer; });
        const Expr last = made == inside.end() ? nullptr : LastStepRead(e, reader, made->axes);
        known &= last != nullptr;
        if (last) lasts.push_back(ir::Simplify(last, ranges_));
      });
    }
  }
  if (!known || lasts.empty()) return nullptr;
  const Expr t = SpanOfAxis(s_, instance, 0, ranges_).low;
  Expr needed;
  for (const Expr& last : lasts) {
    const Expr here = ir::Ge(last, t);
    if (ir::Decide(here, ranges_) == true) return nullptr;
    if (needed && ir::Equal(last, lasts[0])) continue;
    needed = needed ? ir::Binary(BinaryOp::kOr, needed, here) : here;
  }
  return ir::Simplify(needed, ranges_);
}

}  // namespace hone::schedule
