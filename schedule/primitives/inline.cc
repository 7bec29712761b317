#include <fmt/format.h>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {
/// Bodies that are inlined again and again double each time.
constexpr int64_t kMaxNodes = 1 << 16;

void CountNodes(const ir::Expr& e, int64_t* nodes) {
  if (++*nodes > kMaxNodes) return;
  for (const auto& a : e->args) CountNodes(a, nodes);
}
}  // namespace

// inline(STAGE): its body stands in place of every load of its result. For Stages without reduction
// that are not outputs.
absl::Status ApplyInline(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(1, 1));
  HONE_ASSIGN_OR_RETURN(int id, args.Stage(0));
  const ir::Stage producer = schedule.workload.stages[id];
  if (producer.combiner != ir::Combiner::kNone)
    return Illegal(fmt::format("{} reduces", producer.name));
  if (producer.scan >= 0) return Illegal(fmt::format("{} belongs to a scan", producer.name));
  if (schedule.workload.tensors[producer.results[0]].output)
    return Illegal(fmt::format("{} is an output", producer.name));
  if (schedule.stages[id].place != Place::kRoot)
    return Illegal(fmt::format("{} has a place already", producer.name));
  HONE_RETURN_IF_ERROR(RequireUnscheduled(schedule, id));
  schedule.stages[id].place = Place::kInline;
  for (auto& reader : schedule.workload.stages) {
    if (reader.name == producer.name) continue;
    ReplaceLoads(reader, producer.results[0], [&](const std::vector<ir::Expr>& indices) {
      return ir::SubstituteVars(producer.body[0], indices);
    });
    int64_t nodes = 0;
    for (const auto& body : reader.body) CountNodes(body, &nodes);
    if (nodes > kMaxNodes)
      return Illegal(fmt::format("{} would have more than {} operations", reader.name, kMaxNodes));
  }
  return absl::OkStatus();
}

}  // namespace hone::schedule
