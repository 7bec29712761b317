#include "bench/search/measured_pool.h"

#include <memory>
#include <string>

#include "base/status.h"
#include "bench/task_tuning.h"
#include "measure/local_measurer.h"
#include "schedule/trace.h"

namespace hone::bench {

absl::StatusOr<Pool> MeasurePool(const ModelTask& task, const ir::Target& target,
                                 size_t candidates, const MonotonicClock& clock) {
  Pool pool;
  pool.name = task.name;
  pool.target = target.text;
  pool.workload = task.workload;
  pool.space =
      std::make_shared<const schedule::Space>(*task.workload, target, ir::AccuracyClass::kDefault);
  measure::LocalMeasurerOptions measurer_options = MeasurerOptionsFor(target);
  pool.device_class = measurer_options.device_class;
  measure::LocalMeasurer measurer(measurer_options, clock);
  for (const uint64_t id : DrawPoints(*pool.space, candidates, 0)) {
    HONE_ASSIGN_OR_RETURN(const schedule::Trace trace, pool.space->TraceOf(id));
    measurer.Submit({.id = static_cast<int64_t>(pool.rows.size()),
                     .workload = task.workload,
                     .target = target.text,
                     .trace = schedule::ToText(trace)});
    pool.rows.push_back({.id = id, .outcome = "worker_lost"});
  }
  while (measurer.num_in_flight() > 0) {
    for (const measure::MeasureResult& r : measurer.Collect(-1)) {
      Pool::Row& row = pool.rows[static_cast<size_t>(r.id)];
      row.outcome = measure::ToString(r.outcome);
      if (r.outcome == measure::Outcome::kOk)
        row.median_ns = static_cast<double>(measure::MedianNs(r.samples_ns));
    }
  }
  std::erase_if(pool.rows, [](const Pool::Row& r) { return r.outcome == "worker_lost"; });
  return pool;
}

}  // namespace hone::bench
