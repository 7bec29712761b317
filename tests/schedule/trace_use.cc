#include "tests/schedule/trace_use.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/nest_builder.h"

namespace hone::schedule {

std::vector<int> TensorsReadBy(const ir::Stage& stage) {
  std::vector<int> out;
  for (const ir::Expr& body : stage.body) {
    ir::Visit(body, [&](const ir::ExprNode& e) {
      if (e.kind == ir::ExprKind::kLoad && std::ranges::find(out, e.id) == out.end())
        out.push_back(e.id);
    });
  }
  return out;
}

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
