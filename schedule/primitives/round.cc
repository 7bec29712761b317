#include <fmt/format.h>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

// round(STAGE, dimension, multiple): where STAGE is computed at a loop, what is computed of it
// along this dimension is a whole multiple, as far as the dimension has so many points: earlier
// ones are computed once more.
absl::Status ApplyRound(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(3, 3));
  HONE_ASSIGN_OR_RETURN(const int id, args.Stage(0));
  HONE_ASSIGN_OR_RETURN(const int64_t dimension, args.Integer(1));
  HONE_ASSIGN_OR_RETURN(const int64_t multiple, args.Integer(2));
  const ir::Stage& stage = schedule.workload.stages[id];
  constexpr int64_t kMost = 64;
  if (stage.scan >= 0) return Illegal(fmt::format("{} belongs to a scan", stage.name));
  if (schedule.workload.tensors[stage.results[0]].output)
    return Illegal(fmt::format("{} is an output", stage.name));
  if (schedule.stages[id].place != Place::kAt)
    return Illegal(fmt::format("{} is computed at no loop", stage.name));
  if (dimension < 0 || dimension >= stage.num_spatial()) return Illegal("no such dimension");
  if (multiple < 1 || multiple > kMost)
    return Illegal(fmt::format("the multiple must lie in 1..{}", kMost));
  auto& multiples = schedule.stages[id].multiples;
  multiples.resize(stage.spatial.size(), 1);
  multiples[static_cast<size_t>(dimension)] = multiple;
  return absl::OkStatus();
}

}  // namespace hone::schedule
