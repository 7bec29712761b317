#include "schedule/nest_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/status.h"
#include "ir/combiner.h"
#include "ir/mma.h"
#include "schedule/loop_passes.h"
#include "schedule/scan_rules.h"

namespace hone::schedule {

using ir::Expr;
using ir::Stmt;

namespace {

constexpr int64_t kMaxLanes = 64;
constexpr int64_t kMaxUnroll = 512;

/// Statements of one nest; more come from partitions of partitions and would take minutes to
/// compile.
constexpr int64_t kMaxLeaves = 1 << 15;

bool IsThread(ir::LoopKind kind) {
  return kind == ir::LoopKind::kThreadX || kind == ir::LoopKind::kThreadY;
}
bool IsBlock(ir::LoopKind kind) {
  return kind >= ir::LoopKind::kBlockX && kind <= ir::LoopKind::kBlockZ;
}

absl::Status CheckExtent(const LoopNode& node, int64_t count) {
  if (node.kind == ir::LoopKind::kVector && count > kMaxLanes) {
    return absl::InvalidArgumentError(fmt::format(
        "{} has {} iterations; a vector has at most {} lanes", node.name, count, kMaxLanes));
  }
  if (node.kind == ir::LoopKind::kDot && count != 2 && count != 4) {
    return absl::InvalidArgumentError(
        fmt::format("{} has {} iterations; a dot product has 2 or 4", node.name, count));
  }
  const bool matrices = node.kind == ir::LoopKind::kMma || node.kind == ir::LoopKind::kWgmma;
  if (matrices && count != ir::kMmaRowHalves) {
    return absl::InvalidArgumentError(
        fmt::format("{} has {} iterations; an mma has 2 rows of each thread", node.name, count));
  }
  if (node.kind == ir::LoopKind::kUnrolled && count > kMaxUnroll) {
    return absl::InvalidArgumentError(
        fmt::format("{} has {} iterations; at most {} are unrolled", node.name, count, kMaxUnroll));
  }
  return absl::OkStatus();
}

/// A reduce loop on so many threads of a row: a warp must hold whole rows.
absl::Status CheckLaneCount(const LoopNode& node, int64_t count, int64_t threads) {
  const bool whole = count == threads && count >= 2 && count <= 32 &&
                     std::has_single_bit(static_cast<uint64_t>(count));
  if (whole) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} has {} iterations on {} threads; lanes combine what all of 2, 4, 8, 16 or 32 "
                  "threads have",
                  node.name, count, threads));
}

}  // namespace

NestBuilder::NestBuilder(const Schedule& schedule, const std::vector<int>& stage_order)
    : s_(schedule), stage_order_(stage_order) {
  location_.resize(schedule.workload.tensors.size());
}

int NestBuilder::NewVar(int64_t extent) {
  ranges_.extent.push_back(extent);
  return static_cast<int>(ranges_.extent.size()) - 1;
}

int NestBuilder::NewBuffer(ir::Buffer buffer) {
  nest_.buffers.push_back(std::move(buffer));
  return static_cast<int>(nest_.buffers.size()) - 1;
}

void NestBuilder::AddArgument(int tensor, const BufferBinding& binding, bool given) {
  const ir::Tensor& t = s_.workload.tensors[tensor];
  ir::Buffer b;
  b.name = t.name;
  b.scope = ir::Scope::kArgument;
  b.dtype = t.dtype;
  b.argument = num_arguments_++;
  b.read_only = given;
  b.alignment = binding.alignment;
  Location& at = location_[tensor];
  at.extent = t.shape;
  at.offset = binding.offset;
  at.strides = binding.strides;
  if (at.strides.empty()) {
    at.strides.resize(t.shape.size());
    int64_t stride = 1;
    for (size_t d = t.shape.size(); d-- > 0; stride *= t.shape[d]) at.strides[d] = stride;
    // A private result may have its rows padded.
    int producer = s_.workload.Producer(tensor);
    if (producer >= 0 && !t.output && !s_.stages[producer].align.empty()) {
      stride = 1;
      for (size_t d = t.shape.size(); d-- > 0;) {
        at.strides[d] = stride;
        stride = stride * t.shape[d] + s_.stages[producer].align[d];
      }
    }
  }
  if (MayOverwrite(s_, tensor)) at.strides[0] = 0;
  b.elements = 1 + at.offset;
  for (size_t d = 0; d < t.shape.size(); ++d) b.elements += (t.shape[d] - 1) * at.strides[d];
  at.buffer = NewBuffer(std::move(b));
}

