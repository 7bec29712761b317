#include "bench/task_tuning.h"

#include <algorithm>
#include <atomic>

#include "base/core/cpu.h"
#include "base/status.h"
#include "base/versions.h"
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

namespace {

std::vector<TunedTask::Finalist> FinalistsOf(const search::TaskSearch& search) {
  std::vector<TunedTask::Finalist> out;
  for (const uint64_t id : search.Finalists(search::TaskSearch::kMostFinalists)) {
    const auto trace = search.space().TraceOf(id);
    if (trace.ok()) out.push_back({schedule::ToText(*trace), search.TrialOf(id)});
  }
  return out;
}

}  // namespace

absl::StatusOr<TunedTask> TuneTask(std::shared_ptr<const ir::Workload> workload,
                                   const ir::Target& target,
                                   const measure::LocalMeasurerOptions& measuring,
                                   const TaskTuningOptions& options, db::Database& log,
                                   const MonotonicClock& clock) {
  const SystemWallClock wall_clock;
  std::atomic<bool> searched = false;
  search::SessionOptions session_options;
  session_options.request = "bench";
  session_options.seed = options.seed;
  session_options.trials = options.trials;
  session_options.train = options.trees;
  session_options.evolve = options.evolve;
  session_options.seconds = 0;
  session_options.target = target;
  HONE_ASSIGN_OR_RETURN(const measure::HostDevice host,
                        measure::DescribeDevice(measuring.runner.device));
  session_options.device = {host.device_class, host.fingerprint};
  session_options.builder_version = std::to_string(kBuilderVersion);
  session_options.interrupted = &searched;  // the search's end is the end
  search::TuningTask task = search::TaskOf(std::move(workload), target);
  task.name = "bench";

  TunedTask out;
  measure::LocalMeasurer measurer(measuring, clock);
  search::TuningSession session(log, measurer, clock, wall_clock, std::move(session_options));
  const int64_t start_ns = clock.NowNs();
  HONE_RETURN_IF_ERROR(session.Start({std::move(task)}));
  HONE_RETURN_IF_ERROR(session.Run([&](const search::TuningSession& s) {
    const search::TaskSearch& one = s.tuner().search(0);
    while (out.finalists_at.size() < options.checkpoints.size() &&
           one.trials() >= options.checkpoints[out.finalists_at.size()])
      out.finalists_at.push_back(FinalistsOf(one));
    if (s.tuner().answered() >= options.trials || (one.exhausted() && s.tuner().open() == 0))
      searched = true;
  }));
  out.search_seconds = static_cast<double>(clock.NowNs() - start_ns) * 1e-9;
  out.reference_seconds = static_cast<double>(measurer.reference_ns()) * 1e-9;
  const search::TaskSearch& one = session.tuner().search(0);
  out.finalists_at.resize(options.checkpoints.size(), FinalistsOf(one));  // where it ended early
  out.trials = one.trials();
  out.default_ns = one.default_ns();
  HONE_RETURN_IF_ERROR(log.ScanRecords({.session = session.id()}, [&](const db::RankedRecord& r) {
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
