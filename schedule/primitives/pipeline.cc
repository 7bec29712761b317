#include <fmt/format.h>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

// pipeline(LOOP, stages): what is computed at LOOP into shared memory is on its way `stages` - 1
// iterations before it is read, in as many tiles. All of it must be made from memory alone, which
// lowering checks; where the threads wait follows from who reads what.
// pipeline(LOOP, stages, boxes): one thread asks for each of them as a box of a tensor, which lies
// in memory as a matrix does (nest_boxes.cc). Their loops stay as they are.
absl::Status ApplyPipeline(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(2, 3));
  HONE_ASSIGN_OR_RETURN(Schedule::LoopRef ref, args.Loop(0));
  HONE_ASSIGN_OR_RETURN(int64_t stages, args.Integer(1));
  if (schedule.node(ref).origin == LoopNode::Origin::kFused &&
      schedule.stages[ref.stage].HasSiblings(ref.loop))
    return Illegal(fmt::format("{} is a fusion with siblings", args.Text(0)));
  if (stages < 2 || stages > 8) return Illegal("the number of tiles must lie in 2..8");
  if (args.count() > 2 && args.Text(2) != "boxes")
    return Illegal(fmt::format("no {}; there is: boxes", args.Text(2)));
  HONE_RETURN_IF_ERROR(RequireSerial(schedule, ref));
  LoopNode& node = schedule.node(ref);
  if (node.stages > 1) return Illegal(fmt::format("{} is a pipeline already", node.name));
  node.stages = stages;
  node.boxes = args.count() > 2;
  return absl::OkStatus();
}

}  // namespace hone::schedule
