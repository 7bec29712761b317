#include <fmt/format.h>

#include <utility>

#include "base/status.h"
#include "ir/async_copy.h"
#include "schedule/nest_builder.h"

// Shared tiles that are made some iterations ahead. With n tiles, n - 1 of them are on their way
// before the loop; an iteration waits for its own, starts the copies that are n - 1 iterations
// ahead, into the tile that the iteration before has read, and computes:
//
//   copies of 0 … n-2, each a group
//   for v:
//     wait until n-2 groups are left       the own one has landed
//     sync                                 everybody's has, and nobody reads the oldest tile now
//     if v + n-1 < extent: copies of v + n-1
//     commit                               a group each iteration, or the numbers would not fit
//     …
namespace hone::schedule {

using ir::Expr;
using ir::Stmt;

absl::Status NestBuilder::AttachAhead(Instance& instance, size_t position,
                                      std::vector<Stmt>* before, std::vector<Stmt>* out) {
  const StageSchedule& schedule = s_.stages[instance.stage];
  const int loop = schedule.order[position];
  const LoopNode& node = schedule.loops[loop];
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        fmt::format("pipeline({}, {}): {}", node.name, node.stages, why));
  };
  if (node.kind != ir::LoopKind::kSerial || pipeline_ != nullptr || threads_[0].var < 0)
    return refuse("it must be a serial loop inside of thread loops, outside of other pipelines");
  for (const int q : stage_order_) {
    if (!AttachedAt(q, instance.stage, loop)) continue;
    const ir::Stage& made = s_.workload.stages[q];
    bool plain = s_.stages[q].storage == Storage::kShared && made.results.size() == 1 &&
                 made.combiner == ir::Combiner::kNone && !NeedsWholeBuffer(s_, made.results[0]);
    for (const Expr& body : made.body) {
      ir::Visit(body, [&](const ir::ExprNode& e) {
        if (e.kind == ir::ExprKind::kLoad) plain &= ReadingFrom(e.id).whole();
      });
    }
    if (!plain) return refuse(fmt::format("{} is no copy of memory into shared memory", made.name));
  }
  const int64_t extent = ExtentOf(s_, instance, loop);
  const Expr now = instance.bound[loop].value;
  Pipeline pipeline{.stages = node.stages};
  const auto copies = [&](const Expr& iteration) -> absl::StatusOr<Stmt> {
    instance.bound[loop].value = iteration;
    pipeline.slot =
        ir::Simplify(ir::Binary(ir::BinaryOp::kMod, iteration, ir::Int(node.stages)), ranges_);
    std::vector<Stmt> made;
    bool shared = false;
    pipeline_ = &pipeline;
    const absl::Status status = Attach(instance, position, &made, &shared);
    pipeline_ = nullptr;
    instance.bound[loop].value = now;
    HONE_RETURN_IF_ERROR(status);
    // The wait and the sync before the readers stand elsewhere.
    made.pop_back();
    return ir::Block(std::move(made));
  };
  for (int64_t k = 0; k + 1 < node.stages; ++k) {
    if (k < extent) {
      HONE_ASSIGN_OR_RETURN(Stmt first, copies(ir::Int(k)));
      before->push_back(std::move(first));
    }
    before->push_back(ir::CommitCopies());
  }
  out->push_back(ir::AwaitCopies(node.stages - 2));
  out->push_back(ir::Sync());
  if (extent >= node.stages) {
    const Expr later = now + (node.stages - 1);
    // Inside of the condition below the loop is that much shorter: no slice sticks out.
    int var = -1;
    ir::Visit(now, [&](const ir::ExprNode& e) {
      if (e.kind == ir::ExprKind::kVar) var = e.id;
    });
    const int64_t whole = std::exchange(ranges_.extent[var], extent - (node.stages - 1));
    auto made = copies(later);
    ranges_.extent[var] = whole;
    if (!made.ok()) return made.status();
    Stmt ahead = *std::move(made);
    out->push_back(ir::If(ir::Lt(later, ir::Int(extent)), std::move(ahead)));
  }
  out->push_back(ir::CommitCopies());
  // Where this iteration's readers find what was made for it.
  return copies(now).status();
}

}  // namespace hone::schedule
