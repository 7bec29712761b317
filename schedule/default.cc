#include "base/status.h"
#include "schedule/lower.h"
#include "schedule/sketches/rules.h"
#include "schedule/structure.h"
#include "schedule/trace_writer.h"

namespace hone::schedule {

absl::StatusOr<Trace> DefaultTrace(const ir::Workload& workload, const ir::Target& target) {
  TraceWriter writer(workload);
  for (const Cluster& cluster : FindClusters(writer)) {
    const ir::Stage& owner = writer.stage(cluster.owner);
    if (owner.scan >= 0) {
      ScheduleScan(writer, cluster.owner, target);
    } else if (cluster.anchor >= 0) {
      TileForm form = FindTileForm(writer, cluster, target);
      ScheduleTile(writer, form, NominalTile(writer, form, target), target);
    } else if (!cluster.members.empty() || owner.combiner != ir::Combiner::kNone) {
      ScheduleRows(writer, cluster, target);
    } else {
      ScheduleMap(writer, cluster.owner, target);
    }
  }
  HONE_RETURN_IF_ERROR(writer.status());
  return writer.trace();
}

}  // namespace hone::schedule
