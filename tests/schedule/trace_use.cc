#include "tests/schedule/trace_use.h"

#include <fmt/format.h>

#include "schedule/nest_builder.h"

namespace hone::schedule {

void CountPlaces(const Schedule& schedule, TraceUse* use) {
  static const char* kStorage[] = {"memory", "register", "shared"};
  for (const int id : LiveStages(schedule)) {
    const StageSchedule& s = schedule.stages[static_cast<size_t>(id)];
    if (s.place == Place::kRoot) ++use->counts["place root"];
    if (s.place == Place::kAt)
      ++use->counts[fmt::format("place {}", kStorage[static_cast<int>(s.storage)])];
  }
}

}  // namespace hone::schedule
