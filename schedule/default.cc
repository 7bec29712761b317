#include "base/status.h"
#include "schedule/lower.h"
#include "schedule/schedule.h"

namespace hone::schedule {

absl::StatusOr<Trace> DefaultTrace(const ir::Workload& workload, const ir::Target& target) {
  (void)workload;
  (void)target;
  return Trace{};
}

}  // namespace hone::schedule
