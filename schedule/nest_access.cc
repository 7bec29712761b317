#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "ir/index/range_analysis.h"
#include "ir/wgmma.h"
#include "schedule/nest_builder.h"

// Expressions and addresses at a point of lowering, and which points exist there.
namespace hone::schedule {

using ir::Expr;

namespace {

/// Walks a body whose variables are loop variables; selects make their conditions known inside
/// their branches.
class SafeLoads {
 public:
  /// `fits(load, d, index, bounds)` says whether the bounds of index d of a load are inside what
  /// may be read.
  using Fits = std::function<bool(const ir::ExprNode& load, size_t d, ir::Interval bounds)>;
  SafeLoads(const ir::VarRanges& ranges, Fits fits)
      : ranges_(ranges), fits_(std::move(fits)), known_(IntervalsOf(ranges), nullptr) {}

  bool Check(const Expr& e) {
    if (e->kind == ir::ExprKind::kSelect) {
      if (!Check(e->args[0])) return false;
      if (const auto taken = ir::Decide(e->args[0], ranges_)) return Check(e->args[*taken ? 1 : 2]);
      const size_t mark = known_.Mark();
      known_.Assume(e->args[0], true);
      const bool first = Check(e->args[1]);
      known_.Forget(mark);
      known_.Assume(e->args[0], false);
      const bool second = first && Check(e->args[2]);
      known_.Forget(mark);
      return second;
    }
    if (e->kind == ir::ExprKind::kLoad) {
      for (size_t d = 0; d < e->args.size(); ++d) {
        if (fits_(*e, d, ir::BoundsOf(e->args[d], ranges_))) continue;
        const ir::Interval bounds = known_.Of(e->args[d]);
        if (!fits_(*e, d, {bounds.low, bounds.high})) return false;
      }
    }
    return std::all_of(e->args.begin(), e->args.end(), [&](const Expr& a) { return Check(a); });
  }

 private:
  static std::vector<ir::Interval> IntervalsOf(const ir::VarRanges& ranges) {
    std::vector<ir::Interval> out;
    for (int64_t n : ranges.extent) out.push_back({0, n - 1});
    return out;
  }

