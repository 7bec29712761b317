#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

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
    const LoopNode& n = s.loops[s.order[p]];
    if (n.origin != LoopNode::Origin::kOuter || n.tail != Tail::kTwoSizes) continue;
    for (size_t q = 0; q < p; ++q) {
      int node = s.order[q];
      while (node >= 0 && s.loops[node].origin != LoopNode::Origin::kAxis) {
        if (s.loops[node].origin == LoopNode::Origin::kInner && s.loops[node].parent == n.parent) {
          return Illegal(fmt::format("{} must stay inside {}", s.loops[s.order[q]].name, n.name));
        }
        if (s.loops[node].origin == LoopNode::Origin::kFused) break;
        node = s.loops[node].parent;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::schedule
