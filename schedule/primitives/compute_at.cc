#include <fmt/format.h>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {
/// True when `stage` is computed, directly or through others, inside `other`.
bool IsInside(const Schedule& s, int stage, int other) {
  for (int at = stage; at >= 0;
       at = s.stages[at].place == Place::kAt ? s.stages[at].at_stage : -1) {
    if (at == other) return true;
  }
  return false;
}
}  // namespace

// compute_at(STAGE, LOOP[, memory|register|shared]): what LOOP's inside needs of STAGE is computed
// at its beginning, into a tile of scratch memory (default), registers or GPU shared memory. All
// readers must be inside LOOP.
absl::Status ApplyComputeAt(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(2, 3));
  HONE_ASSIGN_OR_RETURN(int id, args.Stage(0));
  HONE_ASSIGN_OR_RETURN(Schedule::LoopRef at, args.Loop(1));
  const ir::Stage& stage = schedule.workload.stages[id];
  StageSchedule& s = schedule.stages[id];
  if (s.place != Place::kRoot) return Illegal(fmt::format("{} has a place already", stage.name));
  if (IsInside(schedule, at.stage, id))
    return Illegal(fmt::format("{} would be inside itself", stage.name));
  if (schedule.stages[at.stage].place == Place::kInline)
    return Illegal(
        fmt::format("{} has no loops, it is inlined", schedule.workload.stages[at.stage].name));
  if (schedule.stages[at.stage].place == Place::kEpilogue || s.epilogue >= 0)
    return Illegal(
        "a stage that has an epilogue, or is one, is computed at no loop, and no stage is computed "
        "at its loops");
  if (!stage.store.empty())
    return Illegal(fmt::format("{} is stored elsewhere than at its axes", stage.name));
  Storage storage = Storage::kMemory;
  if (args.count() == 3) {
    if (args.Text(2) == "register")
      storage = Storage::kRegister;
    else if (args.Text(2) == "shared")
      storage = Storage::kShared;
    else if (args.Text(2) != "memory")
      return Illegal(fmt::format("no storage {}; there are: memory register shared", args.Text(2)));
  }
  for (const auto& n : s.loops) {
    if (n.kind == ir::LoopKind::kParallel)
      return Illegal(fmt::format("{} has a parallel loop", stage.name));
  }
  if (storage != Storage::kMemory) {
    for (int r : stage.results) {
      if (schedule.workload.tensors[r].output)
        return Illegal(fmt::format("{} is an output", stage.name));
    }
  }
  s.place = Place::kAt;
  s.at_stage = at.stage;
  s.at_loop = at.loop;
  s.storage = storage;
  return absl::OkStatus();
}

}  // namespace hone::schedule
