#include <fmt/format.h>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

// partition(LOOP, [c1, c2, …]): LOOP becomes sibling loops over [0,c1), [c1,c2), …, each with
// everything inside it; a sibling of one iteration is straight code with constants (peeled
// borders). Negative cuts count from the end.
absl::Status ApplyPartition(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(2, 2));
  HONE_ASSIGN_OR_RETURN(Schedule::LoopRef ref, args.Loop(0));
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> cuts, args.Integers(1));
  HONE_RETURN_IF_ERROR(RequireSerial(schedule, ref));
  LoopNode& n = schedule.node(ref);
  if (n.origin == LoopNode::Origin::kFused && schedule.stages[ref.stage].HasSiblings(ref.loop) &&
      n.cuts.empty())
    return Illegal(fmt::format("{} has siblings already", n.name));
  if (!n.cuts.empty()) return Illegal(fmt::format("{} is partitioned already", n.name));
  if (schedule.IsReduce(ref)) return Illegal("a reduce loop cannot be partitioned");
  if (cuts.empty() || cuts.size() > 8) return Illegal("takes one to eight cuts");
  for (int64_t c : cuts) {
    if (c == 0) return Illegal("a cut at 0 makes an empty part");
  }
  n.cuts = std::move(cuts);
  return absl::OkStatus();
}

}  // namespace hone::schedule
