#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "measure/builder_client.h"
#include "measure/candidate_builder.h"
#include "measure/kill_switch.h"
#include "measure/measurer.h"
#include "worker/lease_desk.h"
#include "worker/workload_memo.h"

namespace hone::worker {

/// Where build leases are built, for machines that need not be this one. Nothing runs here.
/// Thread-safe.
class BuildBench {
 public:
  struct Events {
    /// A job whose artifacts another worker is to run; in the order of DeskJob::wanted.
    std::function<void(int64_t number, std::vector<HeldArtifact> artifacts, int64_t build_ns)>
        built;
    /// One that ends here: its candidate could not be built.
    std::function<void(int64_t number, proto::WorkResult result)> finished;
    std::function<void(int64_t ns)> busy;  ///< share of the builders that was used, as time
  };
  /// Tests: what a candidate's builder shall do wrong, see BuildJob; needs `test_hooks`.
  using Hook = std::function<std::string(const measure::MeasureInput&)>;
  BuildBench(measure::BuilderOptions options, Hook hook, const MonotonicClock& clock,
             Events events);
  /// Waits for what is being built; drops the rest.
  ~BuildBench();

  void Add(DeskJob job);
  /// Nobody waits for it any more; what is being built for it just then is killed, and its end is
  /// waited for before its builder's place is given to other work.
  void Cancel(int64_t number);

 private:
  struct Work {
    DeskJob job;
    std::shared_ptr<const ir::Workload> workload;
    std::vector<HeldArtifact> made;
    size_t left = 0;
    int64_t build_ns = 0;
    bool cancelled = false;
    measure::KillSwitch stop;  ///< of what is being built for it
  };

  void Loop();
  HeldArtifact Build(Work& work, size_t wanted, int64_t* took_ns);
  void Finish(const Work& work);

  const int processes_;
  const Hook hook_;
  const Events events_;
  measure::BuilderClient client_;
  measure::CandidateBuilder builder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  WorkloadMemo workloads_;                                        // guarded by mutex_
  std::deque<std::pair<std::shared_ptr<Work>, size_t>> waiting_;  // guarded by mutex_
  std::map<int64_t, std::shared_ptr<Work>> works_;                // guarded by mutex_
  bool stopping_ = false;                                         // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace hone::worker