absl::Status NestBuilder::CheckTuples() const {
  for (int id : stage_order_) {
    const ir::Stage& stage = s_.workload.stages[id];
    if (stage.results.size() < 2) continue;
    const Location& a = location_[stage.results[0]];
    const Location& b = location_[stage.results[1]];
    if (a.buffer < 0 || b.buffer < 0 || (a.strides == b.strides && a.offset == b.offset)) continue;
    return absl::InvalidArgumentError(fmt::format(
        "{}: the binding gives its two results different strides or offsets", stage.name));
  }
  return absl::OkStatus();
}

bool NestBuilder::NeedsWholeBuffer(const Schedule& schedule, int tensor) {
  const int producer = schedule.workload.Producer(tensor);
  if (producer < 0) return true;
  if (schedule.stages[producer].epilogue >= 0) return false;
  if (schedule.stages[producer].place != Place::kAt &&
      schedule.stages[producer].place != Place::kInline)
    return true;
  const ir::Stage& made = schedule.workload.stages[producer];
  for (int result : made.results) {
    if (schedule.workload.tensors[result].output) return true;
  }
  if (made.scan < 0) return false;
  bool carried = false;
  for (const auto& stage : schedule.workload.stages) {
    for (const auto& body : stage.body) {
      ir::Visit(body, [&](const ir::ExprNode& e) {
        if (e.kind != ir::ExprKind::kLoad) return;
        if (std::find(made.results.begin(), made.results.end(), e.id) == made.results.end()) return;
        carried |= stage.scan != made.scan || IsCarriedLoad(schedule.workload, made.scan, e);
      });
    }
  }
  return carried;
}

void NestBuilder::AddTable(int tensor) {
  if (location_[tensor].buffer >= 0) return;
  const ir::Tensor& t = s_.workload.tensors[tensor];
  ir::Buffer b;
  b.name = t.name;
  b.scope = ir::Scope::kTable;
  b.dtype = t.dtype;
  b.elements = t.NumElements();
  b.read_only = true;
  b.table = t.immediate;
  Location& at = location_[tensor];
  at.extent = t.shape;
  at.strides.resize(t.shape.size());
  int64_t stride = 1;
  for (size_t d = t.shape.size(); d-- > 0; stride *= t.shape[d]) at.strides[d] = stride;
  at.buffer = NewBuffer(std::move(b));
}

Stmt NestBuilder::Guard(Stmt stmt, const std::vector<Expr>& conditions) {
  Expr all, loaded;
  for (size_t k = 0; k < conditions.size(); ++k) {
    const Expr& c = conditions[k];
    if (auto v = ir::AsInt(c); v && *v) continue;
    const auto end = conditions.begin() + static_cast<std::ptrdiff_t>(k);
    if (std::any_of(conditions.begin(), end,
                    [&](const Expr& before) { return ir::Equal(before, c); }))
      continue;
    Expr& side = ir::HasLoad(c) ? loaded : all;
    side = side ? ir::And(side, c) : c;
  }
  // What a condition loads may exist only where the others hold.
  if (loaded) stmt = ir::If(loaded, std::move(stmt));
  return all ? ir::If(all, std::move(stmt)) : stmt;
}

void NestBuilder::PlaceGuards(Emitted& e, int var) {
  std::vector<Expr> here;
  for (auto* list : {&e.domain, &e.value}) {
    std::vector<Expr> rest;
    for (const Expr& c : *list) {
      (var < 0 || ir::DependsOnVar(c, var) ? here : rest).push_back(c);
    }
    *list = std::move(rest);
  }
  e.stmt = Guard(std::move(e.stmt), here);
}

// ---- loops ----

