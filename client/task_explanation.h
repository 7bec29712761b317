#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "costmodel/xgboost_model.h"
#include "db/log_file.h"
#include "ir/target.h"
#include "ir/workload.h"

// What a log and the cost models know of one task: for `hone explain`.
namespace hone::client {

/// A feature of a candidate and what it adds to its score, beside the default schedule's.
struct FeatureShare {
  std::string name;
  double value = 0, default_value = 0;  ///< in the feature's own unit
  double contribution = 0;              ///< to the score, less the default's contribution
};

/// The analytic model's terms, us: the prediction is their largest plus packing and barriers.
struct AnalyticTerms {
  double compute_us = 0, feed_us = 0, memory_us = 0, transform_us = 0, total_us = 0;
};

/// What the models say of one point of the space.
struct PointView {
  std::string sketch;
  std::string decisions;  ///< "tile rows=6 vectors=2, order outside=1"
  AnalyticTerms analytic;
  int analytic_place = 0;         ///< 1: the analytic model ranks it first of the measured ones
  std::optional<double> score;    ///< of the trees; higher is better
  double spread = 0;              ///< of the bag
  int place = 0;                  ///< as analytic_place, by the trees
  std::vector<FeatureShare> why;  ///< largest contributions first; empty without trees
};

struct ExplainedTrace {
  db::RankedRecord record;
  std::string proposer;            ///< what proposed it first; empty: unknown (merged)
  double compared_default_ns = 0;  ///< of the default, in turns with this record; 0: not compared
  std::optional<PointView> point;  ///< nothing: not a point of today's space
  std::string written_from;        ///< what the log says of its Sketch and values; empty: nothing
};

struct SketchView {
  std::string name;
  uint64_t points = 0;
  std::vector<std::string> tables;  ///< "tile(rows, vectors): 56 rows"
};

struct TaskExplanation {
  std::string space_hash;
  uint64_t product = 0, admitted = 0;
  std::vector<SketchView> sketches;
  std::map<std::string, int64_t> outcomes;                       ///< of attempts
  std::map<std::string, std::pair<int64_t, int64_t>> proposers;  ///< candidates, wins
  std::optional<ExplainedTrace> default_trace;                   ///< where it was measured
  std::vector<ExplainedTrace> best;
  int located = 0;  ///< measured Traces that are points of the space: the places count these
  std::optional<double> rank_correlation;           ///< Spearman: trees and latency, of those
  std::optional<double> analytic_rank_correlation;  ///< and of the analytic model
};

/// The trees trained last by a session of a log.
struct LoggedModel {
  std::string bytes;  ///< the log's blob
  std::unique_ptr<const costmodel::XgboostModel> trees;
};

/// Those of any session; nothing where there are none of this Hone's feature schema. Errors of the
/// log.
absl::StatusOr<std::optional<LoggedModel>> LastModel(db::Database& log, const std::string& target);

/// Explains the task of `key`, whose Workload and Target are given; `model` may be null.
absl::StatusOr<TaskExplanation> ExplainTask(db::Database& log, const db::RecordKey& key,
                                            const ir::Workload& workload, const ir::Target& target,
                                            const LoggedModel* model,
                                            const std::string& builder_version, int top);

}  // namespace hone::client
