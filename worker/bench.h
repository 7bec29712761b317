#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/core/clock.h"
#include "ir/target.h"
#include "measure/device_lock.h"
#include "measure/device_probe.h"
#include "measure/local_measurer.h"
#include "measure/runner_client.h"
#include "worker/lease_desk.h"
#include "worker/workload_memo.h"

namespace hone::worker {

/// Where jobs are measured: LocalMeasurer, the same that measures for one machine, under the
/// device's lock. Thread-safe.
class Bench {
 public:
  struct Events {
    /// Before the first run of a job, with the lock held; the job runs when it returns.
    std::function<void(const std::vector<int64_t>& numbers)> started;
    std::function<void(int64_t number, proto::WorkResult result)> finished;
    std::function<void(int64_t ns)> busy;  ///< after a run: for how long
  };
  /// `role` kRun: candidates come with their leases as artifacts and nothing is built here; each
  /// runs in a process of its own, because another machine made it.
  Bench(measure::LocalMeasurerOptions options, proto::WorkerRole role, measure::DeviceLock lock,
        const MonotonicClock& clock, Events events);
  /// Waits for what is being built or run; drops the rest.
  ~Bench();

  void Add(DeskJob job);
  /// Ends a job that nobody waits for any more; what runs for it is killed.
  void Cancel(int64_t number);
  int64_t sentinel_ns() const { return measurer_->sentinel_ns(); }
  /// Probes the device between two runs, under its lock. Not by two threads at once.
  absl::StatusOr<measure::DeviceProbes> Probe(const ir::Target& target);

 private:
  struct Comparison {
    int64_t number = 0;
    std::vector<measure::MeasureInput> inputs;
    int rounds = 0;
    std::optional<measure::ModelJob> models;  ///< whole ones, in place of the above
  };

  void Collect();
  void CompareAll();
  proto::WorkResult CompareModels(int64_t number, const measure::ModelJob& models);
  measure::BuiltCandidate FromArtifact(const measure::MeasureInput& input);
  void Finish(int64_t number, proto::WorkResult result);

  const MonotonicClock& clock_;
  const Events events_;
  measure::RunnerClient models_;  // the comparer's alone, but for Interrupt
  const std::string device_;      // its name
  measure::DeviceLock lock_;      // the run thread's alone
  int64_t began_ns_ = 0;          // the same
  WorkloadMemo workloads_;        // Add's caller's alone
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Comparison> comparisons_;  // guarded by mutex_, as all below
  std::map<int64_t, DeskJob> jobs_;     // of a run worker: those whose artifacts are needed
  int64_t submitted_ = 0;
  int64_t model_number_ = 0;  ///< of the job whose models run; 0: none
  bool stopping_ = false;
  std::unique_ptr<measure::LocalMeasurer> measurer_;
  std::thread collector_, comparer_;
};

}  // namespace hone::worker
