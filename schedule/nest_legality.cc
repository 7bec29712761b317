#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/status.h"
#include "schedule/nest_builder.h"

// Schedules that would compute something else, or in another order than their results are read.
namespace hone::schedule {

using ir::Expr;

namespace {

absl::Status Refuse(std::string reason) { return absl::InvalidArgumentError(std::move(reason)); }

bool IsThread(ir::LoopKind kind) {
  return kind == ir::LoopKind::kThreadX || kind == ir::LoopKind::kThreadY;
}
bool IsBlock(ir::LoopKind kind) {
  return kind >= ir::LoopKind::kBlockX && kind <= ir::LoopKind::kBlockZ;
}
bool IsBound(ir::LoopKind kind) { return IsThread(kind) || IsBlock(kind); }

/// The root Stage inside whose loops a Stage is computed; -1 when it hangs on one that is not
/// computed.
int RootOf(const Schedule& s, int stage) {
  while (stage >= 0 && s.stages[stage].place == Place::kAt) stage = s.stages[stage].at_stage;
  const bool owns = stage >= 0 && (s.stages[stage].place == Place::kRoot ||
                                   s.stages[stage].place == Place::kEpilogue);
  return owns ? stage : -1;
}

void CollectVars(const Expr& e, std::set<int>* vars) {
  ir::Visit(e, [&](const ir::ExprNode& n) {
    if (n.kind == ir::ExprKind::kVar) vars->insert(n.id);
  });
}

/// Whether the indices in `dims` together take every value of their dimensions when all axes they
/// use run.
bool HitsEveryElement(const ir::Stage& reader, const std::vector<Expr>& indices,
                      const std::vector<size_t>& dims, const std::set<int>& axes,
                      const std::vector<int64_t>& shape) {
  constexpr int64_t kMostPoints = 1 << 16;
  int64_t points = 1, elements = 1;
  for (int a : axes) points = std::min(points * reader.Extent(a), kMostPoints + 1);
  for (size_t d : dims) elements = std::min(elements * shape[d], kMostPoints + 1);
  if (points > kMostPoints || elements > points) return false;
  std::set<int64_t> hit;
  std::vector<Expr> values(static_cast<size_t>(reader.num_axes()));
  const ir::VarRanges none;
  for (int64_t p = 0; p < points; ++p) {
    int64_t rest = p, element = 0;
    for (int a : axes) {
      values[static_cast<size_t>(a)] = ir::Int(rest % reader.Extent(a));
      rest /= reader.Extent(a);
    }
    for (size_t d : dims) {
      const auto v = ir::AsInt(ir::Simplify(ir::SubstituteVars(indices[d], values), none));
      if (!v) return false;
      if (*v < 0 || *v >= shape[d]) element = -1;
      if (element >= 0) element = element * shape[d] + *v;
    }
    if (element >= 0) hit.insert(element);
  }
  return static_cast<int64_t>(hit.size()) == elements;
}

bool IsOnto(const ir::Stage& reader, const std::vector<Expr>& indices,
            const std::vector<int64_t>& shape) {
  std::vector<std::set<int>> axes(indices.size());
  std::vector<bool> done(indices.size(), false);
  for (size_t d = 0; d < indices.size(); ++d) CollectVars(indices[d], &axes[d]);
  for (size_t d = 0; d < indices.size(); ++d) {
    if (done[d]) continue;
    // All dimensions that share axes with this one, directly or through others.
    std::vector<size_t> dims = {d};
    std::set<int> used = axes[d];
    for (size_t k = 0; k < indices.size(); ++k) {
      const bool joins = !done[k] && std::any_of(axes[k].begin(), axes[k].end(),
                                                 [&](int a) { return used.contains(a); });
      if (!joins || std::find(dims.begin(), dims.end(), k) != dims.end()) continue;
      dims.push_back(k);
      used.insert(axes[k].begin(), axes[k].end());
      k = static_cast<size_t>(-1);
    }
    for (size_t k : dims) done[k] = true;
    const bool plain = dims.size() == 1 && indices[d]->kind == ir::ExprKind::kVar &&
                       reader.Extent(indices[d]->id) == shape[d];
    if (!plain && !HitsEveryElement(reader, indices, dims, used, shape)) return false;
  }
  return true;
}

/// Whether boxes [low(v), low(v) + width) for v in [0, extent) are disjoint. Only dimensions whose
/// low depends on nothing but `var` are looked at.
bool AreDisjoint(const Instance& region, int var, int64_t extent) {
  constexpr int64_t kMostIterations = 1 << 20;
  if (extent == 1) return true;
  if (extent > kMostIterations) return false;
  std::vector<std::vector<int64_t>> corners(static_cast<size_t>(extent));
  std::vector<Expr> values(static_cast<size_t>(var) + 1);
  const ir::VarRanges none;
  for (size_t d = 0; d < region.low.size(); ++d) {
    std::set<int> vars;
    CollectVars(region.low[d], &vars);
    if (vars != std::set<int>{var}) continue;
    std::vector<int64_t> lows;
    for (int64_t v = 0; v < extent; ++v) {
      values[static_cast<size_t>(var)] = ir::Int(v);
      const auto low = ir::AsInt(ir::Simplify(ir::SubstituteVars(region.low[d], values), none));
      if (!low) return false;
      lows.push_back(*low);
    }
    const std::set<int64_t> sorted(lows.begin(), lows.end());
    int64_t before = -region.extent[d] + *sorted.begin();
    bool apart = true;
    for (int64_t low : sorted) apart = apart && low - before >= region.extent[d], before = low;
    for (size_t v = 0; apart && v < lows.size(); ++v) corners[v].push_back(lows[v]);
  }
  return std::set<std::vector<int64_t>>(corners.begin(), corners.end()).size() ==
         static_cast<size_t>(extent);
}

}  // namespace

absl::Status NestBuilder::CheckAttachPlace(const Instance& instance, size_t position) const {
  const StageSchedule& schedule = s_.stages[instance.stage];
  for (size_t p = 0; p < schedule.order.size(); ++p) {
    const LoopNode& n = schedule.loops[schedule.order[p]];
    if (p <= position && n.kind == ir::LoopKind::kVector) {
      return Refuse(fmt::format("nothing can be computed inside the vector loop {}", n.name));
    }
    if (p > position && (n.kind == ir::LoopKind::kParallel || IsBound(n.kind))) {
      return Refuse(fmt::format("something is computed at {}, outside of the {} loop {}",
                                schedule.loops[schedule.order[position]].name, ir::ToString(n.kind),
                                n.name));
    }
  }
  return absl::OkStatus();
}

absl::Status NestBuilder::CheckReadersInside(int stage, int owner, int loop,
                                             const std::vector<Needed>& inside) const {
  const ir::Stage& q = s_.workload.stages[stage];
  const std::string& where = s_.stages[owner].loops[loop].name;
  const bool whole = NeedsWholeBuffer(s_, q.results[0]);
  const auto place_of = [&](int id) {
    return std::find(stage_order_.begin(), stage_order_.end(), id) - stage_order_.begin();
  };
  const int root = RootOf(s_, stage);
  for (int r : stage_order_) {
    const ir::Stage& reader = s_.workload.stages[r];
    if (r == stage || std::any_of(inside.begin(), inside.end(),
                                  [&](const Needed& n) { return n.region.stage == r; }))
      continue;
    bool reads = false;
    for (const auto& body : reader.body) {
      ir::Visit(body, [&](const ir::ExprNode& e) {
        const bool load = e.kind == ir::ExprKind::kLoad &&
                          std::find(q.results.begin(), q.results.end(), e.id) != q.results.end();
        reads |= load &&
                 !(q.scan >= 0 && reader.scan == q.scan && IsCarriedLoad(s_.workload, q.scan, e));
      });
    }
    if (!reads) continue;
    const int reader_root = RootOf(s_, r);
    if (!whole || reader_root == root) {
      return Refuse(
          fmt::format("{} is computed at {} but {} reads it outside", q.name, where, reader.name));
    }
    if (reader_root >= 0 && place_of(reader_root) < place_of(root)) {
      return Refuse(
          fmt::format("{} is computed at {}, after {} reads it", q.name, where, reader.name));
    }
  }
  return absl::OkStatus();
}

bool NestBuilder::CoversAll(const ir::Stage& reader, const ir::Stage& producer) const {
  bool covers = false;
  for (const auto& body : reader.body) {
    ir::Visit(body, [&](const ir::ExprNode& e) {
      if (covers || e.kind != ir::ExprKind::kLoad) return;
      if (std::find(producer.results.begin(), producer.results.end(), e.id) ==
          producer.results.end())
        return;
      if (reader.scan >= 0 && reader.scan == producer.scan &&
          IsCarriedLoad(s_.workload, reader.scan, e))
        return;
      covers = IsOnto(reader, e.args, producer.spatial);
    });
  }
  return covers;
}

absl::Status NestBuilder::CheckOrderOfRoot(int stage) const {
  const StageSchedule& schedule = s_.stages[stage];
  const Instance instance(s_, stage);
  for (size_t p = 0; p < schedule.order.size(); ++p) {
    const LoopNode& n = schedule.loops[schedule.order[p]];
    if (n.kind != ir::LoopKind::kParallel) continue;
    for (size_t q = 0; q < p; ++q) {
      const int outer = schedule.order[q];
      const bool alone = ExtentOf(s_, instance, outer) == 1 && !s_.IsReduce({stage, outer}) &&
                         !schedule.HasSiblings(outer);
      if (!alone && KindOf(stage, q) != ir::LoopKind::kStep)
        return Refuse(fmt::format("{} is parallel but not outermost", n.name));
      if (schedule.cache_write && schedule.cache_write->loop == outer) {
        return Refuse(fmt::format("the tile {} stands outside of the parallel loop {}",
                                  schedule.cache_write->name, n.name));
      }
    }
  }
  // What is read elsewhere must be computed everywhere.
  std::set<int> covered = {stage};
  for (auto it = stage_order_.rbegin(); it != stage_order_.rend(); ++it) {
    const ir::Stage& q = s_.workload.stages[*it];
    if (s_.stages[*it].place != Place::kAt || RootOf(s_, *it) != stage) continue;
    const bool covers = std::any_of(covered.begin(), covered.end(),
                                    [&](int r) { return CoversAll(s_.workload.stages[r], q); });
    if (covers) {
      covered.insert(*it);
    } else if (NeedsWholeBuffer(s_, q.results[0])) {
      return Refuse(fmt::format(
          "{} is needed as a whole, but {} does not read all of it where it is computed", q.name,
          s_.workload.stages[stage].name));
    }
  }
  return absl::OkStatus();
}

absl::Status NestBuilder::CheckBoundLoops(int stage) const {
  const StageSchedule& schedule = s_.stages[stage];
  const bool scan = s_.workload.stages[stage].scan >= 0;
  const size_t steps = scan && KindOf(stage, 0) == ir::LoopKind::kStep ? 1 : 0;
  std::set<ir::LoopKind> seen;
  size_t last = 0;
  for (size_t p = steps; p < schedule.order.size(); ++p) {
    const LoopNode& n = schedule.loops[schedule.order[p]];
    if (n.kind == ir::LoopKind::kParallel && !seen.empty())
      return Refuse(fmt::format("{} is parallel inside of bound loops", n.name));
    if (!IsBound(n.kind)) continue;
    if (!seen.insert(n.kind).second)
      return Refuse(fmt::format("two loops around each other are {}", ir::ToString(n.kind)));
    const bool after_threads =
        seen.contains(ir::LoopKind::kThreadX) || seen.contains(ir::LoopKind::kThreadY);
    if (seen.size() + steps != p + 1 || (IsBlock(n.kind) && after_threads)) {
      return Refuse(fmt::format(
          "{}: block loops must stand outermost, thread loops just inside them", n.name));
    }
    last = p;
  }
  if (seen.empty()) return absl::OkStatus();
  // Blocks cannot wait for each other between two steps.
  if (scan && (steps == 0 || seen != std::set{ir::LoopKind::kThreadX})) {
    return Refuse(
        fmt::format("{} belongs to a scan: a loop of it can be thread.x, just inside the "
                    "sequential axis; nothing else of it can be bound",
                    s_.workload.stages[stage].name));
  }
  if (schedule.cache_write &&
      s_.PositionOf({stage, schedule.cache_write->loop}) < static_cast<int>(last)) {
    return Refuse(
        fmt::format("the tile {} stands outside of the thread loops", schedule.cache_write->name));
  }
  for (int q : stage_order_) {
    if (s_.stages[q].place != Place::kAt || RootOf(s_, q) != stage) continue;
    if (NeedsWholeBuffer(s_, s_.workload.stages[q].results[0])) {
      return Refuse(fmt::format("{} is needed as a whole and cannot be computed inside a grid",
                                s_.workload.stages[q].name));
    }
  }
  return absl::OkStatus();
}

absl::Status NestBuilder::CheckSharedTile(int stage) const {
  const StageSchedule& schedule = s_.stages[stage];
  const std::string& name = s_.workload.stages[stage].name;
  if (s_.stages[schedule.at_stage].place != Place::kRoot ||
      (threads_[0].var < 0 && threads_[1].var < 0)) {
    return Refuse(fmt::format(
        "{} is in shared memory, so it must be computed inside the thread loops of a root stage",
        name));
  }
  for (int k = 0; k < 2; ++k) {
    const ir::LoopKind kind = k == 0 ? ir::LoopKind::kThreadX : ir::LoopKind::kThreadY;
    const auto has = std::count_if(schedule.order.begin(), schedule.order.end(),
                                   [&](int l) { return schedule.loops[l].kind == kind; });
    if (threads_[k].var >= 0 && has != 1) {
      return Refuse(fmt::format("{} is in shared memory, so one of its loops must be bound to {}",
                                name, ir::ToString(kind)));
    }
  }
  return absl::OkStatus();
}

/// What threads make together may read what each has of its own where that is what it needs.
absl::Status NestBuilder::CheckOwnTiles(int stage, const std::vector<Expr>& axes) {
  if (s_.stages[stage].place != Place::kAt || s_.stages[stage].storage != Storage::kShared)
    return absl::OkStatus();
  const ir::Stage& made = s_.workload.stages[stage];
  std::vector<const ir::ExprNode*> loads;
  for (const Expr& body : made.body) {
    ir::Visit(body, [&](const ir::ExprNode& e) {
      if (e.kind == ir::ExprKind::kLoad) loads.push_back(&e);
    });
  }
  for (const ir::ExprNode* load : loads) {
    const Location& at = ReadingFrom(load->id);
    const int producer = s_.workload.Producer(load->id);
    if (at.buffer < 0 || at.whole() || producer == stage || s_.stages[producer].at_stage == stage ||
        s_.stages[producer].storage == Storage::kShared)
      continue;
    for (size_t d = 0; d < load->args.size(); ++d) {
      HONE_ASSIGN_OR_RETURN(const Expr index, LowerExpr(load->args[d], axes));
      const ir::Interval own = ir::BoundsOf(ir::Simplify(index - at.low[d], ranges_), ranges_);
      if (own.low >= 0 && own.high < at.extent[d]) continue;
      return Refuse(fmt::format(
          "{} is made by all threads together and cannot read {}, which each thread has its own of",
          made.name, s_.workload.stages[producer].name));
    }
  }
  return absl::OkStatus();
}

/// Lanes that share a reduce loop find their parts in registers, and combine these once.
absl::Status NestBuilder::CheckLanes(int stage) const {
  const StageSchedule& schedule = s_.stages[stage];
  const LoopNode* lanes = nullptr;
  for (const int loop : schedule.order) {
    const LoopNode& n = schedule.loops[loop];
    const bool reduce = s_.IsReduce({stage, loop});
    if (lanes != nullptr && (n.kind == ir::LoopKind::kVector || n.kind == ir::LoopKind::kDot))
      return Refuse(fmt::format("{} is {} inside of {}, which lanes share", n.name,
                                ir::ToString(n.kind), lanes->name));
    if (!reduce || !IsThread(n.kind)) continue;
    lanes = &n;
    const auto& tile = schedule.cache_write;
    if (!tile || tile->loop != loop || tile->storage != Storage::kRegister)
      return Refuse(fmt::format("lanes share {}, so a tile in registers must stand at it", n.name));
    if (schedule.HasSiblings(loop))
      return Refuse(fmt::format("lanes share {}, so it has no siblings", n.name));
    for (int p = 0; p < s_.PositionOf({stage, loop}); ++p) {
      const int outer = schedule.order[static_cast<size_t>(p)];
      if (!s_.IsReduce({stage, outer})) continue;
      return Refuse(fmt::format("lanes share {}, so it must stand around {}", n.name,
                                schedule.loops[outer].name));
    }
  }
  return absl::OkStatus();
}

absl::Status NestBuilder::CheckEpilogue(int stage) const {
  const StageSchedule& schedule = s_.stages[stage];
  if (schedule.epilogue < 0) return absl::OkStatus();
  const std::string& name = s_.workload.stages[stage].name;
  if (!schedule.cache_write)
    return Refuse(fmt::format("{} has an epilogue, so it needs a tile", name));
  const int tile = s_.PositionOf({stage, schedule.cache_write->loop});
  for (int p = 0; p <= tile; ++p) {
    const bool lanes = IsThread(schedule.loops[schedule.order[p]].kind);
    if (lanes || !s_.IsReduce({stage, schedule.order[p]})) continue;
    return Refuse(
        fmt::format("{} has an epilogue, so its tile {} must stand around its reduce loops", name,
                    schedule.cache_write->name));
  }
  for (int p : stage_order_) {
    if (s_.stages[p].place == Place::kAt && RootOf(s_, p) == stage &&
        Loads(s_.workload.stages[schedule.epilogue], s_.workload.stages[p])) {
      return Refuse(fmt::format("{} reads {}, which is computed inside {}",
                                s_.workload.stages[schedule.epilogue].name,
                                s_.workload.stages[p].name, name));
    }
  }
  return absl::OkStatus();
}

absl::Status NestBuilder::CheckWholeResultsInside(const Instance& instance, size_t position,
                                                  int var, int64_t extent, bool only) {
  bool any = false;
  for (int q : stage_order_) {
    any |= s_.stages[q].place == Place::kAt && RootOf(s_, q) == instance.stage &&
           NeedsWholeBuffer(s_, s_.workload.stages[q].results[0]);
  }
  if (!any) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(std::vector<Needed> inside, RegionsInside(instance, position));
  for (size_t k = 1; k < inside.size(); ++k) {
    const ir::Stage& q = s_.workload.stages[inside[k].region.stage];
    if (!NeedsWholeBuffer(s_, q.results[0])) continue;
    share_.insert_or_assign(inside[k].region.stage, inside[k].region);
    if (!only)
      return Refuse(fmt::format("{} is needed as a whole, but the parallel loop of {} has siblings",
                                q.name, s_.workload.stages[instance.stage].name));
    if (AreDisjoint(inside[k].region, var, extent)) continue;
    return Refuse(
        fmt::format("two iterations of the parallel loop of {} would both write elements of {}",
                    s_.workload.stages[instance.stage].name, q.name));
  }
  return absl::OkStatus();
}

}  // namespace hone::schedule
