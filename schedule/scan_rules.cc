#include "schedule/scan_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/status.h"
#include "schedule/nest_builder.h"

namespace hone::schedule {

using ir::Expr;

namespace {

absl::Status Refuse(std::string reason) { return absl::InvalidArgumentError(std::move(reason)); }

/// The leaves that the sequential axis was split into, outer to inner (it is never fused).
void LeavesOfT(const StageSchedule& s, int loop, std::vector<int>* leaves) {
  const LoopNode& n = s.loops[loop];
  if (n.split_outer < 0) {
    leaves->push_back(loop);
    return;
  }
  LeavesOfT(s, n.split_outer, leaves);
  LeavesOfT(s, n.split_inner, leaves);
}

/// Its iterations are phases of their own: the sequential axis is outermost and whole.
bool IsStepped(const StageSchedule& s) { return s.order[0] == 0; }

}  // namespace

std::vector<int> LeavesOfT(const StageSchedule& s) {
  std::vector<int> leaves;
  LeavesOfT(s, 0, &leaves);
  return leaves;
}

namespace {

absl::Status CheckLoopsOfT(const Schedule& schedule, int id) {
  const ir::Stage& stage = schedule.workload.stages[id];
  const StageSchedule& s = schedule.stages[id];
  int before = -1;
  for (int leaf : LeavesOfT(s)) {
    const LoopNode& n = s.loops[leaf];
    if (n.fused_into >= 0)
      return Refuse(
          fmt::format("{}: the sequential axis of {} cannot be fused", n.name, stage.name));
    if (!n.cuts.empty())
      return Refuse(
          fmt::format("{}: the sequential axis of {} cannot be partitioned", n.name, stage.name));
    if (n.kind != ir::LoopKind::kSerial && n.kind != ir::LoopKind::kUnrolled) {
      return Refuse(fmt::format("{}: the iterations of {} follow each other, they cannot be {}",
                                n.name, stage.name, ir::ToString(n.kind)));
    }
    const auto at =
        static_cast<int>(std::find(s.order.begin(), s.order.end(), leaf) - s.order.begin());
    if (at < before)
      return Refuse(
          fmt::format("{} must stand inside the outer part of the sequential axis", n.name));
    before = at;
  }
  // A later iteration reads finished values. (Inside another Stage there is one iteration only.)
  if (s.place == Place::kRoot && s.cache_write &&
      schedule.PositionOf({id, s.cache_write->loop}) < before) {
    return Refuse(fmt::format("the tile {} must stand inside the sequential axis of {}",
                              s.cache_write->name, stage.name));
  }
  for (int p = 0; p < before && s.place == Place::kRoot; ++p) {
    if (!schedule.IsReduce({id, s.order[p]})) continue;
    return Refuse(fmt::format("{} must stand inside the sequential axis of {}",
                              s.loops[s.order[p]].name, stage.name));
  }
  return absl::OkStatus();
}

/// Whether the reader loads, at its own t, the element of the producer at some of its own axes.
bool ReadsByAxes(const ir::Workload& w, int reader, int producer) {
  bool reads = false;
  for (const auto& body : w.stages[reader].body) {
    ir::Visit(body, [&](const ir::ExprNode& e) {
      if (e.kind != ir::ExprKind::kLoad || w.Producer(e.id) != producer) return;
      std::set<int> axes;
      for (const Expr& i : e.args) {
        if (i->kind == ir::ExprKind::kVar) axes.insert(i->id);
      }
      reads |= axes.size() == e.args.size() && !IsCarriedLoad(w, w.stages[producer].scan, e);
    });
  }
  return reads;
}

/// Whether a Stage of the scan computed at this loop is computed for one t.
absl::Status CheckPlaceInScan(const Schedule& s, int stage) {
  const ir::Stage& q = s.workload.stages[stage];
  const int owner = s.stages[stage].at_stage;
  if (s.workload.stages[owner].scan != q.scan) {
    return Refuse(
        fmt::format("{} belongs to a scan; it can only be computed at a loop of its scan", q.name));
  }
  if (s.stages[owner].place == Place::kAt) {
    // Its region is one iteration; parts of a split may reach beyond, and mask what they store.
    const auto& loops = s.stages[owner].loops;
    const bool whole = std::ranges::any_of(loops, [](const LoopNode& n) {
      return n.origin == LoopNode::Origin::kAxis && n.axis == 0 && n.is_leaf();
    });
    if (whole) return absl::OkStatus();
    return Refuse(fmt::format("{} belongs to a scan; it cannot be computed at a loop of {}, whose "
                              "sequential axis is split or fused",
                              q.name, s.workload.stages[owner].name));
  }
  const int last = LeavesOfT(s.stages[owner]).back();
  if (s.PositionOf({owner, s.stages[stage].at_loop}) >= s.PositionOf({owner, last}))
    return absl::OkStatus();
  return Refuse(
      fmt::format("{} belongs to a scan; it must be computed inside {}, one iteration at a time",
                  q.name, s.stages[owner].loops[last].name));
}

/// The last iteration that changes a point, where the Stage says so: a choice that keeps what the
/// iteration before made once `last < t`. Null: it may be any.
Expr LastChange(const ir::Stage& made) {
  const Expr& body = made.body[0];
  if (body->kind != ir::ExprKind::kSelect) return nullptr;
  const Expr& kept = body->args[1];
  std::vector<Expr> before;
  for (int d = 0; d < made.num_spatial(); ++d) before.push_back(ir::Var(d));
  before[0] = ir::Var(0) - ir::Int(1);
  if (kept->kind != ir::ExprKind::kLoad || kept->id != made.results[0] ||
      !std::ranges::equal(kept->args, before, ir::Equal))
    return nullptr;
  std::vector<Expr> conditions;
  ir::SplitConjunction(body->args[0], &conditions);
  Expr last;
  for (const Expr& c : conditions) {
    const bool is_less = c->kind == ir::ExprKind::kBinary && c->binary() == ir::BinaryOp::kLt;
    if (is_less && ir::Equal(c->args[1], ir::Var(0)) && !ir::DependsOnVar(c->args[0], 0))
      last = c->args[0];
    else if (!ir::Equal(c, ir::Ge(ir::Var(0), ir::Int(1))))
      return nullptr;
  }
  return last;
}

}  // namespace

bool MayOverwrite(const Schedule& schedule, int tensor) {
  constexpr int64_t kLargeBytes = int64_t{1} << 20;
  const ir::Workload& w = schedule.workload;
  const ir::Tensor& t = w.tensors[tensor];
  const int id = w.Producer(tensor);
  if (id < 0 || t.output || t.NumElements() * ir::SizeOf(t.dtype) < kLargeBytes) return false;
  const ir::Stage& made = w.stages[id];
  const StageSchedule& s = schedule.stages[id];
  if (made.scan < 0 || made.combiner != ir::Combiner::kNone || !made.store.empty() ||
      s.place != Place::kRoot || IsStepped(s))
    return false;
  const Expr last = LastChange(made);
  const auto keeps = [&](const ir::Stage& reader, const ir::ExprNode& load) {
    if (reader.scan != made.scan) {
      const bool changes_no_more =
          last && ir::Equal(ir::Simplify(ir::SubstituteVars(last, load.args), {}),
                            ir::Simplify(load.args[0], {}));
      return changes_no_more || ir::AsInt(load.args[0]) == made.spatial[0] - 1;
    }
    if (!IsCarriedLoad(w, made.scan, load)) return true;
    bool own = &reader == &made;
    for (int d = 1; own && d < made.num_spatial(); ++d) {
      const Expr& i = load.args[static_cast<size_t>(d)];
      own = i->kind == ir::ExprKind::kVar && i->id == d;
    }
    return own && ir::Equal(load.args[0], ir::Var(0) - ir::Int(1));
  };
  bool all = true;
  for (const int reader : LiveStages(schedule)) {
    for (const Expr& body : w.stages[reader].body) {
      ir::Visit(body, [&](const ir::ExprNode& e) {
        if (e.kind == ir::ExprKind::kLoad && e.id == tensor) all &= keeps(w.stages[reader], e);
      });
    }
  }
  return all;
}

absl::Status CheckScans(const Schedule& schedule, const std::vector<int>& stage_order) {
  std::map<int, std::vector<int>> roots;
  for (int id : stage_order) {
    const ir::Stage& stage = schedule.workload.stages[id];
    if (stage.scan < 0) continue;
    HONE_RETURN_IF_ERROR(CheckLoopsOfT(schedule, id));
    if (schedule.stages[id].place == Place::kRoot)
      roots[stage.scan].push_back(id);
    else
      HONE_RETURN_IF_ERROR(CheckPlaceInScan(schedule, id));
  }
  for (const auto& [scan, stages] : roots) {
    for (int id : stages) {
      if (stages.size() == 1 || IsStepped(schedule.stages[id])) continue;
      return Refuse(fmt::format(
          "{}: the sequential axis must be outermost, because its scan has other stages at root",
          schedule.workload.stages[id].name));
    }
  }
  return absl::OkStatus();
}

namespace {

/// Points along a loop of a Stage that its leaves from a position on meet: all of them where every
/// part of the loop stands there, whatever sizes the parts have.
class PointsFrom {
 public:
  PointsFrom(const Schedule& schedule, const Instance& instance, size_t position)
      : s_(schedule), instance_(instance), stage_(schedule.stages[instance.stage]) {
    leaves_.insert(stage_.order.begin() + static_cast<std::ptrdiff_t>(position),
                   stage_.order.end());
  }
  /// Along all spatial loops together.
  int64_t All() const {
    int64_t points = 1;
    for (size_t l = 0; l < stage_.loops.size(); ++l) {
      const LoopNode& n = stage_.loops[l];
      const bool whole =
          n.origin == LoopNode::Origin::kAxis || n.origin == LoopNode::Origin::kFused;
      const int loop = static_cast<int>(l);
      if (whole && !s_.IsReduce({instance_.stage, loop})) points *= Of(loop);
    }
    return points;
  }

