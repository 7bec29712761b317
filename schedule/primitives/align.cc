#include <fmt/format.h>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

// align(STAGE, dimension, elements): so many unused elements after each row of that dimension of
// STAGE's private buffer, so that its stride is no multiple of 4 KiB.
absl::Status ApplyAlign(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(3, 3));
  HONE_ASSIGN_OR_RETURN(int id, args.Stage(0));
  HONE_ASSIGN_OR_RETURN(int64_t dimension, args.Integer(1));
  HONE_ASSIGN_OR_RETURN(int64_t elements, args.Integer(2));
  const ir::Stage& stage = schedule.workload.stages[id];
  const ir::Tensor& t = schedule.workload.tensors[stage.results[0]];
  if (t.output) return Illegal(fmt::format("{} is an output; its strides are given", stage.name));
  if (dimension < 0 || dimension >= static_cast<int64_t>(t.shape.size()))
    return Illegal("no such dimension");
  if (elements < 0 || elements > 4096) return Illegal("elements must lie in 0..4096");
  auto& align = schedule.stages[id].align;
  align.resize(t.shape.size(), 0);
  align[dimension] = elements;
  return absl::OkStatus();
}

}  // namespace hone::schedule
