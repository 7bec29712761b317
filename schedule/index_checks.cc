#include <set>

#include "base/status.h"
#include "ir/artifact.h"
#include "ir/checked_index.h"
#include "schedule/nest_builder.h"

// Looking at indices that come from data, once, before the kernel's loops.
namespace hone::schedule {

using ir::Expr;

namespace {

/// Fewer are looked at by one thread: a barrier costs as much.
constexpr int64_t kGrain = 1 << 15;

std::set<int> AxesIn(const ir::CheckedIndex& check) {
  std::set<int> axes;
  const auto add = [&](const ir::ExprNode& e) {
    if (e.kind == ir::ExprKind::kVar) axes.insert(e.id);
  };
  ir::Visit(check.value, add);
  if (check.condition != nullptr) ir::Visit(check.condition, add);
  return axes;
}

bool LoadsAny(const ir::CheckedIndex& check, const std::set<int>& tensors) {
  bool loads = false;
  const auto look = [&](const ir::ExprNode& e) {
    loads |= e.kind == ir::ExprKind::kLoad && tensors.contains(e.id);
  };
  ir::Visit(check.value, look);
  if (check.condition != nullptr) ir::Visit(check.condition, look);
  return loads;
}

}  // namespace

absl::StatusOr<std::optional<ir::Phase>> NestBuilder::BuildIndexChecks(const ir::Workload& workload,
                                                                       const std::set<int>& unread,
                                                                       const ir::Target& target) {
  std::vector<ir::CheckedIndex> checks = ir::CheckedIndices(workload);
  std::erase_if(checks, [&](const ir::CheckedIndex& check) { return LoadsAny(check, unread); });
  if (checks.empty()) return std::nullopt;
  ir::Phase phase;
  std::vector<ir::Stmt> parts;
  for (const ir::CheckedIndex& check : checks) {
    const ir::Stage& stage = workload.stages[check.stage];
    std::vector<Expr> axes(static_cast<size_t>(stage.num_axes()), ir::Int(0));
    std::vector<std::pair<int, int64_t>> loops;
    int64_t points = 1;
    for (const int axis : AxesIn(check)) {
      loops.emplace_back(NewVar(stage.Extent(axis)), stage.Extent(axis));
      axes[static_cast<size_t>(axis)] = ir::Var(loops.back().first);
      points *= stage.Extent(axis);
    }
    HONE_ASSIGN_OR_RETURN(const Expr value, LowerExpr(check.value, axes));
    const Expr outside = ir::Binary(ir::BinaryOp::kOr, ir::Lt(value, ir::Int(0)),
                                    ir::Ge(value, ir::Int(check.extent)));
    const int argument = nest_.buffers[location_[check.tensor].buffer].argument;
    ir::Stmt stmt = ir::If(outside, ir::Fail(ir::kPhaseBadIndex << 16 | argument));
    if (check.condition != nullptr) {
      HONE_ASSIGN_OR_RETURN(const Expr condition, LowerExpr(check.condition, axes));
      stmt = ir::If(condition, stmt);
    }
    // A phase has one parallel loop: with several indices one thread looks at all.
    const bool parallel = checks.size() == 1 && points >= kGrain && target.threads > 1;
    for (size_t k = loops.size(); k-- > 0;) {
      const ir::LoopKind kind =
          parallel && k == 0 ? ir::LoopKind::kParallel : ir::LoopKind::kSerial;
      stmt = ir::For(loops[k].first, loops[k].second, kind, stmt);
    }
    if (parallel) {
      phase.parallel_extent = loops[0].second;
      phase.threads = target.threads;
    }
    parts.push_back(std::move(stmt));
  }
  phase.body = parts.size() == 1 ? parts[0] : ir::Block(std::move(parts));
  nest_.num_vars = static_cast<int>(ranges_.extent.size());
  return phase;
}

}  // namespace hone::schedule