ir::LoopKind NestBuilder::KindOf(int stage, size_t position) const {
  const StageSchedule& schedule = s_.stages[stage];
  const LoopNode& node = schedule.loops[schedule.order[position]];
  bool sequential = s_.workload.stages[stage].scan >= 0 && node.origin == LoopNode::Origin::kAxis &&
                    node.axis == 0;
  if (sequential && position == 0 && schedule.place == Place::kRoot) return ir::LoopKind::kStep;
  return node.kind;
}

absl::StatusOr<NestBuilder::Emitted> NestBuilder::Loops(Instance& instance, size_t position,
                                                        Walk& walk) {
  const StageSchedule& stage = s_.stages[instance.stage];
  if (position == stage.order.size()) {
    if (++num_leaves_ > kMaxLeaves) {
      return absl::InvalidArgumentError(
          fmt::format("the loop nest has more than {} statements; partition less", kMaxLeaves));
    }
    return walk.leaf(instance);
  }
  const int loop = stage.order[position];
  const bool reduce = s_.IsReduce({instance.stage, loop});
  if (reduce && !walk.reduce_loops) return Loops(instance, position + 1, walk);
  if (reduce && !walk.initialised && stage.cache_write && walk.attach) {
    // A tile inside the reduce loops starts itself: see TileBody.
    const auto& order = stage.order;
    bool inside = std::find(order.begin() + static_cast<std::ptrdiff_t>(position), order.end(),
                            stage.cache_write->loop) != order.end();
    if (inside) walk.initialised = true;
  }
  if (reduce && !walk.initialised) {
    walk.initialised = true;
    HONE_ASSIGN_OR_RETURN(Stmt init, IdentityNest(instance, position));
    HONE_ASSIGN_OR_RETURN(Emitted update, Loops(instance, position, walk));
    walk.initialised = false;
    update.stmt = Guard(std::move(update.stmt), update.value);
    update.value.clear();
    // From where there is no element something may be computed that nobody needs.
    if (KeptByThread(instance.stage)) PlaceGuards(update, -1);
    update.stmt = ir::Block({init, update.stmt});
    return update;
  }
  HONE_ASSIGN_OR_RETURN(std::vector<Segment> segments, SegmentsOf(s_, instance, loop));
  if (segments.size() == 1) return EnterSegment(instance, position, segments[0], true, walk);
  std::vector<Stmt> siblings;
  for (const Segment& segment : segments) {
    HONE_ASSIGN_OR_RETURN(Emitted e, EnterSegment(instance, position, segment, false, walk));
    siblings.push_back(e.stmt);
  }
  return Emitted{ir::Block(std::move(siblings)), {}, {}};
}

