#include <fmt/format.h>

#include "base/status.h"
#include "ir/index/simplify.h"
#include "schedule/access.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {

void SimplifyBodies(ir::Stage& stage) {
  const ir::VarRanges ranges = RangesOf(stage);
  for (ir::Expr& body : stage.body) body = ir::Simplify(body, ranges);
}

/// An output's points say where they lie, as before; other Stages are told of a private result.
void SplitResult(Schedule& schedule, int id, int axis, int64_t part,
                 const std::vector<ir::Expr>& old_axes) {
  ir::Stage& stage = schedule.workload.stages[id];
  ir::Tensor& result = schedule.workload.tensors[stage.results[0]];
  if (result.output) {
    std::vector<ir::Expr> store = stage.store;
    for (size_t d = 0; stage.store.empty() && d < result.shape.size(); ++d)
      store.push_back(ir::Var(static_cast<int>(d)));
    const ir::VarRanges ranges = RangesOf(stage);
    for (ir::Expr& e : store) e = ir::Simplify(ir::SubstituteVars(e, old_axes), ranges);
    stage.store = std::move(store);
    return;
  }
  result.shape = stage.spatial;
  const int tensor = stage.results[0];
  const ir::DType dtype = result.dtype;
  for (ir::Stage& reader : schedule.workload.stages) {
    bool reads = false;
    ReplaceLoads(reader, tensor, [&](const std::vector<ir::Expr>& at) {
      reads = true;
      std::vector<ir::Expr> indices = at;
      indices[axis] = ir::FloorDiv(at[axis], part);
      indices.insert(indices.begin() + axis + 1, ir::FloorMod(at[axis], part));
      return ir::Load(tensor, dtype, std::move(indices));
    });
    if (reads) SimplifyBodies(reader);
  }
}

}  // namespace

// unflatten(STAGE, iK, f): a spatial axis becomes two, f iterations of the inner one, which must
// divide it: the inverse of flatten.
absl::Status ApplyUnflatten(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(3, 3));
  HONE_ASSIGN_OR_RETURN(const int id, args.Stage(0));
  HONE_ASSIGN_OR_RETURN(const int64_t part, args.Integer(2));
  HONE_RETURN_IF_ERROR(RequireUnscheduled(schedule, id));
  ir::Stage& stage = schedule.workload.stages[id];
  const std::string& item = args.Text(1);
  if (item.size() < 2 || item[0] != 'i')
    return Illegal(fmt::format("{}: axes are i0, i1, …", item));
  HONE_ASSIGN_OR_RETURN(const int64_t number, ParseInteger(std::string_view(item).substr(1)));
  if (number < 0 || number >= stage.num_spatial())
    return Illegal(fmt::format("{} has no {}", stage.name, item));
  const auto axis = static_cast<int>(number);
  if (stage.scan >= 0) return Illegal(fmt::format("{} belongs to a scan", stage.name));
  if (stage.results.size() != 1) return Illegal(fmt::format("{} has two results", stage.name));
  if (schedule.stages[id].place != Place::kRoot)
    return Illegal(fmt::format("{} has a place already", stage.name));
  if (!schedule.stages[id].align.empty())
    return Illegal(fmt::format("{} is aligned already", stage.name));
  if (stage.num_spatial() == ir::kMaxRank)
    return Illegal(fmt::format("{} has {} axes already", stage.name, stage.num_spatial()));
  if (part < 1 || stage.spatial[axis] % part != 0)
    return Illegal(fmt::format("{} iterations are no multiple of {}", stage.spatial[axis], part));
  std::vector<ir::Expr> axes;
  for (int a = 0; a < stage.num_axes(); ++a) {
    axes.push_back(a == axis ? ir::Var(a) * part + ir::Var(a + 1) : ir::Var(a > axis ? a + 1 : a));
  }
  for (ir::Expr& body : stage.body) body = ir::SubstituteVars(body, axes);
  stage.spatial[axis] /= part;
  stage.spatial.insert(stage.spatial.begin() + axis + 1, part);
  SplitResult(schedule, id, axis, part, axes);
  SimplifyBodies(schedule.workload.stages[id]);
  ResetLoops(schedule, id);
  return absl::OkStatus();
}

}  // namespace hone::schedule
