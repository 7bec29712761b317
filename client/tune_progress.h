#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/command.h"
#include "client/live_lines.h"
#include "client/tune_budget.h"
#include "measure/local_measurer.h"
#include "search/tuning_session.h"

namespace hone::client {

/// The end-to-end comparison as it is reported.
struct JudgedModel {
  db::ModelVerdict verdict;  ///< rounds 0: none was made; default_ns is known before the search
  double noisy_cpus = 0;     ///< CPUs that other programs used meanwhile: then nothing was decided
  std::string skipped;       ///< why no comparison was made; empty: it was
  std::optional<db::ModelVerdict> batch;     ///< how its batch runs, where that was compared
  std::string batch_skipped;                 ///< why it was not, where it was to be
  std::optional<db::ModelVerdict> branches;  ///< how its branches run, likewise
  std::string branches_skipped;
  std::optional<db::ModelVerdict> cascades;  ///< whether chains of layers run in bands, likewise
  std::string cascades_skipped;
};

/// What the outputs of a tuning are made from.
struct TuneView {
  const search::TuningSession& session;
  const measure::LocalMeasurer* measurer;  ///< null: nothing is measured, times are predictions
  const TuneBudget& budget;
  const std::vector<double>& roofline_ns;  ///< by task; 0: unknown
  const JudgedModel& model;
  const std::string& log;   ///< path
  const std::string& next;  ///< the command that uses the result
  const WallClock& wall_clock;
};

/// The default model's measured time less what its kernels gained: 0 while it is unknown.
double PredictedNs(const TuneView& view);

/// The live table on a terminal; elsewhere a plain line now and then, or with --json every second
/// its ProgressJson. When nobody reads these any more, as after kill -9 of the program that did,
/// the tuning ends as by SIGTERM. One thread.
class TuneProgress {
 public:
  explicit TuneProgress(CommandContext& context) : context_(context) {}
  void Show(const TuneView& view);
  /// Takes the live table away where the result has one too. A program that reads JSON gets the
  /// last state, whenever its last line was.
  void End(const TuneView& view);

 private:
  CommandContext& context_;
  double last_ = -1e9;
  LiveLines table_;
  bool unread_ = false;  ///< our program was told to end, because nobody reads
};

/// The result for people, in lines of so many cells, and as one JSON object.
std::string TuneText(const TuneView& view, size_t cells);
std::string TuneJson(const TuneView& view);

}  // namespace hone::client