absl::StatusOr<NestBuilder::Emitted> NestBuilder::EnterSegment(Instance& instance, size_t position,
                                                               const Segment& segment, bool only,
                                                               Walk& walk) {
  const int loop = s_.stages[instance.stage].order[position];
  const LoopNode& node = s_.stages[instance.stage].loops[loop];
  HONE_RETURN_IF_ERROR(CheckExtent(node, segment.count));
  if (node.kind == ir::LoopKind::kDot && position + 1 < s_.stages[instance.stage].order.size()) {
    return absl::InvalidArgumentError(
        fmt::format("the dot product's loop {} is not the innermost", node.name));
  }
  const bool thread = IsThread(node.kind), block = IsBlock(node.kind),
             parallel = node.kind == ir::LoopKind::kParallel;
  ThreadLoop& in_force = threads_[node.kind == ir::LoopKind::kThreadX ? 0 : 1];
  if (thread && in_force.var >= 0) return EnterThread(instance, position, segment, walk);
  if ((thread || block) && s_.stages[instance.stage].place != Place::kRoot) {
    return absl::InvalidArgumentError(
        fmt::format("{} is {}, but no loop around it is", node.name, ir::ToString(node.kind)));
  }
  if (thread && s_.IsReduce({instance.stage, loop}))
    HONE_RETURN_IF_ERROR(CheckLaneCount(node, segment.count, segment.count));
  int var = -1;
  Expr index = ir::Int(segment.first);
  if (segment.count > 1 || thread || block || parallel) {
    var = NewVar(segment.count);
    index = segment.count > 1 ? ir::Var(var) + segment.first : index;
  }
  EnterLoop(s_, instance, loop, segment, index);
  if (thread) in_force = {var, segment.count};
  if (parallel)
    HONE_RETURN_IF_ERROR(CheckWholeResultsInside(instance, position, var, segment.count, only));
  auto body = LoopBody(instance, position, walk);
  if (parallel) share_.clear();
  if (thread) in_force = {};
  LeaveLoop(s_, instance, loop);
  if (!body.ok()) return body.status();
  Emitted e = *std::move(body);
  if (var >= 0) {
    // Nothing may stand between the loops of a grid.
    PlaceGuards(e, thread ? -1 : var);
    ir::LoopKind kind = KindOf(instance.stage, position);
    // Without its terms it is a loop as others.
    const bool matrices = kind == ir::LoopKind::kMma || kind == ir::LoopKind::kWgmma;
    if (matrices && !walk.reduce_loops) kind = ir::LoopKind::kUnrolled;
    if (kind == ir::LoopKind::kTile && !walk.reduce_loops) kind = ir::LoopKind::kSerial;
    e.stmt = ir::For(var, segment.count, kind, std::move(e.stmt));
    if (kind == ir::LoopKind::kMma) HONE_RETURN_IF_ERROR(CheckMma(e, node.name));
    if (kind == ir::LoopKind::kTile) HONE_RETURN_IF_ERROR(CheckTile(e, node.name));
    if (kind == ir::LoopKind::kWgmma) HONE_RETURN_IF_ERROR(FinishWgmma(node.name, &e));
  }
  if (!e.before.empty()) {
    std::vector<Stmt> parts = std::exchange(e.before, {});
    parts.push_back(std::move(e.stmt));
    for (Stmt& wait : std::exchange(e.after, {})) parts.push_back(std::move(wait));
    // A next run of the loop begins with tiles that some thread may still read.
    if (position > 0 && IsRepeated(instance, position - 1)) parts.push_back(ir::Sync());
    e.stmt = ir::Block(std::move(parts));
  }
  if (!only) PlaceGuards(e, -1);
  return e;
}

/// A loop of a Stage computed inside the thread loops runs on those threads: its index is the
/// thread's number.
absl::StatusOr<NestBuilder::Emitted> NestBuilder::EnterThread(Instance& instance, size_t position,
                                                              const Segment& segment, Walk& walk) {
  const int loop = s_.stages[instance.stage].order[position];
  const LoopNode& node = s_.stages[instance.stage].loops[loop];
  const ThreadLoop& in_force = threads_[node.kind == ir::LoopKind::kThreadX ? 0 : 1];
  if (segment.count > in_force.count) {
    return absl::InvalidArgumentError(
        fmt::format("{} has {} iterations, but there are {} threads; split it", node.name,
                    segment.count, in_force.count));
  }
  if (s_.IsReduce({instance.stage, loop}))
    HONE_RETURN_IF_ERROR(CheckLaneCount(node, segment.count, in_force.count));
  Instance::Bound& bound = instance.bound[loop];
  bound.fixed = true;
  bound.value = ir::Var(in_force.var) + segment.first;
  auto body = LoopBody(instance, position, walk);
  instance.bound[loop] = {};
  if (!body.ok()) return body.status();
  Emitted e = *std::move(body);
  PlaceGuards(e, -1);
  if (segment.count < in_force.count)
    e.stmt = ir::If(ir::Lt(ir::Var(in_force.var), ir::Int(segment.count)), std::move(e.stmt));
  return e;
}

