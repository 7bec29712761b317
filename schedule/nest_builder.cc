#include "schedule/nest_builder.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/status.h"
#include "ir/combiner.h"

namespace hone::schedule {

using ir::Expr;
using ir::Stmt;

namespace {

constexpr int64_t kMaxLanes = 64;
constexpr int64_t kMaxUnroll = 512;

bool IsIdentity(const Expr& e, ir::Combiner combiner) {
  return e->kind == ir::ExprKind::kConst && ir::Equal(e, ir::Identity(combiner, e->dtype, 0));
}

/// select(c, v, identity) → v under c; for sums also through the factors of a product, where a zero factor makes
/// the whole contribution zero.
Expr TakeGuards(const Expr& e, ir::Combiner combiner, std::vector<Expr>* guards) {
  if (e->kind == ir::ExprKind::kSelect && IsIdentity(e->args[2], combiner)) {
    SplitConjunction(e->args[0], guards);
    return TakeGuards(e->args[1], combiner, guards);
  }
  if (combiner == ir::Combiner::kSum && e->kind == ir::ExprKind::kBinary && e->binary() == ir::BinaryOp::kMul) {
    Expr a = TakeGuards(e->args[0], combiner, guards), b = TakeGuards(e->args[1], combiner, guards);
    return a * b;
  }
  if (combiner == ir::Combiner::kSum && e->kind == ir::ExprKind::kCast && !ir::IsBool(e->args[0]->dtype)) {
    return ir::Cast(e->dtype, TakeGuards(e->args[0], combiner, guards));
  }
  return e;
}

bool UsesAnyVar(const Expr& e) {
  if (e->kind == ir::ExprKind::kVar) return true;
  return std::any_of(e->args.begin(), e->args.end(), UsesAnyVar);
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

void NestBuilder::AddArgument(int tensor, const BufferBinding& binding) {
  const ir::Tensor& t = s_.workload.tensors[tensor];
  ir::Buffer b;
  b.name = t.name;
  b.scope = ir::Scope::kArgument;
  b.dtype = t.dtype;
  b.argument = num_arguments_++;
  b.read_only = t.kind != ir::TensorKind::kStage;
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
  b.elements = 1 + at.offset;
  for (size_t d = 0; d < t.shape.size(); ++d) b.elements += (t.shape[d] - 1) * at.strides[d];
  at.buffer = NewBuffer(std::move(b));
}

bool NestBuilder::NeedsWholeBuffer(const Schedule& schedule, int tensor) {
  const ir::Tensor& t = schedule.workload.tensors[tensor];
  if (t.output) return true;
  int producer = schedule.workload.Producer(tensor);
  if (producer < 0 || schedule.stages[producer].place == Place::kRoot) return true;
  const int scan = schedule.workload.stages[producer].scan;
  if (scan < 0) return false;
  bool carried = false;
  for (const auto& stage : schedule.workload.stages) {
    for (const auto& body : stage.body) {
      ir::Visit(body, [&](const ir::ExprNode& e) {
        if (e.kind != ir::ExprKind::kLoad || e.id != tensor) return;
        const Expr& t0 = e.args[0];
        carried |= !(stage.scan == scan && t0->kind == ir::ExprKind::kVar && t0->id == 0);
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
  Expr all;
  for (const Expr& c : conditions) {
    if (auto v = ir::AsInt(c); v && *v) continue;
    all = all ? ir::And(all, c) : c;
  }
  return all ? ir::If(all, std::move(stmt)) : stmt;
}

void NestBuilder::PlaceGuards(Emitted& e, int var) {
  std::vector<Expr> here;
  for (auto* list : {&e.domain, &e.value}) {
    std::vector<Expr> rest;
    for (const Expr& c : *list) {
      (var < 0 || DependsOnVar(c, var) ? here : rest).push_back(c);
    }
    *list = std::move(rest);
  }
  e.stmt = Guard(std::move(e.stmt), here);
}

// ---- loops ----

ir::LoopKind NestBuilder::KindOf(int stage, size_t position) const {
  const StageSchedule& schedule = s_.stages[stage];
  const LoopNode& node = schedule.loops[schedule.order[position]];
  bool sequential = s_.workload.stages[stage].scan >= 0 && node.origin == LoopNode::Origin::kAxis && node.axis == 0;
  if (sequential && position == 0 && schedule.place == Place::kRoot) return ir::LoopKind::kStep;
  return node.kind;
}

absl::StatusOr<NestBuilder::Emitted> NestBuilder::Loops(Instance& instance, size_t position, Walk& walk) {
  const StageSchedule& stage = s_.stages[instance.stage];
  if (position == stage.order.size()) return walk.leaf(instance);
  const int loop = stage.order[position];
  const bool reduce = s_.IsReduce({instance.stage, loop});
  if (reduce && !walk.reduce_loops) return Loops(instance, position + 1, walk);
  if (reduce && !walk.initialised && stage.cache_write && walk.attach) {
    // A tile inside the reduce loops starts itself: see TileBody.
    const auto& order = stage.order;
    bool inside = std::find(order.begin() + static_cast<std::ptrdiff_t>(position), order.end(), stage.cache_write->loop) != order.end();
    if (inside) walk.initialised = true;
  }
  if (reduce && !walk.initialised) {
    walk.initialised = true;
    HONE_ASSIGN_OR_RETURN(Stmt init, IdentityNest(instance, position));
    HONE_ASSIGN_OR_RETURN(Emitted update, Loops(instance, position, walk));
    walk.initialised = false;
    update.stmt = Guard(std::move(update.stmt), update.value);
    update.value.clear();
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
                                                               const Segment& segment, bool only, Walk& walk) {
  const int loop = s_.stages[instance.stage].order[position];
  const LoopNode& node = s_.stages[instance.stage].loops[loop];
  if (node.kind == ir::LoopKind::kVector && segment.count > kMaxLanes) {
    return absl::InvalidArgumentError(fmt::format("{} has {} iterations; a vector has at most {} lanes", node.name,
                                                  segment.count, kMaxLanes));
  }
  if (node.kind == ir::LoopKind::kUnrolled && segment.count > kMaxUnroll) {
    return absl::InvalidArgumentError(fmt::format("{} has {} iterations; at most {} are unrolled", node.name,
                                                  segment.count, kMaxUnroll));
  }
  int var = -1;
  Expr index = ir::Int(segment.first);
  if (segment.count > 1 || node.kind == ir::LoopKind::kParallel) {
    var = NewVar(segment.count);
    index = segment.count > 1 ? ir::Var(var) + segment.first : index;
  }
  Instance::Bound& bound = instance.bound[loop];
  bound.fixed = true;
  bound.value = index;
  if (segment.height > 0) {
    bound.value = (index - segment.first) * segment.height + segment.start;
    bound.inner_extent = segment.height;
  }
  auto body = LoopBody(instance, position, walk);
  instance.bound[loop] = {};
  if (!body.ok()) return body.status();
  Emitted e = *std::move(body);
  if (var >= 0) {
    PlaceGuards(e, var);
    e.stmt = ir::For(var, segment.count, KindOf(instance.stage, position), std::move(e.stmt));
  }
  if (!only) PlaceGuards(e, -1);
  return e;
}

absl::StatusOr<NestBuilder::Emitted> NestBuilder::LoopBody(Instance& instance, size_t position, Walk& walk) {
  const StageSchedule& stage = s_.stages[instance.stage];
  const int64_t scratch = scratch_top_;
  std::vector<Stmt> body;
  std::vector<Location> saved;
  if (walk.attach) {
    saved = location_;
    HONE_RETURN_IF_ERROR(Attach(instance, position, &body));
  }
  const bool tile = walk.attach && stage.cache_write && stage.cache_write->loop == stage.order[position];
  HONE_ASSIGN_OR_RETURN(Emitted e, tile ? TileBody(instance, position + 1, walk) : Loops(instance, position + 1, walk));
  if (walk.attach) location_ = std::move(saved);
  scratch_top_ = scratch;
  if (!body.empty()) {
    // Producers attached here run whatever the consumer's guards say; only guards of the loops around may move out.
    e.stmt = Guard(std::move(e.stmt), e.value);
    e.value.clear();
    body.push_back(e.stmt);
    e.stmt = ir::Block(std::move(body));
  }
  return e;
}

absl::StatusOr<NestBuilder::Emitted> NestBuilder::TileBody(Instance& instance, size_t position, Walk& walk) {
  const ir::Stage& stage = s_.workload.stages[instance.stage];
  const StageSchedule& schedule = s_.stages[instance.stage];
  const int result = stage.results[0];
  const Location home = location_[result];
  HONE_RETURN_IF_ERROR(AddLoopTile(instance, position, result, schedule.cache_write->storage));
  const Location tile = location_[result];

  // Steps of the reduce loops outside: only the first begins with the identity.
  Expr steps = ir::Int(0);
  for (size_t p = 0; p < position; ++p) {
    const int loop = schedule.order[p];
    if (s_.IsReduce({instance.stage, loop}) && instance.bound[loop].fixed) steps = steps + instance.bound[loop].value;
  }
  steps = Simplify(steps, ranges_);
  std::vector<Stmt> parts;
  enum class Direction : uint8_t { kLoad, kStore };
  auto copy = [&](Direction direction) {
    return SpatialNest(instance, position, [&, direction](Instance& at) -> absl::StatusOr<Emitted> {
      std::vector<Expr> axes = AxisValues(at);
      location_[result] = home;
      Expr home_index = ResultIndex(at, 0, axes);
      Emitted e;
      e.domain = DomainGuards(at, axes);
      location_[result] = tile;
      const ir::DType dtype = s_.workload.tensors[result].dtype;
      const bool load = direction == Direction::kLoad;
      Expr tile_index = TileIndex(at, tile);
      e.stmt = load ? ir::Store(tile.buffer, tile_index, ir::Load(home.buffer, dtype, {home_index}))
                    : ir::Store(home.buffer, home_index, ir::Load(tile.buffer, dtype, {tile_index}));
      return e;
    });
  };
  const bool outside = UsesAnyVar(steps);
  if (outside || walk.initialised) {
    HONE_ASSIGN_OR_RETURN(Stmt identity, IdentityNest(instance, position));
    HONE_ASSIGN_OR_RETURN(Stmt load, copy(Direction::kLoad));
    parts.push_back(ir::If(ir::Binary(ir::BinaryOp::kEq, steps, ir::Int(0)), identity));
    parts.push_back(ir::If(ir::Binary(ir::BinaryOp::kGt, steps, ir::Int(0)), load));
    if (!outside) parts = {identity};
  }
  Walk inner = walk;
  inner.initialised = !parts.empty();
  HONE_ASSIGN_OR_RETURN(Emitted e, Loops(instance, position, inner));
  PlaceGuards(e, -1);
  parts.push_back(e.stmt);
  HONE_ASSIGN_OR_RETURN(Stmt store, copy(Direction::kStore));
  parts.push_back(store);
  location_[result] = home;
  return Emitted{ir::Block(std::move(parts)), {}, {}};
}

absl::StatusOr<Stmt> NestBuilder::SpatialNest(Instance& instance, size_t position,
                                              std::function<absl::StatusOr<Emitted>(Instance&)> leaf) {
  Walk walk;
  walk.reduce_loops = false;
  walk.attach = false;
  walk.leaf = std::move(leaf);
  HONE_ASSIGN_OR_RETURN(Emitted e, Loops(instance, position, walk));
  PlaceGuards(e, -1);
  return e.stmt;
}

absl::StatusOr<Stmt> NestBuilder::IdentityNest(Instance& instance, size_t position) {
  const ir::Stage& stage = s_.workload.stages[instance.stage];
  return SpatialNest(instance, position, [&](Instance& at) -> absl::StatusOr<Emitted> {
    std::vector<Expr> axes = AxisValues(at);
    Emitted e;
    std::vector<Stmt> stores;
    for (size_t k = 0; k < stage.results.size(); ++k) {
      const ir::Tensor& t = s_.workload.tensors[stage.results[k]];
      stores.push_back(ir::Store(location_[stage.results[k]].buffer, ResultIndex(at, static_cast<int>(k), axes),
                                 ir::Identity(stage.combiner, t.dtype, static_cast<int>(k))));
    }
    e.stmt = stores.size() == 1 ? stores[0] : ir::Block(std::move(stores));
    e.domain = DomainGuards(at, axes);
    return e;
  });
}

absl::StatusOr<NestBuilder::Emitted> NestBuilder::Compute(Instance& instance) {
  Walk walk;
  walk.initialised = s_.workload.stages[instance.stage].combiner == ir::Combiner::kNone;
  walk.leaf = [this](Instance& at) { return StoreLeaf(at); };
  return Loops(instance, 0, walk);
}

absl::StatusOr<NestBuilder::Emitted> NestBuilder::StoreLeaf(Instance& instance) {
  const ir::Stage& stage = s_.workload.stages[instance.stage];
  std::vector<Expr> axes = AxisValues(instance);
  Emitted e;
  std::vector<Expr> values;
  std::vector<int> buffers;
  for (size_t k = 0; k < stage.body.size(); ++k) {
    Expr body = stage.body[k];
    if (!ir::IsTuple(stage.combiner) && stage.combiner != ir::Combiner::kNone) {
      std::vector<Expr> guards;
      body = TakeGuards(body, stage.combiner, &guards);
      for (const Expr& g : guards) {
        HONE_ASSIGN_OR_RETURN(Expr lowered, LowerExpr(g, axes));
        e.value.push_back(lowered);
      }
    }
    HONE_ASSIGN_OR_RETURN(Expr value, LowerExpr(body, axes));
    values.push_back(value);
    buffers.push_back(location_[stage.results[k]].buffer);
  }
  e.stmt = ir::StoreTuple(std::move(buffers), ResultIndex(instance, 0, axes), std::move(values), stage.combiner);
  e.domain = DomainGuards(instance, axes);
  return e;
}

absl::StatusOr<ir::Phase> NestBuilder::BuildPhase(int stage_id) {
  scratch_top_ = scratch_high_ = 0;
  Instance instance(s_, stage_id);
  HONE_ASSIGN_OR_RETURN(Emitted e, Compute(instance));
  PlaceGuards(e, -1);
  ir::Phase phase;
  phase.body = e.stmt;
  phase.scratch_bytes = scratch_high_;
  const StageSchedule& schedule = s_.stages[stage_id];
  bool outermost = true;
  for (size_t p = 0; p < schedule.order.size(); ++p) {
    const LoopNode& n = schedule.loops[schedule.order[p]];
    if (n.kind != ir::LoopKind::kParallel) {
      outermost &= ExtentOf(s_, instance, schedule.order[p]) == 1 || KindOf(stage_id, p) == ir::LoopKind::kStep;
      continue;
    }
    if (!outermost) return absl::InvalidArgumentError(fmt::format("{} is parallel but not outermost", n.name));
    phase.parallel_extent = ExtentOf(s_, instance, schedule.order[p]);
    phase.threads = n.threads;
  }
  nest_.num_vars = static_cast<int>(ranges_.extent.size());
  return phase;
}

}  // namespace hone::schedule
