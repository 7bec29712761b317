#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "client/model_session.h"
#include "compiler/compile_model.h"
#include "compiler/model_steps.h"
#include "graph/graph.h"
#include "runtime/executable.h"
#include "search/paired_ratio.h"

// The last word on a tuning: whole models, default and tuned, end to end. A kernel that is faster
// alone may be slower in the model, where caches hold something else.
namespace hone::client {

/// A model compiled with the schedules of one source, in memory, ready to run. Not thread-safe.
class TimedModel {
 public:
  /// What of it is timed.
  enum class Times : uint8_t {
    kSteps,  ///< each of its steps too, which then run in turn
    kWhole,
  };
  /// Compiles and loads; `clock` must outlive the object. Errors of compiling, of loading and of
  /// memory.
  static absl::StatusOr<std::unique_ptr<TimedModel>> Create(
      graph::Graph graph, const compiler::CompileOptions& options, compiler::TraceSource& traces,
      measure::BuilderClient& builder, const NamedTensors& inputs, const MonotonicClock& clock,
      Times times = Times::kSteps);

  /// Runs `runs` times; the mean time of a run is added to samples_ns(), that of its kernels to
  /// kernel_ns(). The first of several is not counted: another model has just had the caches.
  absl::Status Sample(int runs);
  void ForgetSamples();
  /// Finds how many runs a turn takes, and forgets all samples.
  absl::Status BeginTurns();
  /// A sample of so many runs.
  absl::Status TakeTurn() { return Sample(runs_); }

  const std::vector<int64_t>& samples_ns() const { return samples_ns_; }
  /// By workload hash: all steps of a run together, one entry a run.
  const std::map<std::string, std::vector<int64_t>>& kernel_ns() const { return kernel_ns_; }
  /// Traces by workload hash.
  const std::map<std::string, std::string>& traces() const { return traces_; }
  double MedianNs() const;
  /// CompileReport::possible_forks.
  int possible_forks() const { return possible_forks_; }

 private:
  explicit TimedModel(ModelSession session, const MonotonicClock& clock)
      : session_(std::move(session)), clock_(clock) {}

  ModelSession session_;
  const MonotonicClock& clock_;
  int runs_ = 1;  ///< of a turn
  int possible_forks_ = 0;
  std::map<std::string, std::string> traces_;
  std::vector<int64_t> samples_ns_;
  std::map<std::string, std::vector<int64_t>> kernel_ns_;
};

/// Schedules of another source, but the default for some Workloads.
class WithDefaults final : public compiler::TraceSource {
 public:
  /// `source` must outlive it.
  WithDefaults(compiler::TraceSource& source, std::set<std::string> hashes)
      : source_(source), hashes_(std::move(hashes)) {}
  absl::StatusOr<compiler::FoundTrace> Find(const ir::Workload& workload, const std::string& hash,
                                            const ir::Target& target) override;
  void BeginModel(const std::vector<compiler::ModelKernel>& kernels) override {
    source_.BeginModel(kernels);
  }
  void EndLookUps() override { source_.EndLookUps(); }

 private:
  compiler::TraceSource& source_;
  const std::set<std::string> hashes_;
};

using search::PairedRatio;
using search::RatioOf;
using search::Undecided;

/// Runs the models in turns (A B, B A, A B, …) for about `seconds`, at least five rounds. A turn is
/// as many runs as reach a millisecond. Earlier samples are forgotten. kCancelled when
/// `interrupted` becomes true.
absl::Status RunInTurns(const std::vector<TimedModel*>& models, double seconds,
                        const std::atomic<bool>* interrupted, const MonotonicClock& clock);

/// `rounds` more of models that ran in turns, no longer than `seconds`; their samples are added.
absl::Status GoOnInTurns(const std::vector<TimedModel*>& models, int rounds, double seconds,
                         const std::atomic<bool>* interrupted, const MonotonicClock& clock);

/// Workloads whose Traces differ between the models.
std::set<std::string> ChangedKernels(const TimedModel& by_default, const TimedModel& tuned);

/// Those of them that take longer in the tuned model than in the default one: 99 of 100 times the
/// median ratio is below 0.99 (order statistics; many kernels are judged at once).
std::set<std::string> LosingKernels(const TimedModel& by_default, const TimedModel& tuned);

}  // namespace hone::client
