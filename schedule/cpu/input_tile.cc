#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "schedule/cpu/rules.h"

namespace hone::schedule {

void ScheduleInputTile(TraceWriter& w, int input, int owner, const ir::Target& target) {
  const ir::Stage stage = w.stage(owner);
  // The innermost leaf that is a whole outer axis of the owner before the tile's loops; nothing
  // stands outside of the parallel loop.
  const StageSchedule& schedule = w.schedule().stages[owner];
  std::string at;
  bool outer = true;
  for (int l : schedule.order) {
    const LoopNode& n = schedule.loops[l];
    outer &= n.origin == LoopNode::Origin::kAxis || n.origin == LoopNode::Origin::kFused;
    if (outer) at = n.name;
    if (!outer && n.kind == ir::LoopKind::kParallel) at.clear();
  }
  if (at.empty()) return ScheduleMap(w, input, 1, target);
  w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(input), at));
  const ir::Stage copy = w.stage(input);
  const int v = VectorAxis(w.workload(), copy);
  const int lanes = LanesFor(w.workload().tensors[copy.results[0]].dtype, target);
  if (v < 0 || copy.spatial[v] < 2) return;
  const int64_t width = std::min<int64_t>(lanes, copy.spatial[v]);
  const std::string axis = fmt::format("{}.i{}", copy.name, v);
  w.Emit(fmt::format("split({}, {}, mask)", axis, width));
  w.Emit(fmt::format("vectorize({}.1)", axis));
}

}  // namespace hone::schedule
