#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {
/// True when the loop is `source` or was split or fused from it, at any remove.
bool IsMadeFrom(const StageSchedule& s, int loop, int source) {
  if (loop < 0 || loop == source) return loop == source;
  const LoopNode& n = s.loops[loop];
  if (n.origin == LoopNode::Origin::kFused) {
    return IsMadeFrom(s, n.fused_outer, source) || IsMadeFrom(s, n.fused_inner, source);
  }
  return IsMadeFrom(s, n.parent, source);
}
}  // namespace

// reorder(A, B, …): these loops of one stage take, in this order, the positions they hold together.
absl::Status ApplyReorder(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(2, 64));
  std::vector<int> loops, positions;
  int stage = -1;
  for (int i = 0; i < args.count(); ++i) {
    HONE_ASSIGN_OR_RETURN(Schedule::LoopRef ref, args.Loop(i));
    if (stage >= 0 && ref.stage != stage) return Illegal("the loops belong to different stages");
    stage = ref.stage;
    if (std::find(loops.begin(), loops.end(), ref.loop) != loops.end()) {
      return Illegal(fmt::format("{} stands twice", args.Text(i)));
    }
    loops.push_back(ref.loop);
    positions.push_back(schedule.PositionOf(ref));
  }
  std::sort(positions.begin(), positions.end());
  StageSchedule& s = schedule.stages[stage];
  for (size_t i = 0; i < loops.size(); ++i) s.order[positions[i]] = loops[i];
  // The sizes of a two_sizes split's inner loop follow from its outer loop, which must come first.
  for (size_t p = 0; p < s.order.size(); ++p) {
    if (!s.HasTwoSizes(s.order[p])) continue;
    const LoopNode& n = s.loops[s.SlowestOf(s.order[p])];
    for (size_t q = 0; q < p; ++q) {
      if (!IsMadeFrom(s, s.order[q], s.loops[n.parent].split_inner)) continue;
      return Illegal(fmt::format("{} must stay inside {}", s.loops[s.order[q]].name, n.name));
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::schedule
