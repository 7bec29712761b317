#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/command.h"
#include "client/npz.h"
#include "client/model_score.h"
#include "client/trace_choice.h"
#include "graph/graph.h"

// What a written model is worth: its error as compiled, its time as measured, its time by the log.
namespace hone::client {

/// An ONNX model in memory with the command's --dim, --shape and --bind; its external data lie in
/// `folder`.
absl::StatusOr<graph::Graph> ImportBytes(const Arguments& arguments, const std::string& bytes,
                                         const std::string& folder);

/// The score of a model, compiled for the command's --target, on all runs of the reference; top-1
/// where there are labels. Errors of importing, compiling and running.
struct ScoreTerms {
  const ScoreReference* reference = nullptr;
  const CalibrationSet* data = nullptr;
  const Top1Labels* labels = nullptr;  ///< null: none
  const CalibrationSet* labelled = nullptr;
};
absl::StatusOr<ModelScore> ScoreModel(CommandContext& context, graph::Graph graph,
                                         const ScoreTerms& terms);

/// A model's time in turns with others.
struct WholeTime {
  double median_ms = 0;
  double ratio = 1, ratio_low = 1, ratio_high = 1;  ///< the first's time by this one's
};
/// Runs the models in turns for about `seconds` each, with the chosen schedules.
absl::StatusOr<std::vector<WholeTime>> TimeInTurns(CommandContext& context,
                                                   const TraceChoice& choice,
                                                   std::vector<graph::Graph> graphs,
                                                   const NamedTensors& inputs, double seconds);

/// A model's kernels by the log.
struct LoggedTime {
  double ms = 0;        ///< of those that the log knows
  int64_t unknown = 0;  ///< runs of kernels that it does not know
};
absl::StatusOr<LoggedTime> TimeByLog(CommandContext& context, const TraceChoice& choice,
                                     graph::Graph graph);

}  // namespace hone::client
