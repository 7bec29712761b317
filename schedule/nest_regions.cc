#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/status.h"
#include "schedule/nest_builder.h"

// Which part of a Stage is needed at a loop, where it is kept, and how indices into it look.
namespace hone::schedule {

using ir::Expr;

namespace {

constexpr int64_t kScratchAlignment = 64;

bool Loads(const ir::Stage& reader, const ir::Stage& producer) {
  bool found = false;
  for (const auto& body : reader.body) {
    ir::Visit(body, [&](const ir::ExprNode& e) {
      if (e.kind != ir::ExprKind::kLoad) return;
      for (int r : producer.results) found |= e.id == r;
    });
  }
  return found;
}

void Order(const Schedule& s, int stage, std::set<int>* seen, std::vector<int>* out) {
  if (!seen->insert(stage).second) return;
  for (const auto& body : s.workload.stages[stage].body) {
    std::vector<int> producers;
    ir::Visit(body, [&](const ir::ExprNode& e) {
      if (e.kind == ir::ExprKind::kLoad) producers.push_back(s.workload.Producer(e.id));
    });
    for (int p : producers) {
      if (p >= 0) Order(s, p, seen, out);
    }
  }
  out->push_back(stage);
}

/// The smallest known span with both; the whole domain when their distance is not constant.
Span Union(const Span& a, const Span& b, int64_t domain, const VarRanges& ranges) {
  auto distance = ir::AsInt(Simplify(b.low - a.low, ranges));
  if (!distance) return {ir::Int(0), domain};
  int64_t low = std::min<int64_t>(0, *distance);
  int64_t high = std::max(a.width, *distance + b.width);
  return {Simplify(a.low + low, ranges), high - low};
}

/// A masked vector sticks out of the domain by less than this; such a part is kept whole (its points are free or guarded).
constexpr int64_t kLargestOvershoot = 64;

Span Clip(Span s, int64_t domain) {
  auto low = ir::AsInt(s.low);
  if (low == 0 && s.width - domain < kLargestOvershoot) return s;
  if (s.width >= domain) return {ir::Int(0), domain};
  if (low) {
    int64_t first = std::clamp<int64_t>(*low, 0, domain - 1);
    int64_t last = std::clamp<int64_t>(*low + s.width, first + 1, domain);
    return {ir::Int(first), last - first};
  }
  return s;
}

}  // namespace

std::vector<int> LiveStages(const Schedule& schedule) {
  std::set<int> seen;
  std::vector<int> out;
  for (size_t i = 0; i < schedule.workload.stages.size(); ++i) {
    for (int r : schedule.workload.stages[i].results) {
      if (schedule.workload.tensors[r].output) Order(schedule, static_cast<int>(i), &seen, &out);
    }
  }
  return out;
}

absl::StatusOr<Instance> NestBuilder::RegionOf(int stage_id,
                                               const std::vector<std::pair<int, std::vector<Span>>>& readers) {
  const ir::Stage& stage = s_.workload.stages[stage_id];
  Instance region(s_, stage_id);
  std::vector<std::optional<Span>> need(stage.spatial.size());
  for (const auto& [reader, axes] : readers) {
    if (reader == stage_id) continue;
    for (const auto& body : s_.workload.stages[reader].body) {
      ir::Visit(body, [&](const ir::ExprNode& e) {
        if (e.kind != ir::ExprKind::kLoad) return;
        if (std::find(stage.results.begin(), stage.results.end(), e.id) == stage.results.end()) return;
        for (size_t d = 0; d < need.size(); ++d) {
          auto span = SpanOfIndex(e.args[d], axes, ranges_);
          Span whole{ir::Int(0), stage.spatial[d]};
          if (!need[d]) need[d] = span.value_or(whole);
          else need[d] = Union(*need[d], span.value_or(whole), stage.spatial[d], ranges_);
        }
      });
    }
  }
  for (size_t d = 0; d < need.size(); ++d) {
    if (!need[d]) continue;
    Span s = Clip(*need[d], stage.spatial[d]);
    region.low[d] = s.low;
    region.extent[d] = s.width;
  }
  return region;
}

absl::Status NestBuilder::Attach(Instance& instance, size_t position, std::vector<ir::Stmt>* out) {
  const int here = s_.stages[instance.stage].order[position];
  auto attached_here = [&](int q) {
    const StageSchedule& p = s_.stages[q];
    return p.place == Place::kAt && p.at_stage == instance.stage && p.at_loop == here;
  };
  if (std::none_of(stage_order_.begin(), stage_order_.end(), attached_here)) return absl::OkStatus();

  // Everything computed at this loop or deeper, consumers first, with what it needs seen from here.
  const ir::Stage& owner = s_.workload.stages[instance.stage];
  std::vector<std::pair<int, std::vector<Span>>> known(1);
  known[0].first = instance.stage;
  for (int a = 0; a < owner.num_axes(); ++a) known[0].second.push_back(SpanOfAxis(s_, instance, a, ranges_));
  std::vector<Instance> regions;
  for (auto it = stage_order_.rbegin(); it != stage_order_.rend(); ++it) {
    const int q = *it;
    const StageSchedule& p = s_.stages[q];
    if (p.place != Place::kAt) continue;
    bool inside = p.at_stage == instance.stage && s_.PositionOf({p.at_stage, p.at_loop}) >= static_cast<int>(position);
    for (const auto& k : known) inside |= p.at_stage == k.first && k.first != instance.stage;
    if (!inside) continue;
    if (attached_here(q)) {
      for (int r : stage_order_) {
        bool known_reader = std::any_of(known.begin(), known.end(), [&](const auto& k) { return k.first == r; });
        if (r != q && !known_reader && Loads(s_.workload.stages[r], s_.workload.stages[q]) &&
            !NeedsWholeBuffer(s_, s_.workload.stages[q].results[0])) {
          return absl::InvalidArgumentError(fmt::format("{} is computed at {} but {} reads it outside", s_.workload.stages[q].name,
                                                        s_.stages[instance.stage].loops[here].name, s_.workload.stages[r].name));
        }
      }
    }
    HONE_ASSIGN_OR_RETURN(Instance region, RegionOf(q, known));
    std::vector<Span> axes;
    for (size_t a = 0; a < region.low.size(); ++a) axes.push_back({region.low[a], region.extent[a]});
    known.emplace_back(q, std::move(axes));
    if (attached_here(q)) regions.push_back(std::move(region));
  }
  // Producers first.
  for (auto it = regions.rbegin(); it != regions.rend(); ++it) {
    for (int r : s_.workload.stages[it->stage].results) {
      if (!NeedsWholeBuffer(s_, r)) AddTile(*it, r, s_.stages[it->stage].storage);
    }
    HONE_ASSIGN_OR_RETURN(Emitted e, Compute(*it));
    PlaceGuards(e, -1);
    out->push_back(e.stmt);
  }
  return absl::OkStatus();
}

void NestBuilder::AddTile(const Instance& region, int result, Storage storage) {
  const ir::Tensor& t = s_.workload.tensors[result];
  const StageSchedule& schedule = s_.stages[region.stage];
  Location at;
  const size_t rank = t.shape.size();
  at.low.assign(region.low.begin(), region.low.begin() + rank);
  at.extent.assign(region.extent.begin(), region.extent.begin() + rank);
  at.strides.resize(rank);
  int64_t elements = 1;
  for (size_t d = rank; d-- > 0;) {
    at.strides[d] = elements;
    elements *= at.extent[d];
    if (!schedule.align.empty() && storage == Storage::kMemory) elements += schedule.align[d];
  }
  at.buffer = AddPrivateBuffer(t, elements, storage);
  location_[result] = std::move(at);
}

int NestBuilder::AddPrivateBuffer(const ir::Tensor& t, int64_t elements, Storage storage) {
  ir::Buffer b;
  b.name = fmt::format("{}#{}", t.name, nest_.buffers.size());
  b.dtype = t.dtype;
  b.elements = elements;
  b.alignment = kScratchAlignment;
  b.scope = storage == Storage::kRegister ? ir::Scope::kRegister
            : storage == Storage::kShared ? ir::Scope::kShared : ir::Scope::kScratch;
  if (storage == Storage::kMemory) {
    b.scratch_offset = scratch_top_;
    scratch_top_ += (elements * ir::SizeOf(t.dtype) + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
    scratch_high_ = std::max(scratch_high_, scratch_top_);
  }
  return NewBuffer(std::move(b));
}

absl::Status NestBuilder::AddLoopTile(const Instance& instance, size_t position, int result, Storage storage) {
  const StageSchedule& schedule = s_.stages[instance.stage];
  Location at;
  int64_t elements = 1;
  for (size_t p = schedule.order.size(); p-- > position;) {
    const LoopNode& n = schedule.loops[schedule.order[p]];
    if (s_.IsReduce({instance.stage, schedule.order[p]})) continue;
    if (n.origin == LoopNode::Origin::kOuter && n.tail == Tail::kTwoSizes) {
      return absl::InvalidArgumentError(fmt::format("{} must stand outside the tile of {}", n.name,
                                                    s_.workload.stages[instance.stage].name));
    }
    at.tile_loops.push_back(schedule.order[p]);
    at.strides.push_back(elements);
    elements *= ExtentOf(s_, instance, schedule.order[p]);
  }
  if (at.tile_loops.empty()) at.tile_loops.push_back(schedule.order.back()), at.strides.push_back(0);
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
  return Simplify(flat, ranges_);
}

std::vector<Expr> NestBuilder::AxisValues(const Instance& instance) {
  std::vector<Expr> out;
  const ir::Stage& stage = s_.workload.stages[instance.stage];
  for (int a = 0; a < stage.num_axes(); ++a) out.push_back(SpanOfAxis(s_, instance, a, ranges_).low);
  return out;
}

Expr NestBuilder::FlatIndex(const Location& location, const std::vector<Expr>& indices) {
  Expr flat = ir::Int(location.offset);
  for (size_t d = 0; d < indices.size(); ++d) {
    Expr i = location.whole() ? indices[d] : indices[d] - location.low[d];
    flat = flat + i * location.strides[d];
  }
  return Simplify(flat, ranges_);
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
  std::vector<Expr> args;
  for (const Expr& a : e->args) {
    HONE_ASSIGN_OR_RETURN(Expr lowered, LowerExpr(a, axes));
    args.push_back(std::move(lowered));
  }
  switch (e->kind) {
    case ir::ExprKind::kLoad: {
      const Location& at = location_[e->id];
      if (at.buffer < 0) {
        return absl::InvalidArgumentError(fmt::format("{} is read where it is not computed yet", s_.workload.tensors[e->id].name));
      }
      return ir::Load(at.buffer, e->dtype, {FlatIndex(at, args)});
    }
    case ir::ExprKind::kSelect: {
      if (auto known = Decide(args[0], ranges_)) return args[*known ? 1 : 2];
      return ir::Select(Simplify(args[0], ranges_), args[1], args[2]);
    }
    case ir::ExprKind::kCast:
      return ir::Cast(e->dtype, args[0]);
    case ir::ExprKind::kUnary:
      return ir::Unary(e->unary(), args[0]);
    default: {
      Expr out = ir::Binary(e->binary(), args[0], args[1]);
      return out->dtype == ir::DType::kI64 || out->dtype == ir::DType::kBool ? Simplify(out, ranges_) : out;
    }
  }
}

bool NestBuilder::LoadsAreSafe(const Expr& e, const std::vector<Expr>& axes) {
  if (e->kind == ir::ExprKind::kSelect) return LoadsAreSafe(e->args[0], axes);  // the branches are guarded
  if (e->kind == ir::ExprKind::kLoad) {
    const Location& at = location_[e->id];
    for (size_t d = 0; d < e->args.size(); ++d) {
      Expr i = ir::SubstituteVars(e->args[d], axes);
      if (!at.whole()) i = i - at.low[d];
      Interval b = BoundsOf(i, ranges_);
      if (b.low < 0 || b.high >= at.extent[d]) return false;
    }
  }
  return std::all_of(e->args.begin(), e->args.end(), [&](const Expr& a) { return LoadsAreSafe(a, axes); });
}

std::vector<Expr> NestBuilder::DomainGuards(const Instance& instance, const std::vector<Expr>& axes) {
  const ir::Stage& stage = s_.workload.stages[instance.stage];
  const bool whole = location_[stage.results[0]].whole();
  const bool tile = !location_[stage.results[0]].tile_loops.empty();
  bool free = !whole;
  for (const Expr& body : stage.body) free = free && LoadsAreSafe(body, axes);
  std::vector<Expr> guards;
  auto require = [&](const Expr& condition) {
    auto known = Decide(condition, ranges_);
    if (!known || !*known) guards.push_back(Simplify(condition, ranges_));
  };
  for (int a = 0; a < stage.num_axes(); ++a) {
    const Expr local = axes[a] - instance.low[a];
    const bool reduce = a >= stage.num_spatial();
    if (tile && !reduce && free) continue;
    require(ir::Lt(local, ir::Int(instance.extent[a])));
    if (reduce || free) continue;
    require(ir::Ge(axes[a], ir::Int(0)));
    require(ir::Lt(axes[a], ir::Int(stage.Extent(a))));
  }
  return guards;
}

}  // namespace hone::schedule
