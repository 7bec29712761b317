#include <fmt/format.h>

#include "base/status.h"
#include "schedule/algorithms/online_softmax.h"
#include "schedule/algorithms/winograd.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

// sN = algorithm(STAGE, winograd, m), sN = algorithm(STAGE, online_softmax, B): computes the same
// result by another algorithm. New Stages are sN, sN+1, … in the order the algorithm documents;
// STAGE itself becomes the last step.
absl::Status ApplyAlgorithm(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(3, 3));
  HONE_ASSIGN_OR_RETURN(int id, args.Stage(0));
  HONE_RETURN_IF_ERROR(RequireUnscheduled(schedule, id));
  const bool winograd = args.Text(1) == "winograd";
  if (!winograd && args.Text(1) != "online_softmax") {
    return Illegal(
        fmt::format("no algorithm {}; there are: winograd online_softmax", args.Text(1)));
  }
  HONE_ASSIGN_OR_RETURN(int64_t number, args.Integer(2));
  HONE_ASSIGN_OR_RETURN(std::string name, TakeStageName(schedule, instruction));
  if (!winograd) return RewriteAsOnlineSoftmax(schedule, id, number, name);
  return RewriteAsWinograd(schedule, id, number, name);
}

}  // namespace hone::schedule
