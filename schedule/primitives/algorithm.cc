#include <fmt/format.h>

#include "base/status.h"
#include "schedule/algorithms/kept_panels.h"
#include "schedule/algorithms/kept_values.h"
#include "schedule/algorithms/late_quotient.h"
#include "schedule/algorithms/online_softmax.h"
#include "schedule/algorithms/winograd.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {

/// Rewrites a Stage with a number that says how; new Stages from `first_name` on.
struct Algorithm {
  std::string_view name;
  absl::Status (*rewrite)(Schedule& schedule, int stage, int64_t number,
                          const std::string& first_name);
};
constexpr Algorithm kAlgorithms[] = {
    {"winograd", RewriteAsWinograd},
    {"online_softmax", RewriteAsOnlineSoftmax},
    {"late_quotient", RewriteWithLateQuotient},
    {"panels", RewriteAsKeptPanels},
    {"bitmask", RewriteAsKeptValues},
};

}  // namespace

// sN = algorithm(STAGE, winograd, m), sN = algorithm(STAGE, online_softmax, B),
// sN = algorithm(STAGE, late_quotient, 0), sN = algorithm(STAGE, panels, W),
// sN = algorithm(STAGE, bitmask, W): computes the same result by another algorithm. New Stages are
// sN, sN+1, … in the order the algorithm documents; STAGE itself becomes the last step.
absl::Status ApplyAlgorithm(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(3, 3));
  HONE_ASSIGN_OR_RETURN(int id, args.Stage(0));
  HONE_RETURN_IF_ERROR(RequireUnscheduled(schedule, id));
  std::string known;
  for (const Algorithm& algorithm : kAlgorithms) {
    known += fmt::format(" {}", algorithm.name);
    if (algorithm.name != args.Text(1)) continue;
    HONE_ASSIGN_OR_RETURN(int64_t number, args.Integer(2));
    HONE_ASSIGN_OR_RETURN(std::string name, TakeStageName(schedule, instruction));
    return algorithm.rewrite(schedule, id, number, name);
  }
  return Illegal(fmt::format("no algorithm {}; there are:{}", args.Text(1), known));
}

}  // namespace hone::schedule
