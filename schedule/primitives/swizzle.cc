#include <fmt/format.h>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

// swizzle(STAGE): the shared tile of STAGE, numbers of 16 bits, is laid out as wgmma reads it: rows
// of 64 numbers, of which pieces of 16 bytes are exchanged so that a column of them meets every
// bank. What a tile's rows have more lies in further such tiles.
absl::Status ApplySwizzle(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(1, 1));
  HONE_ASSIGN_OR_RETURN(int id, args.Stage(0));
  const ir::Stage& stage = schedule.workload.stages[id];
  StageSchedule& s = schedule.stages[id];
  if (s.place != Place::kAt || s.storage != Storage::kShared)
    return Illegal(fmt::format("{} is not computed at a loop into shared memory", stage.name));
  if (s.swizzle) return Illegal(fmt::format("{} is swizzled already", stage.name));
  s.swizzle = true;
  return absl::OkStatus();
}

}  // namespace hone::schedule