  const ir::VarRanges& ranges_;
  Fits fits_;
  ir::RangeAnalysis known_;
};

}  // namespace

const Location& NestBuilder::ReadingFrom(int tensor) const {
  const auto home = home_.find(tensor);
  return home == home_.end() ? location_[tensor] : home->second;
}

std::vector<Expr> NestBuilder::AxisValues(const Instance& instance) {
  std::vector<Expr> out;
  const ir::Stage& stage = s_.workload.stages[instance.stage];
  for (int a = 0; a < stage.num_axes(); ++a)
    out.push_back(SpanOfAxis(s_, instance, a, ranges_).low);
  return out;
}

Expr NestBuilder::FlatIndex(const Location& location, const std::vector<Expr>& indices) {
  Expr flat = ir::Int(location.offset);
  for (size_t d = 0; d < indices.size(); ++d) {
    Expr i = location.whole() ? indices[d] : indices[d] - location.low[d];
    if (location.piece > 0 && d + 1 == indices.size()) {
      flat = flat + ir::FloorDiv(i, ir::kSwizzledRow) * location.piece;
      i = ir::FloorMod(i, ir::kSwizzledRow);
    }
    flat = flat + i * location.strides[d];
  }
  if (location.slot) flat = flat + location.slot;
  return ir::Simplify(flat, ranges_);
}

Expr NestBuilder::ResultIndex(const Instance& instance, int result, const std::vector<Expr>& axes) {
  const ir::Stage& stage = s_.workload.stages[instance.stage];
  const Location& at = location_[stage.results[result]];
  if (!at.tile_loops.empty()) return TileIndex(instance, at);
  std::vector<Expr> point(axes.begin(), axes.begin() + stage.num_spatial());
  if (!stage.store.empty()) {
    std::vector<Expr> mapped;
    for (const Expr& e : stage.store) mapped.push_back(ir::SubstituteVars(e, point));
    point = std::move(mapped);
  }
  return FlatIndex(at, point);
}

absl::StatusOr<Expr> NestBuilder::LowerExpr(const Expr& e, const std::vector<Expr>& axes) {
  if (e->kind == ir::ExprKind::kVar) return axes[e->id];
  if (e->kind == ir::ExprKind::kConst) return e;
  if (e->kind == ir::ExprKind::kLoad && e->id == finished_.tensor) return finished_.element;
  std::vector<Expr> args;
  for (const Expr& a : e->args) {
    HONE_ASSIGN_OR_RETURN(Expr lowered, LowerExpr(a, axes));
    args.push_back(std::move(lowered));
  }
  switch (e->kind) {
    case ir::ExprKind::kLoad: {
      const Location& at = ReadingFrom(e->id);
      if (at.buffer < 0) {
        return absl::InvalidArgumentError(fmt::format("{} is read where it is not computed yet",
                                                      s_.workload.tensors[e->id].name));
      }
      return ir::Load(at.buffer, e->dtype, {FlatIndex(at, args)});
    }
    case ir::ExprKind::kSelect: {
      if (auto known = ir::Decide(args[0], ranges_)) return args[*known ? 1 : 2];
      return ir::Select(ir::Simplify(args[0], ranges_), args[1], args[2]);
    }
    case ir::ExprKind::kCast: return ir::Cast(e->dtype, args[0]);
    case ir::ExprKind::kUnary: return ir::Unary(e->unary(), args[0]);
    default: {
      Expr out = ir::Binary(e->binary(), args[0], args[1]);
      return out->dtype == ir::DType::kI64 || out->dtype == ir::DType::kBool
                 ? ir::Simplify(out, ranges_)
                 : out;
    }
  }
}

bool NestBuilder::LoadsAreSafe(const Expr& body, const std::vector<Expr>& axes, Inner inner) {
  SafeLoads loads(ranges_, [&](const ir::ExprNode& load, size_t d, ir::Interval bounds) {
    const Location& at = ReadingFrom(load.id);
    if (at.buffer < 0) return inner == Inner::kGivesAll;
    // Elements of a tile beyond its tensor may never have been written.
    if (at.whole() || !at.filled) {
      if (bounds.low < 0 || bounds.high >= s_.workload.tensors[load.id].shape[d]) return false;
    }
    if (at.whole()) return true;
    ir::Interval local = ir::BoundsOf(load.args[d] - at.low[d], ranges_);
    return local.low >= 0 && local.high < at.extent[d];
  });
  return loads.Check(ir::SubstituteVars(body, axes));
}

void NestBuilder::TileGuards(const Expr& body, const std::vector<Expr>& axes, const Expr& path,
                             std::vector<Expr>* guards) {
  if (body->kind == ir::ExprKind::kSelect) {
    TileGuards(body->args[0], axes, path, guards);
    for (int branch = 1; branch <= 2; ++branch) {
      // The branch is not taken, or what is already excused.
      Expr excuse = body->args[0];
      if (branch == 1) excuse = ir::Unary(ir::UnaryOp::kNot, excuse);
      // What a condition loads may exist only where the conditions around it lead to it.
      if (path && ir::HasLoad(excuse))
        excuse = ir::Select(path, ir::ConstInt(ir::DType::kBool, 1), excuse);
      else if (path)
        excuse = ir::Binary(ir::BinaryOp::kOr, path, excuse);
      TileGuards(body->args[branch], axes, excuse, guards);
    }
    return;
  }
  if (body->kind == ir::ExprKind::kLoad && !ReadingFrom(body->id).whole()) {
    const Location& at = ReadingFrom(body->id);
    for (size_t d = 0; d < body->args.size(); ++d) {
      if (ir::HasLoad(body->args[d])) continue;  // the tile has all of such a dimension
      auto local = LowerExpr(body->args[d], axes);
      auto excuse = path ? LowerExpr(path, axes) : absl::StatusOr<Expr>(Expr());
      if (!local.ok() || !excuse.ok()) continue;  // StoreLeaf meets the same error
      const Expr i = *local - at.low[d];
      for (const Expr& inside : {ir::Ge(i, ir::Int(0)), ir::Lt(i, ir::Int(at.extent[d]))}) {
        const auto known = ir::Decide(inside, ranges_);
        if (known && *known) continue;
        guards->push_back(ir::Simplify(
            *excuse ? ir::Binary(ir::BinaryOp::kOr, *excuse, inside) : inside, ranges_));
      }
    }
  }
  for (const Expr& a : body->args) TileGuards(a, axes, path, guards);
}

bool NestBuilder::IsFree(const Instance& instance, const std::vector<Expr>& axes, Inner inner) {
  const ir::Stage& stage = s_.workload.stages[instance.stage];
  if (location_[stage.results[0]].whole()) return false;
  // A reduction begins and is copied where its loops are not entered: for all of their iterations.
  const size_t keep = ranges_.extent.size();
  std::vector<Expr> all = axes;
  for (int a = stage.num_spatial(); a < stage.num_axes(); ++a) {
    const Span span = SpanOfAxis(s_, instance, a, ranges_);
    if (span.width == 1) continue;
    all[a] = span.low + ir::Var(static_cast<int>(ranges_.extent.size()));
    ranges_.extent.push_back(span.width);
  }
  const bool safe = std::all_of(stage.body.begin(), stage.body.end(),
                                [&](const Expr& body) { return LoadsAreSafe(body, all, inner); });
  ranges_.extent.resize(keep);
  return safe;
}

std::vector<Expr> NestBuilder::DomainGuards(const Instance& instance, const std::vector<Expr>& axes,
                                            Inner inner, std::vector<Expr>* outside) {
  const ir::Stage& stage = s_.workload.stages[instance.stage];
  const Location& at = location_[stage.results[0]];
  const bool tile = !at.tile_loops.empty();
  const bool free = IsFree(instance, axes, inner);
  std::vector<Expr> guards;
  auto require = [&](const Expr& condition) {
    auto known = ir::Decide(condition, ranges_);
    if (known && *known) return false;
    guards.push_back(ir::Simplify(condition, ranges_));
    return true;
  };
  for (int a = 0; a < stage.num_axes(); ++a) {
    const Expr local = axes[a] - instance.low[a];
    const bool reduce = a >= stage.num_spatial();
    // Later iterations of a scan read what is not computed yet.
    const bool sequential = stage.scan >= 0 && a == 0;
    if (tile && !reduce && free && !sequential) continue;
    require(ir::Lt(local, ir::Int(instance.extent[a])));
    if (reduce || free) continue;
    if (outside != nullptr) {
      // All of the tensor is in the tile: nothing of it sticks out.
      if (ir::AsInt(instance.low[a]) == 0 && instance.extent[a] <= stage.Extent(a)) continue;
      for (const Expr& inside :
           {ir::Ge(axes[a], ir::Int(0)), ir::Lt(axes[a], ir::Int(stage.Extent(a)))}) {
        const auto known = ir::Decide(inside, ranges_);
        if (!known || !*known) outside->push_back(ir::Simplify(inside, ranges_));
      }
      continue;
    }
    const bool below = require(ir::Ge(axes[a], ir::Int(0)));
    const bool above = require(ir::Lt(axes[a], ir::Int(stage.Extent(a))));
    if (!below && !above) continue;
    for (int r : stage.results) location_[r].filled = false;
  }
  // What other iterations of a parallel loop make is left to them.
  const auto share = at.whole() ? share_.find(instance.stage) : share_.end();
  for (int a = 0; share != share_.end() && a < stage.num_spatial(); ++a) {
    const Instance& region = share->second;
    require(ir::Ge(axes[a] - region.low[a], ir::Int(0)));
    require(ir::Lt(axes[a] - region.low[a], ir::Int(region.extent[a])));
  }
  // Where a masked part of a part sticks out, the next part's points would be met twice.
  const StageSchedule& schedule = s_.stages[instance.stage];
  for (size_t l = 0; l < schedule.loops.size(); ++l) {
    const LoopNode& n = schedule.loops[l];
    if (n.split_outer < 0 || n.origin == LoopNode::Origin::kAxis ||
        schedule.loops[n.split_outer].tail != Tail::kMask)
      continue;
    const int loop = static_cast<int>(l);
    if (tile && free && stage.scan < 0 && !s_.IsReduce({instance.stage, loop})) continue;
    require(
        ir::Lt(SpanOfLoop(s_, instance, loop, ranges_).low, ir::Int(ExtentOf(s_, instance, loop))));
  }
  return guards;
}

}  // namespace hone::schedule