absl::StatusOr<NestBuilder::Emitted> NestBuilder::LoopBody(Instance& instance, size_t position,
                                                           Walk& walk) {
  const StageSchedule& stage = s_.stages[instance.stage];
  const int loop = stage.order[position];
  const int64_t scratch = scratch_top_;
  std::vector<Stmt> body;
  std::vector<std::pair<int, Location>> saved;  // of what is computed here
  std::map<int, Instance> needed;
  bool shared = false;
  std::vector<Stmt> before, after;
  Expr needed_step;
  const bool ahead =
      walk.attach && stage.loops[loop].stages > 1 && ExtentOf(s_, instance, loop) > 1;
  if (walk.attach) {
    HONE_RETURN_IF_ERROR(CheckCarriedInside(instance, position));
    HONE_ASSIGN_OR_RETURN(needed_step, IsStepNeeded(instance, position));
    for (int q : stage_order_) {
      if (!AttachedAt(q, instance.stage, loop)) continue;
      for (int r : s_.workload.stages[q].results) saved.emplace_back(r, location_[r]);
    }
    if (saved.empty() && ahead) {
      return absl::InvalidArgumentError(fmt::format("pipeline({}, {}): nothing is computed there",
                                                    stage.loops[loop].name,
                                                    stage.loops[loop].stages));
    }
    if (!saved.empty()) {
      needed = needed_;
      if (ahead)
        HONE_RETURN_IF_ERROR(AttachAhead(instance, position, &before, &body, &after));
      else
        HONE_RETURN_IF_ERROR(Attach(instance, position, &body, &shared));
      shared |= ahead;
    }
  }
  const bool tile = walk.attach && stage.cache_write && stage.cache_write->loop == loop;
  HONE_ASSIGN_OR_RETURN(Emitted e, tile ? TileBody(instance, position + 1, walk)
                                        : Loops(instance, position + 1, walk));
  products_ahead_ = products_ahead_ && !ahead;
  if (!saved.empty()) needed_ = std::move(needed);
  for (auto& [tensor, location] : saved) location_[tensor] = std::move(location);
  scratch_top_ = scratch;
  if (walk.attach && !stage.loops[loop].prefetches.empty()) {
    std::vector<Stmt> parts;
    HONE_RETURN_IF_ERROR(AddPrefetches(instance, position, &parts));
    parts.push_back(std::move(e.stmt));
    e.stmt = ir::Block(std::move(parts));
  }
  if (!body.empty()) {
    // Producers attached here run whatever the consumer's guards say; only guards of the loops
    // around may move out, and not even those where threads work together.
    if (shared) PlaceGuards(e, -1);
    e.stmt = Guard(std::move(e.stmt), e.value);
    e.value.clear();
    body.push_back(e.stmt);
    // The next iteration overwrites what is in shared memory: not before all threads have read it.
    if (shared && !ahead && IsRepeated(instance, position)) body.push_back(ir::Sync());
    e.stmt = ir::Block(std::move(body));
  }
  if (needed_step) e.stmt = Guard(std::move(e.stmt), {needed_step});
  e.before = std::move(before);
  e.after = std::move(after);
  return e;
}

bool NestBuilder::KeptByThread(int stage) const {
  const StageSchedule& schedule = s_.stages[stage];
  return threads_[0].var >= 0 && schedule.place == Place::kAt &&
         schedule.storage == Storage::kRegister;
}

absl::StatusOr<NestBuilder::Emitted> NestBuilder::Compute(Instance& instance) {
  HONE_RETURN_IF_ERROR(CheckLanes(instance.stage));
  Walk walk;
  walk.initialised = s_.workload.stages[instance.stage].combiner == ir::Combiner::kNone;
  walk.leaf = [this](Instance& at) { return StoreLeaf(at); };
  return Loops(instance, 0, walk);
}

absl::StatusOr<ir::Phase> NestBuilder::BuildPhase(int stage_id) {
  HONE_RETURN_IF_ERROR(CheckOrderOfRoot(stage_id));
  HONE_RETURN_IF_ERROR(CheckBoundLoops(stage_id));
  HONE_RETURN_IF_ERROR(CheckEpilogue(stage_id));
  scratch_top_ = scratch_high_ = 0;
  Instance instance(s_, stage_id);
  HONE_ASSIGN_OR_RETURN(Emitted e, Compute(instance));
  PlaceGuards(e, -1);
  ir::Phase phase;
  phase.body = PeelMaskedTails(FuseLoops(e.stmt, nest_.buffers, ranges_), ranges_);
  phase.scratch_bytes = scratch_high_;
  for (int loop : s_.stages[stage_id].order) {
    const LoopNode& n = s_.stages[stage_id].loops[loop];
    if (n.kind != ir::LoopKind::kParallel) continue;
    phase.parallel_extent = ExtentOf(s_, instance, loop);
    phase.threads = n.threads;
  }
  nest_.num_vars = static_cast<int>(ranges_.extent.size());
  return phase;
}

}  // namespace hone::schedule
