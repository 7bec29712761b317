#include <fmt/format.h>

#include "base/status.h"
#include "ir/combiner.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {

/// Whether every load of the tensor is at the reader's own point.
bool ReadsOwnPoint(const ir::Stage& reader, int tensor) {
  bool own = true;
  ir::Visit(reader.body[0], [&](const ir::ExprNode& e) {
    if (e.kind != ir::ExprKind::kLoad || e.id != tensor) return;
    for (size_t d = 0; d < e.args.size(); ++d)
      own &= e.args[d]->kind == ir::ExprKind::kVar && e.args[d]->id == static_cast<int>(d);
  });
  return own;
}

bool Reads(const ir::Stage& reader, int tensor) {
  bool reads = false;
  for (const ir::Expr& body : reader.body) {
    ir::Visit(body, [&](const ir::ExprNode& e) {
      reads |= e.kind == ir::ExprKind::kLoad && e.id == tensor;
    });
  }
  return reads;
}

}  // namespace

// epilogue(STAGE, MAP): STAGE's tile is stored through MAP, its only reader, which reads it point
// by point; STAGE's own result is never stored. STAGE needs a tile around its reduce loops.
absl::Status ApplyEpilogue(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(2, 2));
  HONE_ASSIGN_OR_RETURN(int id, args.Stage(0));
  HONE_ASSIGN_OR_RETURN(int map, args.Stage(1));
  const ir::Stage& stage = schedule.workload.stages[id];
  const ir::Stage& reader = schedule.workload.stages[map];
  if (stage.combiner == ir::Combiner::kNone)
    return Illegal(fmt::format("{} does not reduce", stage.name));
  if (ir::IsTuple(stage.combiner)) return Illegal(fmt::format("{} has two results", stage.name));
  if (reader.combiner != ir::Combiner::kNone)
    return Illegal(fmt::format("{} reduces", reader.name));
  if (stage.scan >= 0 || reader.scan >= 0) return Illegal("stages of scans have no epilogue");
  const int result = stage.results[0];
  if (schedule.workload.tensors[result].output)
    return Illegal(fmt::format("{} is an output", stage.name));
  if (reader.spatial != stage.spatial || !Reads(reader, result) || !ReadsOwnPoint(reader, result))
    return Illegal(fmt::format("{} does not read {} point by point", reader.name, stage.name));
  for (const int each : {id, map}) {
    if (schedule.stages[each].place != Place::kRoot || schedule.stages[each].epilogue >= 0)
      return Illegal(fmt::format("{} has a place or an epilogue already",
                                 schedule.workload.stages[each].name));
  }
  HONE_RETURN_IF_ERROR(RequireUnscheduled(schedule, map));
  for (size_t other = 0; other < schedule.stages.size(); ++other) {
    if (static_cast<int>(other) == map || schedule.stages[other].place == Place::kInline) continue;
    if (Reads(schedule.workload.stages[other], result))
      return Illegal(
          fmt::format("{} reads {} too", schedule.workload.stages[other].name, stage.name));
  }
  schedule.stages[id].epilogue = map;
  schedule.stages[map].place = Place::kEpilogue;
  schedule.stages[map].at_stage = id;
  return absl::OkStatus();
}

}  // namespace hone::schedule
