#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {

/// The old axis that stands at each new place. Error: not each of them once.
absl::StatusOr<std::vector<int>> ParseOrder(const ir::Stage& stage, std::string_view text) {
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> items, ListItems(text));
  std::vector<int> order;
  for (const std::string& item : items) {
    if (item.size() < 2 || item[0] != 'i')
      return Illegal(fmt::format("{}: axes are i0, i1, …", item));
    HONE_ASSIGN_OR_RETURN(const int64_t axis, ParseInteger(std::string_view(item).substr(1)));
    if (axis < 0 || axis >= stage.num_spatial())
      return Illegal(fmt::format("{} has no {}", stage.name, item));
    if (std::ranges::find(order, static_cast<int>(axis)) != order.end())
      return Illegal(fmt::format("{} stands twice", item));
    order.push_back(static_cast<int>(axis));
  }
  if (static_cast<int>(order.size()) != stage.num_spatial())
    return Illegal(fmt::format("{} has {} axes, not {}", stage.name, stage.num_spatial(),
                               order.size()));
  return order;
}

}  // namespace

// permute(STAGE, [i0,i2,i1]): its axes, and the dimensions of its private result, in this order.
absl::Status ApplyPermute(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(2, 2));
  HONE_ASSIGN_OR_RETURN(const int id, args.Stage(0));
  HONE_RETURN_IF_ERROR(RequireUnscheduled(schedule, id));
  ir::Stage& stage = schedule.workload.stages[id];
  if (stage.scan >= 0) return Illegal(fmt::format("{} belongs to a scan", stage.name));
  if (stage.results.size() != 1) return Illegal(fmt::format("{} has two results", stage.name));
  ir::Tensor& result = schedule.workload.tensors[stage.results[0]];
  if (result.output) return Illegal(fmt::format("{} is an output", stage.name));
  if (schedule.stages[id].place != Place::kRoot)
    return Illegal(fmt::format("{} has a place already", stage.name));
  if (!schedule.stages[id].align.empty())
    return Illegal(fmt::format("{} is aligned already", stage.name));
  if (!stage.store.empty())
    return Illegal(fmt::format("{} is stored elsewhere than at its axes", stage.name));
  HONE_ASSIGN_OR_RETURN(const std::vector<int> order, ParseOrder(stage, args.Text(1)));
  std::vector<ir::Expr> axes(static_cast<size_t>(stage.num_axes()));
  std::vector<int64_t> spatial;
  for (size_t place = 0; place < order.size(); ++place) {
    axes[static_cast<size_t>(order[place])] = ir::Var(static_cast<int>(place));
    spatial.push_back(stage.spatial[static_cast<size_t>(order[place])]);
  }
  for (int a = stage.num_spatial(); a < stage.num_axes(); ++a)
    axes[static_cast<size_t>(a)] = ir::Var(a);
  for (ir::Expr& body : stage.body) body = ir::SubstituteVars(body, axes);
  stage.spatial = spatial;
  result.shape = std::move(spatial);
  const int tensor = stage.results[0];
  const ir::DType dtype = result.dtype;
  for (ir::Stage& reader : schedule.workload.stages) {
    ReplaceLoads(reader, tensor, [&](const std::vector<ir::Expr>& at) {
      std::vector<ir::Expr> indices;
      for (const int axis : order) indices.push_back(at[static_cast<size_t>(axis)]);
      return ir::Load(tensor, dtype, std::move(indices));
    });
  }
  ResetLoops(schedule, id);
  return absl::OkStatus();
}

}  // namespace hone::schedule