 private:
  int64_t Of(int loop) const {
    const LoopNode& n = stage_.loops[loop];
    if (n.fused_into >= 0) return 1;  // the fused loop counts
    if (n.split_outer < 0) return leaves_.contains(loop) ? ExtentOf(s_, instance_, loop) : 1;
    if (Stands(loop)) return ExtentOf(s_, instance_, loop);
    return Of(n.split_outer) * Of(n.split_inner);
  }
  bool Stands(int loop) const {
    const LoopNode& n = stage_.loops[loop];
    if (n.fused_into >= 0) return false;
    if (n.split_outer < 0) return leaves_.contains(loop);
    return Stands(n.split_outer) && Stands(n.split_inner);
  }

  const Schedule& s_;
  const Instance& instance_;
  const StageSchedule& stage_;
  std::set<int> leaves_;
};

}  // namespace

std::set<int> NestBuilder::MadeWholly(const Instance& instance, size_t position,
                                      const std::vector<Needed>& inside) const {
  std::set<int> wholly;
  // The owner: its loops from here on meet as many points as its box has.
  int64_t box = 1;
  const StageSchedule& schedule = s_.stages[instance.stage];
  for (int a = 1; a < s_.workload.stages[instance.stage].num_spatial(); ++a)
    box *= inside[0].axes[a].width;
  if (PointsFrom(s_, instance, position + 1).All() == box) wholly.insert(instance.stage);
  // A Stage computed right here is computed in one piece; one further inside has what a reader that
  // is made wholly asks for with its own axes.
  for (const Needed& made : inside) {
    const int q = made.region.stage;
    if (AttachedAt(q, instance.stage, schedule.order[position])) wholly.insert(q);
    for (const Needed& reader : inside) {
      if (wholly.contains(reader.region.stage) && ReadsByAxes(s_.workload, reader.region.stage, q))
        wholly.insert(q);
    }
  }
  return wholly;
}

absl::Status NestBuilder::CheckCarriedInside(const Instance& instance, size_t position) {
  const ir::Stage& owner = s_.workload.stages[instance.stage];
  const StageSchedule& schedule = s_.stages[instance.stage];
  if (owner.scan < 0 || schedule.place != Place::kRoot || IsStepped(schedule))
    return absl::OkStatus();
  const std::vector<int> leaves = LeavesOfT(schedule);
  if (schedule.order[position] != leaves.back()) return absl::OkStatus();
  std::vector<int> t_vars;
  for (int leaf : leaves) {
    ir::Visit(instance.bound[leaf].value, [&](const ir::ExprNode& e) {
      if (e.kind == ir::ExprKind::kVar) t_vars.push_back(e.id);
    });
  }
  HONE_ASSIGN_OR_RETURN(std::vector<Needed> inside, RegionsInside(instance, position));
  const std::set<int> wholly = MadeWholly(instance, position, inside);
  std::string wrong;
  for (const Needed& reader : inside) {
    const ir::Stage& r = s_.workload.stages[reader.region.stage];
    if (r.scan != owner.scan) continue;
    for (const auto& body : r.body) {
      ir::Visit(body, [&](const ir::ExprNode& e) {
        if (e.kind != ir::ExprKind::kLoad || !IsCarriedLoad(s_.workload, owner.scan, e)) return;
        const int producer = s_.workload.Producer(e.id);
        const auto made = std::find_if(inside.begin(), inside.end(),
                                       [&](const Needed& n) { return n.region.stage == producer; });
        bool ok = made != inside.end() && wholly.contains(producer);
        for (size_t d = 1; ok && d < e.args.size(); ++d) {
          const Span& have = made->axes[d];
          ok = std::none_of(t_vars.begin(), t_vars.end(),
                            [&](int v) { return ir::DependsOnVar(have.low, v); });
          if (have.width >= s_.workload.stages[producer].spatial[d] && ir::AsInt(have.low) == 0)
            continue;
          const auto need = SpanOfIndex(e.args[d], reader.axes, ranges_);
          const auto offset =
              need ? ir::AsInt(ir::Simplify(need->low - have.low, ranges_)) : std::nullopt;
          ok = ok && offset && *offset >= 0 && *offset + need->width <= have.width;
        }
        if (!ok && wrong.empty())
          wrong =
              fmt::format("{} reads elements of {} that other iterations of the loops outside make",
                          r.name, s_.workload.stages[producer].name);
      });
    }
  }
  if (wrong.empty()) return absl::OkStatus();
  return Refuse(fmt::format("{}: the sequential axis must be outermost: {}", owner.name, wrong));
}

}  // namespace hone::schedule
