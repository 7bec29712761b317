#include <fmt/format.h>

#include <utility>

#include "base/status.h"
#include "ir/async_copy.h"
#include "ir/box_copy.h"
#include "ir/wgmma.h"
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
//
// Around wgmma loops (ir/wgmma.h) copies are one iteration less ahead where there are three tiles
// or more. The products of iteration v - 1 still read their tile while v begins; those of v - 2 are
// done, so that only their tile may be written again. A fence makes what threads have copied
// visible to the products.
namespace hone::schedule {

using ir::Expr;
using ir::Stmt;

absl::Status NestBuilder::CheckAhead(const Instance& instance, size_t position) const {
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
  if (node.boxes && (ProductsInside(instance, position) == 0 || IsRepeated(instance, position - 1)))
    return refuse("boxes are for slices that wgmma reads, and for one run of the loop");
  return absl::OkStatus();
}

/// What begins to make the tiles of an iteration, and where its readers find them.
absl::StatusOr<Stmt> NestBuilder::CopiesOf(Instance& instance, size_t position,
                                           const Expr& iteration, Pipeline* pipeline) {
  Expr& now = instance.bound[s_.stages[instance.stage].order[position]].value;
  const Expr before = std::exchange(now, iteration);
  pipeline->slot =
      ir::Simplify(ir::Binary(ir::BinaryOp::kMod, iteration, ir::Int(pipeline->stages)), ranges_);
  pipeline->bytes = 0;
  std::vector<Stmt> made;
  bool shared = false;
  pipeline_ = pipeline;
  const absl::Status status = Attach(instance, position, &made, &shared);
  pipeline_ = nullptr;
  now = before;
  HONE_RETURN_IF_ERROR(status);
  // The wait and the sync before the readers stand elsewhere.
  made.pop_back();
  if (!pipeline->boxes()) return ir::Block(std::move(made));
  made.insert(made.begin(), ir::ExpectBoxes(pipeline->barriers, pipeline->slot, pipeline->bytes));
  return ByFirstThread(std::move(made));
}

/// Where an iteration waits for its tiles.
void NestBuilder::AwaitTiles(const Pipeline& pipeline, const Expr& now, int64_t groups,
                             int64_t products, std::vector<Stmt>* out) const {
  if (!pipeline.boxes()) {
    out->push_back(ir::AwaitCopies(groups));
    if (products > 0) out->push_back(ir::ShowToProducts());
    return;
  }
  const auto of = [&](ir::BinaryOp op, const Expr& e, int64_t n) {
    return ir::Simplify(ir::Binary(op, e, ir::Int(n)), ranges_);
  };
  const Expr round = of(ir::BinaryOp::kDiv, now, pipeline.stages);
  const Expr slot = of(ir::BinaryOp::kMod, now, pipeline.stages);
  out->push_back(ir::AwaitBoxes(groups, pipeline.barriers, slot, of(ir::BinaryOp::kMod, round, 2)));
}

absl::Status NestBuilder::AttachAhead(Instance& instance, size_t position,
                                      std::vector<Stmt>* before, std::vector<Stmt>* out,
                                      std::vector<Stmt>* after) {
  HONE_RETURN_IF_ERROR(CheckAhead(instance, position));
  const int loop = s_.stages[instance.stage].order[position];
  const LoopNode& node = s_.stages[instance.stage].loops[loop];
  const int64_t extent = ExtentOf(s_, instance, loop);
  const int64_t products = ProductsInside(instance, position);
  products_ahead_ = products > 0 && node.stages > 2;
  const int64_t distance = node.stages - (products_ahead_ ? 2 : 1);
  const Expr now = instance.bound[loop].value;
  Pipeline pipeline{.stages = node.stages};
  if (node.boxes) {
    pipeline.barriers = AddBarriers(node.stages);
    before->push_back(ByFirstThread({ir::BeginBarriers(pipeline.barriers, node.stages)}));
    before->push_back(ir::Sync());
  }
  const Stmt commit = node.boxes ? ir::CommitBoxes(pipeline.barriers) : ir::CommitCopies();
  for (int64_t k = 0; k < distance; ++k) {
    if (k < extent) {
      HONE_ASSIGN_OR_RETURN(Stmt first, CopiesOf(instance, position, ir::Int(k), &pipeline));
      before->push_back(std::move(first));
    }
    before->push_back(commit);
  }
  AwaitTiles(pipeline, now, distance - 1, products, out);
  if (products_ahead_) {
    const int sums = location_[s_.workload.stages[instance.stage].results[0]].buffer;
    out->push_back(ir::AwaitProducts(sums, products));
    after->push_back(ir::AwaitProducts(sums, 0));
  }
  out->push_back(ir::Sync());
  if (extent > distance) {
    const Expr later = now + distance;
    // Inside of the condition below the loop is that much shorter: no slice sticks out.
    int var = -1;
    ir::Visit(now, [&](const ir::ExprNode& e) {
      if (e.kind == ir::ExprKind::kVar) var = e.id;
    });
    const int64_t whole = std::exchange(ranges_.extent[var], extent - distance);
    auto made = CopiesOf(instance, position, later, &pipeline);
    ranges_.extent[var] = whole;
    if (!made.ok()) return made.status();
    Stmt ahead = *std::move(made);
    out->push_back(ir::If(ir::Lt(later, ir::Int(extent)), std::move(ahead)));
  }
  out->push_back(commit);
  // Where this iteration's readers find what was made for it.
  return CopiesOf(instance, position, now, &pipeline).status();
}

}  // namespace hone::schedule
