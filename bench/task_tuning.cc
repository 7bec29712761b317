#include "bench/task_tuning.h"

#include <algorithm>
#include <atomic>

#include "base/core/cpu.h"
#include "base/status.h"
#include "base/versions.h"
#include "db/memory_database.h"
#include "measure/device.h"
#include "search/tuning_session.h"

namespace hone::bench {

measure::LocalMeasurerOptions MeasurerOptionsFor(const ir::Target& target) {
  measure::LocalMeasurerOptions options;
  options.builder.processes = UsableCores();
  options.runner.device = target.kind + ":0";
  options.builder.job_timeout_ns = 20'000'000'000;
  options.alternate = target.threads + options.builder.processes > UsableCores();
  options.device_class = measure::DeviceClassFor(target);
  return options;
}

absl::StatusOr<TunedTask> TuneTask(std::shared_ptr<const ir::Workload> workload,
                                   const ir::Target& target,
                                   const measure::LocalMeasurerOptions& options, int64_t trials,
                                   uint64_t seed, const MonotonicClock& clock) {
  const SystemWallClock wall_clock;
  std::atomic<bool> searched = false;
  search::SessionOptions session_options;
  session_options.request = "bench";
  session_options.seed = seed;
  session_options.trials = trials;
  session_options.seconds = 0;
  session_options.target = target;
  HONE_ASSIGN_OR_RETURN(const measure::HostDevice host,
                        measure::DescribeDevice(options.runner.device));
  session_options.device = {host.device_class, host.fingerprint};
  session_options.builder_version = std::to_string(kBuilderVersion);
  session_options.interrupted = &searched;  // the search's end is the end
  search::TuningTask task = search::TaskOf(std::move(workload), target);
  task.name = "bench";

  db::MemoryDatabase log;
  TunedTask out;
  measure::LocalMeasurer measurer(options, clock);
  search::TuningSession session(log, measurer, clock, wall_clock, std::move(session_options));
  const int64_t start_ns = clock.NowNs();
  HONE_RETURN_IF_ERROR(session.Start({std::move(task)}));
  HONE_RETURN_IF_ERROR(session.Run([&](const search::TuningSession& s) {
    const search::TaskSearch& one = s.tuner().search(0);
    if (s.tuner().answered() >= trials || (one.exhausted() && s.tuner().open() == 0))
      searched = true;
  }));
  out.search_seconds = static_cast<double>(clock.NowNs() - start_ns) * 1e-9;
  out.reference_seconds = static_cast<double>(measurer.reference_ns()) * 1e-9;
  const search::TaskSearch& one = session.tuner().search(0);
  out.trials = one.trials();
  out.default_ns = one.default_ns();
  HONE_RETURN_IF_ERROR(log.ScanRecords({}, [&](const db::RankedRecord& r) {
    const std::optional<uint64_t> id = one.space().Locate(r.record.trace);
    const schedule::Space& space = one.space();
    out.best_first.push_back(
        {r.record.trace, id ? space.sketches()[static_cast<size_t>(space.At(*id).sketch)].name : "",
         r.record.median_ns});
    return absl::OkStatus();
  }));
  std::ranges::stable_sort(out.best_first, {}, &MeasuredTrace::median_ns);
  return out;
}

}  // namespace hone::bench
