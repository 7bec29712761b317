#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "client/command.h"
#include "client/judged_kernels.h"
#include "client/model_comparison.h"
#include "client/tune_progress.h"
#include "client/tuned_way.h"
#include "graph/graph.h"
#include "ir/accuracy_class.h"
#include "measure/others_watch.h"
#include "search/tuning_session.h"

namespace hone::client {

/// Measures the whole model around a tuning: the default before it, default and tuned in turns
/// after it, puts back kernels whose change loses there, and all of them where the tuned model is
/// not faster. A failure here does not fail the tuning: it becomes JudgedModel::skipped. One
/// thread.
class ModelJudge {
 public:
  struct Options {
    std::string target;  ///< resolved
    TunedWay way;
    std::string device_class;
    std::string log_path;
    ir::AccuracyClass accuracy = ir::AccuracyClass::kDefault;
    double seconds = 2;  ///< of one comparison
    const std::atomic<bool>* interrupted = nullptr;
  };
  /// `context` must outlive it.
  ModelJudge(const CommandContext& context, Options options)
      : context_(context), options_(std::move(options)) {}

  /// Compiles the model with default schedules and measures it.
  void MeasureDefault();
  /// Seconds that Judge will take, from what MeasureDefault took.
  double ExpectedSeconds() const { return expected_seconds_; }
  /// Compiles the model with the session's winners, all else as `hone compile --db` would,
  /// compares, and adds what follows to the session. Then the same for chains of its layers: each
  /// a kernel and in bands, for either way to run its batch; for its batch, with chains as they are
  /// faster: its images together and one after the other; and for its branches: in turn and side by
  /// side. Errors are those of the log.
  absl::Status Judge(search::TuningSession& session);

  /// Whether the model by default has branches that may pay side by side.
  bool HasBranches() const { return by_default_ != nullptr && by_default_->possible_forks() > 0; }

  const JudgedModel& judged() const { return judged_; }

 private:
  /// How a model is made that is timed.
  struct Way {
    compiler::BatchRun batch;
    compiler::BranchRun branches = compiler::BranchRun::kAuto;
    TimedModel::Times times = TimedModel::Times::kSteps;
    compiler::CascadeRun cascades = compiler::CascadeRun::kAuto;  ///< kAuto: as Options says
  };
  absl::StatusOr<std::unique_ptr<TimedModel>> Make(compiler::TraceSource& traces, const Way& way);
  absl::Status JudgeModel(search::TuningSession& session);
  absl::Status JudgeBatch(search::TuningSession& session);
  absl::Status JudgeBranches(search::TuningSession& session);
  /// With the batch run so; `verdict` is what was found.
  absl::Status JudgeCascades(search::TuningSession& session, compiler::BatchRun batch,
                             const TunedWay::Chains& chains,
                             std::optional<db::ModelVerdict>& verdict);
  /// How chains run with the batch run so, by what was found.
  compiler::CascadeRun CascadesOf(compiler::BatchRun batch) const;
  /// Two ways as `hone compile` makes them of the log: default_ns is the first's, tuned_ns the
  /// second's.
  absl::StatusOr<db::ModelVerdict> CompareWays(const Way& first, const Way& second);
  /// Runs them in turns and notes whether other programs disturbed that.
  absl::Status Turns(const std::vector<TimedModel*>& models);
  absl::Status Compare(const search::TuningSession& session, JudgedKernels& judged);
  /// The model without the suspects runs beside the other two, and takes the place of `tuned`
  /// unless it is slower.
  absl::Status CompareWithout(JudgedKernels& judged, compiler::TraceSource& traces,
                              std::unique_ptr<TimedModel>& tuned);
  /// Up to four times the rounds, as long as the ratio's interval holds 1 and there is time beside
  /// what the other ways to run the model take.
  absl::Status Decide(const search::TuningSession& session, TimedModel& tuned);
  void SetRatio(const TimedModel& tuned);
  /// Watches from now on how much other programs use the device that the models run on; null where
  /// that cannot be noticed.
  std::unique_ptr<measure::OthersWatch> WatchOthers() const;

  const CommandContext& context_;
  const Options options_;
  std::unique_ptr<TimedModel> by_default_;
  double expected_seconds_ = 0;
  double seconds_for_ways_ = 0;  ///< of them, for other ways to run the model
  JudgedModel judged_;
  std::optional<db::ModelVerdict> other_cascades_;  ///< where the batch runs the other way
};

}  // namespace hone::client
