#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/status.h"
#include "ir/async_copy.h"
#include "ir/combiner.h"
#include "ir/lanes.h"
#include "schedule/loop_passes.h"
#include "schedule/nest_builder.h"

// What stands in the innermost loops: stores, the start of reductions, tiles they accumulate in.
namespace hone::schedule {

using ir::Expr;
using ir::Stmt;

namespace {

/// Larger tiles would not be tiles; also keeps sizes far from overflow.
constexpr int64_t kMaxTileElements = int64_t{1} << 31;

bool IsIdentity(const Expr& e, ir::Combiner combiner) {
  return e->kind == ir::ExprKind::kConst && ir::Equal(e, ir::Identity(combiner, e->dtype, 0));
}

/// select(c, v, identity) → v under c; for sums also through the factors of a product, where a zero
/// factor makes the whole contribution zero.
Expr TakeGuards(const Expr& e, ir::Combiner combiner, std::vector<Expr>* guards) {
  if (e->kind == ir::ExprKind::kSelect && IsIdentity(e->args[2], combiner)) {
    ir::SplitConjunction(e->args[0], guards);
    return TakeGuards(e->args[1], combiner, guards);
  }
  if (combiner == ir::Combiner::kSum && e->kind == ir::ExprKind::kBinary &&
      e->binary() == ir::BinaryOp::kMul) {
    Expr a = TakeGuards(e->args[0], combiner, guards), b = TakeGuards(e->args[1], combiner, guards);
    return a * b;
  }
  if (combiner == ir::Combiner::kSum && e->kind == ir::ExprKind::kCast &&
      !ir::IsBool(e->args[0]->dtype)) {
    return ir::Cast(e->dtype, TakeGuards(e->args[0], combiner, guards));
  }
  return e;
}

/// A choice whose condition is the same in all lanes of a vector where it can be.
Expr ChosenByVectors(const Expr& value, const ir::VarRanges& ranges) {
  if (value->kind != ir::ExprKind::kSelect) return value;
  std::vector<Expr> conditions;
  ir::SplitConjunction(value->args[0], &conditions);
  Expr all = OfWholeVectors(conditions[0], ranges);
  for (size_t k = 1; k < conditions.size(); ++k)
    all = ir::And(all, OfWholeVectors(conditions[k], ranges));
  return ir::Select(all, ChosenByVectors(value->args[1], ranges), value->args[2]);
}

}  // namespace

Expr OfWholeVectors(const Expr& condition, const ir::VarRanges& ranges) {
  const bool compares =
      condition->kind == ir::ExprKind::kBinary &&
      (condition->binary() == ir::BinaryOp::kLt || condition->binary() == ir::BinaryOp::kGe) &&
      condition->args[0]->dtype == ir::DType::kI64;
  if (!compares) return condition;
  const ir::Linear all = ir::ToLinear(condition->args[0] - condition->args[1], ranges);
  for (const ir::Linear::Term& term : all.terms) {
    const int64_t unit = std::abs(term.coefficient);
    ir::Linear coarse, fine;
    fine.constant = (all.constant % unit + unit) % unit;
    coarse.constant = all.constant - fine.constant;
    for (const ir::Linear::Term& t : all.terms)
      (t.coefficient % unit == 0 ? coarse : fine).terms.push_back(t);
    const ir::Interval reach = ir::BoundsOf(fine, ranges);
    if (fine.terms.empty() || reach.low < 0 || reach.high >= unit) continue;
    return ir::Binary(condition->binary(), ir::ToExpr(coarse), ir::Int(0));
  }
  return condition;
}

absl::StatusOr<NestBuilder::Emitted> NestBuilder::TileBody(Instance& instance, size_t position,
                                                           Walk& walk) {
  const StageSchedule& schedule = s_.stages[instance.stage];
  const std::vector<int> results = s_.workload.stages[instance.stage].results;
  for (size_t p = 0; p < position; ++p) {
    const LoopNode& n = schedule.loops[schedule.order[p]];
    if (n.kind != ir::LoopKind::kVector) continue;
    return absl::InvalidArgumentError(fmt::format(
        "the tile {} cannot stand inside the vector loop {}", schedule.cache_write->name, n.name));
  }
  for (const int result : results) {
    home_[result] = location_[result];
    HONE_RETURN_IF_ERROR(AddLoopTile(instance, position, result, schedule.cache_write->storage));
  }

  const int own = schedule.order[position - 1];
  const bool lanes =
      s_.IsReduce({instance.stage, own}) && schedule.loops[own].kind == ir::LoopKind::kThreadX;
  // Steps of the reduce loops outside: only the first begins with the identity. Each lane does.
  Expr steps = ir::Int(0);
  for (size_t p = 0; p < position; ++p) {
    const int loop = schedule.order[p];
    if (s_.IsReduce({instance.stage, loop}) && instance.bound[loop].fixed && !lanes)
      steps = steps + instance.bound[loop].value;
  }
  const ir::Interval range = ir::BoundsOf(steps, ranges_);
  std::vector<Stmt> parts;
  bool partial = false;
  if (walk.initialised) {
    // All lanes of a group meet, those of no result too: each brings what it began with.
    HONE_ASSIGN_OR_RETURN(
        Stmt identity,
        IdentityNest(instance, position, lanes ? Identities::kOfTile : Identities::kOfResults));
    HONE_ASSIGN_OR_RETURN(Stmt load, TileCopy(instance, position, true, &partial));
    // What is not loaded must still begin somewhere.
    const bool always = range.high <= 0 || partial;
    const Expr step = ir::Simplify(steps, ranges_);
    if (always)
      parts.push_back(identity);
    else if (range.low <= 0)
      parts.push_back(ir::If(ir::Binary(ir::BinaryOp::kEq, step, ir::Int(0)), identity));
    if (range.low > 0)
      parts.push_back(load);
    else if (range.high > 0)
      parts.push_back(ir::If(ir::Binary(ir::BinaryOp::kGt, step, ir::Int(0)), load));
  }
  Walk inner = walk;
  HONE_ASSIGN_OR_RETURN(Emitted e, Loops(instance, position, inner));
  PlaceGuards(e, -1);
  parts.push_back(e.stmt);
  if (lanes) {
    HONE_ASSIGN_OR_RETURN(Stmt meet, LanesNest(instance, position));
    parts.push_back(meet);
  }
  HONE_ASSIGN_OR_RETURN(Stmt store, schedule.cache_write->through
                                        ? StoreThroughShared(instance, position)
                                        : TileCopy(instance, position, false, &partial));
  // All lanes have the result; one of them stores it.
  if (lanes) store = ir::If(ir::Lt(instance.bound[own].value, ir::Int(1)), std::move(store));
  parts.push_back(store);
  for (const int result : results) {
    location_[result] = home_[result];
    home_.erase(result);
  }
  return Emitted{ir::Block(std::move(parts)), {}, {}};
}

absl::StatusOr<Stmt> NestBuilder::TileCopy(Instance& instance, size_t position, bool load,
                                           bool* partial) {
  const std::vector<int> results = s_.workload.stages[instance.stage].results;
  return SpatialNest(instance, position, [&](Instance& at) -> absl::StatusOr<Emitted> {
    const std::vector<Expr> axes = AxisValues(at);
    Emitted e;
    std::vector<Location> tiles;
    for (const int r : results) {
      tiles.push_back(location_[r]);
      location_[r] = home_[r];
    }
    e.domain = DomainGuards(at, axes, Inner::kMayGiveLess);
    if (threads_[0].var >= 0) {
      for (Expr& guard : e.domain) guard = OfWholeVectors(guard, ranges_);
    }
    *partial |= !e.domain.empty();
    std::vector<Stmt> copies;
    for (size_t k = 0; k < results.size(); ++k) {
      Location& here = location_[results[k]];
      const ir::DType dtype = s_.workload.tensors[results[k]].dtype;
      const int home = here.buffer, tile = tiles[k].buffer;
      const Expr tile_index = TileIndex(at, tiles[k]);
      if (s_.stages[instance.stage].epilogue >= 0) {
        here = std::move(tiles[k]);
        HONE_ASSIGN_OR_RETURN(
            Stmt store, EpilogueStore(instance.stage, axes, ir::Load(tile, dtype, {tile_index})));
        copies.push_back(std::move(store));
        continue;
      }
      const Expr home_index = ResultIndex(at, static_cast<int>(k), axes);
      home_[results[k]] = std::exchange(here, std::move(tiles[k]));
      copies.push_back(load ? ir::Store(tile, tile_index, ir::Load(home, dtype, {home_index}))
                            : ir::Store(home, home_index, ir::Load(tile, dtype, {tile_index})));
    }
    e.stmt = copies.size() == 1 ? copies[0] : ir::Block(std::move(copies));
    return e;
  });
}

/// What becomes of a finished element, at this point of the Stage's axes.
absl::StatusOr<Stmt> NestBuilder::EpilogueStore(int stage, const std::vector<Expr>& axes,
                                                const Expr& element) {
  const int map = s_.stages[stage].epilogue;
  finished_ = {s_.workload.stages[stage].results[0], element};
  auto value = LowerExpr(s_.workload.stages[map].body[0], axes);
  finished_ = {};
  if (!value.ok()) return value.status();
  const int result = s_.workload.stages[map].results[0];
  return ir::Store(location_[result].buffer, ResultIndex(Instance(s_, map), 0, axes),
                   *std::move(value));
}

absl::StatusOr<Stmt> NestBuilder::SpatialNest(
    Instance& instance, size_t position, std::function<absl::StatusOr<Emitted>(Instance&)> leaf) {
  Walk walk;
  walk.reduce_loops = false;
  walk.attach = false;
  walk.leaf = std::move(leaf);
  HONE_ASSIGN_OR_RETURN(Emitted e, Loops(instance, position, walk));
  PlaceGuards(e, -1);
  return e.stmt;
}

absl::StatusOr<Stmt> NestBuilder::IdentityNest(Instance& instance, size_t position,
                                               Identities which) {
  const ir::Stage& stage = s_.workload.stages[instance.stage];
  return SpatialNest(instance, position, [&](Instance& at) -> absl::StatusOr<Emitted> {
    std::vector<Expr> axes = AxisValues(at);
    Emitted e;
    std::vector<Stmt> stores;
    for (size_t k = 0; k < stage.results.size(); ++k) {
      const ir::Tensor& t = s_.workload.tensors[stage.results[k]];
      stores.push_back(ir::Store(location_[stage.results[k]].buffer,
                                 ResultIndex(at, static_cast<int>(k), axes),
                                 ir::Identity(stage.combiner, t.dtype, static_cast<int>(k))));
    }
    e.stmt = stores.size() == 1 ? stores[0] : ir::Block(std::move(stores));
    if (which == Identities::kOfResults && !KeptByThread(instance.stage))
      e.domain = DomainGuards(at, axes, Inner::kGivesAll);
    return e;
  });
}

/// What each lane has in the tile becomes what all of them make together.
absl::StatusOr<Stmt> NestBuilder::LanesNest(Instance& instance, size_t position) {
  const ir::Stage& stage = s_.workload.stages[instance.stage];
  return SpatialNest(instance, position, [&](Instance& at) -> absl::StatusOr<Emitted> {
    const Location& tile = location_[stage.results[0]];
    return Emitted{
        ir::CombineLanes(tile.buffer, TileIndex(at, tile), threads_[0].count, stage.combiner),
        {},
        {}};
  });
}

absl::StatusOr<NestBuilder::Emitted> NestBuilder::StoreLeaf(Instance& instance) {
  const ir::Stage& stage = s_.workload.stages[instance.stage];
  std::vector<Expr> axes = AxisValues(instance);
  HONE_RETURN_IF_ERROR(CheckOwnTiles(instance.stage, axes));
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
    if (threads_[0].var >= 0) value = ChosenByVectors(value, ranges_);
    std::vector<Expr> inside;
    if (!LoadsAreSafe(stage.body[k], axes, Inner::kGivesAll))
      TileGuards(stage.body[k], axes, nullptr, &inside);
    if (stage.combiner != ir::Combiner::kNone) {
      e.value.insert(e.value.end(), inside.begin(), inside.end());
    } else {
      // Written all the same, so that nobody meets what was never written. Guards of conditions
      // come before guards of what they lead to.
      for (auto g = inside.rbegin(); g != inside.rend(); ++g)
        value = ir::Select(*g, value, ir::Const(value->dtype, 0));
    }
    values.push_back(value);
    buffers.push_back(location_[stage.results[k]].buffer);
  }
  std::vector<Expr> outside;
  e.domain = DomainGuards(instance, axes, Inner::kGivesAll,
                          IsFilledUp(instance.stage) ? &outside : nullptr);
  for (const Expr& inside : outside)
    values[0] =
        ir::Select(OfWholeVectors(inside, ranges_), values[0], ir::Const(values[0]->dtype, 0));
  e.stmt = ir::StoreTuple(std::move(buffers), ResultIndex(instance, 0, axes), std::move(values),
                          stage.combiner);
  if (pipeline_ != nullptr) e.stmt = ir::AsyncStore(e.stmt);
  return e;
}

