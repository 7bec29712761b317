#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/core/clock.h"
#include "measure/builder_client.h"
#include "measure/candidate_builder.h"
#include "measure/candidate_runner.h"
#include "measure/kill_switch.h"
#include "measure/measurer.h"
#include "measure/others_watch.h"
#include "measure/runner_client.h"

namespace hone::measure {

struct LocalMeasurerOptions {
  BuilderOptions builder;  ///< `processes` build side by side; give it the cores
  RunnerOptions runner;
  OracleOptions oracle;
  TimingPolicy screen;  ///< the incumbent is filled in per candidate
  TimingPolicy final = {.hopeless_ratio = 0, .min_samples = 10, .max_total_ns = 1'500'000'000};
  /// Measured threads and builders together are more than the cores: nothing is built while
  /// something runs.
  bool alternate = true;
  int built_ahead = 16;  ///< candidates built before they are run; the capacity
  std::string device_class;
  /// While other programs keep the device busy nothing is timed, for at most so long altogether;
  /// then results are marked noisy. 0: never waits.
  int64_t max_pause_ns = 0;
  /// Who builds candidates, comparisons' traces and (with an empty trace) defaults; empty: the
  /// builder above. Called on its threads and on the run thread.
  std::function<BuiltCandidate(const MeasureInput&)> build;
  /// Called on the run thread around everything that is timed: before the first run of a candidate
  /// (or comparison) with the ids it has, and after the last. A farm's worker takes the device's
  /// lock and reports the candidate as started.
  std::function<void(const std::vector<int64_t>& ids)> before_run;
  std::function<void()> after_run;
  /// The device failed RunnerClient::kBadDevice times and gave no times between, with fresh
  /// processes, at no candidate's fault. Called once, on the run thread, with the reason.
  std::function<void(const std::string& why)> on_bad_device;
  /// Tests: what a candidate's builder or run shall do wrong, see BuildJob and PrepareJob. Needs
  /// test_hooks of builder or runner.
  std::function<std::string(const MeasureInput&)> build_hook, run_hook;
};

/// Measures on this machine with hone-builder and hone-runner. Thread-safe. A failure of a
/// candidate, its builder or its runner costs that candidate alone. The destructor waits for what
/// is being built or run just then, and drops the rest.
class LocalMeasurer final : public Measurer {
 public:
  /// `clock` must outlive it.
  LocalMeasurer(LocalMeasurerOptions options, const MonotonicClock& clock);
  ~LocalMeasurer() override;

  void Submit(MeasureInput input) override;
  std::vector<MeasureResult> Collect(int64_t timeout_ns) override;
  void DropWaiting() override;
  /// Nobody waits for this candidate (or comparison) any more: unless it runs a candidate is
  /// forgotten without a result, and a comparison comes back as kWorkerLost at once; what is being
  /// built or run for it is killed, and what ran comes back as kWorkerLost. How many candidates
  /// were forgotten.
  int64_t Cancel(int64_t id);
  /// Waits until nothing is being timed.
  void WhileNotTiming(const std::function<void()>& work) override;
  int64_t num_in_flight() const override;
  int capacity() const override { return options_.built_ahead; }

  /// At least 3 and at most 50 rounds.
  std::vector<ComparedTrace> Compare(const std::vector<MeasureInput>& inputs, int rounds) override;
  /// The same without waiting for it. From the return on Cancel knows it.
  std::future<std::vector<ComparedTrace>> StartComparing(std::vector<MeasureInput> inputs,
                                                         int rounds);

  /// Time spent so far on defaults and oracles, once per task; no result's time contains it.
  int64_t reference_ns() const;

  /// CandidateRunner's: how fast this machine is just now.
  int64_t sentinel_ns() const;

  /// Time spent waiting for other programs.
  int64_t paused_ns() const;

 private:
  struct Item {
    MeasureInput input;
    BuiltCandidate built;
  };
  struct Comparison {
    std::vector<MeasureInput> inputs;
    int rounds = 0;
    std::promise<std::vector<ComparedTrace>> result;
  };

  void BuildLoop();
  void RunLoop();
  bool MayBuild() const;
  bool MayRun() const;
  void RunBuilt(std::unique_lock<std::mutex>& lock);
  /// Delivers results, as noisy where other programs ran meanwhile.
  void Deliver(std::vector<MeasureResult>& held);
  /// Sets disturbed_ by what others did since the last look; false: it is too early to tell.
  bool LookAtOthers();
  /// Until other programs are quiet, or such waits took `most_ns` in all.
  void AwaitQuiet(std::unique_lock<std::mutex>& lock, int64_t most_ns);
  void RunComparison(std::unique_lock<std::mutex>& lock);
  /// Answers one that does not run, for every trace.
  static void GiveUp(Comparison& comparison, const std::string& why);
  /// These run from now on; with the lock.
  void SetRunning(std::vector<int64_t> ids);
  MeasureResult RunOne(const Item& item);
  /// Screens on a part of the work. True: that is the result.
  bool RunPartOf(const Item& item, const std::string& hook, MeasureResult* result);
  void LookAtDevice();
  std::vector<ComparedTrace> CompareNow(const Comparison& comparison,
                                        const std::vector<BuiltCandidate>& built);
  std::vector<BuiltCandidate> BuildAll(const std::vector<MeasureInput>& inputs);
  /// The runner's slot of each that it holds then.
  std::vector<int> PrepareAll(const std::vector<MeasureInput>& inputs,
                              const std::vector<BuiltCandidate>& built,
                              std::vector<ComparedTrace>* compared);
  /// What `work` takes, milliseconds, less the references that it makes.
  double RunMs(const std::function<void()>& work);
  BuiltCandidate Build(const MeasureInput& input, Keep keep, KillSwitch* stop);
  std::string HookOf(const std::function<std::string(const MeasureInput&)>& hook,
                     const MeasureInput& input) const;

  const LocalMeasurerOptions options_;
  const MonotonicClock& clock_;
  BuilderClient client_;
  CandidateBuilder builder_;
  CandidateRunner runner_;                    // the run thread's alone, as are
  const std::unique_ptr<OthersWatch> watch_;  // these; null where the kind has none
  bool disturbed_ = false;                    // other programs ran when last looked at
  bool bad_ = false;                          // on_bad_device was called

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> waiting_, built_;                     // all guarded by mutex_ from here on
  std::deque<std::unique_ptr<Comparison>> comparisons_;  // the front one may run
  std::vector<MeasureResult> results_;
  int building_ = 0;
  std::multimap<int64_t, KillSwitch*> builds_;  // by id: under way, and not cancelled
  bool running_ = false;
  std::vector<int64_t> running_ids_;  // being run just then
  KillSwitch running_builds_;         // what is built for these; needs no mutex_
  int others_ = 0;                    // callers in WhileNotTiming, waiting or working
  bool stopping_ = false;
  int64_t in_flight_ = 0;
  int64_t reference_ns_ = 0;
  int64_t paused_ns_ = 0;
  int64_t sentinel_ns_ = 0;

  std::vector<std::thread> threads_;
};

}  // namespace hone::measure
