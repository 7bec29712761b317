#include <fmt/format.h>

#include "base/status.h"
#include "ir/combiner.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

// sN = rfactor(STAGE, STAGE.rK, f, inner|outer[, first]): the reduction over rK becomes two: sN
// folds ceil(n/f) elements for each of f partial results (inner: element r = q·f + p belongs to
// partial p; outer: r = p·ceil(n/f) + q), with p its last spatial axis, or its first; STAGE folds
// the partial results. Floats are then added in another order. A Stage of a scan keeps its first
// axis: sN folds in every iteration what STAGE folded.
absl::Status ApplyRfactor(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(4, 5));
  HONE_ASSIGN_OR_RETURN(int id, args.Stage(0));
  HONE_ASSIGN_OR_RETURN(Schedule::LoopRef ref, args.Loop(1));
  HONE_ASSIGN_OR_RETURN(int64_t f, args.Integer(2));
  const bool inner = args.Text(3) == "inner";
  if (!inner && args.Text(3) != "outer") return Illegal("says inner or outer");
  const bool first = args.count() == 5;
  if (first && args.Text(4) != "first") return Illegal("says first, or nothing");
  if (ref.stage != id)
    return Illegal(fmt::format("{} is not a loop of {}", args.Text(1), args.Text(0)));
  HONE_RETURN_IF_ERROR(RequireUnscheduled(schedule, id));
  const ir::Stage old = schedule.workload.stages[id];
  const int S = old.num_spatial();
  const int axis = schedule.node(ref).axis;
  if (axis < S) return Illegal(fmt::format("{} is not a reduce axis", args.Text(1)));
  if (ir::IsTuple(old.combiner)) return Illegal("a tuple reduction cannot be factored");
  if (old.scan >= 0 && first)
    return Illegal("the first axis of a stage of a scan is the sequential one");
  const int64_t n = old.Extent(axis);
  if (f < 2 || f > n || f > 4096)
    return Illegal(fmt::format("the factor must lie in 2..min({}, 4096)", n));
  if (S + 1 > ir::kMaxRank)
    return Illegal(fmt::format("the partial results would have {} dimensions", S + 1));
  HONE_ASSIGN_OR_RETURN(std::string name, TakeStageName(schedule, instruction));
  const ir::DType dtype = old.body[0]->dtype;
  const int64_t q = (n + f - 1) / f;
  const int place = first ? 0 : S;  // of p among the axes

  ir::Stage partial;
  partial.spatial = old.spatial;
  partial.spatial.insert(partial.spatial.begin() + place, f);
  partial.reduce = old.reduce;
  partial.reduce[axis - S] = q;
  partial.combiner = old.combiner;
  partial.scan = old.scan;
  // Variables shift by one after the new spatial axis.
  std::vector<ir::Expr> vars;
  for (int a = 0; a < old.num_axes(); ++a) vars.push_back(ir::Var(a < place ? a : a + 1));
  ir::Expr p = ir::Var(place), step = ir::Var(axis + 1);
  vars[axis] = inner ? step * f + p : p * q + step;
  ir::Expr body = ir::SubstituteVars(old.body[0], vars);
  if (n % f != 0)
    body = ir::Select(ir::Lt(vars[axis], ir::Int(n)), body, ir::Identity(old.combiner, dtype, 0));
  partial.body = {body};
  std::vector<int64_t> shape = partial.spatial;
  int result = AppendStage(schedule, std::move(partial), name, dtype, shape);

  ir::Stage& stage = schedule.workload.stages[id];
  stage.reduce = {f};
  std::vector<ir::Expr> indices;
  for (int a = 0; a < S; ++a) indices.push_back(ir::Var(a));
  indices.insert(indices.begin() + place, ir::Var(S));
  stage.body = {ir::Load(result, dtype, indices)};
  // The Stage's axes changed: fresh loops, same place.
  StageSchedule& s = schedule.stages[id];
  s.loops.clear();
  s.order.clear();
  for (int a = 0; a <= S; ++a) {
    LoopNode node;
    node.name = fmt::format("{}.{}{}", stage.name, a < S ? 'i' : 'r', a < S ? a : 0);
    node.axis = a;
    s.loops.push_back(std::move(node));
    s.order.push_back(a);
  }
  return absl::OkStatus();
}

}  // namespace hone::schedule