/// Whether what sticks out of a tensor is zero in its tile, because threads share the tile: then
/// none of its readers has to ask. Not of what is made from other tiles: what sticks out of those
/// may never have been written.
bool NestBuilder::IsFilledUp(int stage) const {
  const StageSchedule& schedule = s_.stages[stage];
  const ir::Stage& s = s_.workload.stages[stage];
  bool from_memory = true;
  for (const Expr& body : s.body) {
    ir::Visit(body, [&](const ir::ExprNode& e) {
      if (e.kind == ir::ExprKind::kLoad) from_memory &= ReadingFrom(e.id).whole();
    });
  }
  return schedule.place == Place::kAt && schedule.storage == Storage::kShared && from_memory &&
         s.combiner == ir::Combiner::kNone && s.results.size() == 1 &&
         !NeedsWholeBuffer(s_, s.results[0]);
}

absl::Status NestBuilder::AddLoopTile(const Instance& instance, size_t position, int result,
                                      Storage storage) {
  const StageSchedule& schedule = s_.stages[instance.stage];
  Location at;
  int64_t elements = 1;
  for (size_t p = schedule.order.size(); p-- > position;) {
    const LoopNode& n = schedule.loops[schedule.order[p]];
    if (s_.IsReduce({instance.stage, schedule.order[p]})) continue;
    if (schedule.HasTwoSizes(schedule.order[p])) {
      return absl::InvalidArgumentError(fmt::format("{} must stand outside the tile of {}", n.name,
                                                    s_.workload.stages[instance.stage].name));
    }
    const int64_t extent = ExtentOf(s_, instance, schedule.order[p]);
    at.tile_loops.push_back(schedule.order[p]);
    at.strides.push_back(elements);
    if (extent > kMaxTileElements / elements) {
      return absl::InvalidArgumentError(fmt::format(
          "the tile {} would have more than 2^31 elements", schedule.cache_write->name));
    }
    elements *= extent;
  }
  if (at.tile_loops.empty())
    at.tile_loops.push_back(schedule.order.back()), at.strides.push_back(0);
  at.buffer = AddPrivateBuffer(s_.workload.tensors[result], elements, storage);
  location_[result] = std::move(at);
  return absl::OkStatus();
}

Expr NestBuilder::TileIndex(const Instance& instance, const Location& tile) {
  Expr flat = ir::Int(0);
  for (size_t k = 0; k < tile.tile_loops.size(); ++k) {
    const Expr& v = instance.bound[tile.tile_loops[k]].value;
    if (v && tile.strides[k]) flat = flat + v * tile.strides[k];
  }
  return ir::Simplify(flat, ranges_);
}

}  // namespace hone::schedule
