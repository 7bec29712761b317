#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "costmodel/feature_rows.h"
#include "costmodel/features.h"
#include "costmodel/flat_trees.h"

namespace hone::costmodel {

/// Measured candidates of one task. `label` is throughput relative to the task's best, in (0, 1]; a
/// candidate that failed by its own fault has 0.
struct TrainingTask {
  FeatureRows features;
  std::vector<float> labels;
};

/// A score (higher is better, comparable within one task only) and the spread of the bag.
struct Prediction {
  float mean = 0;
  float spread = 0;
};

/// A bag of boosted trees trained to rank within tasks: LambdaNDCG gradients on float labels
/// (Burges 2010, "From RankNet to LambdaRank to LambdaMART", §7, with gains 2^y-1 replaced by y),
/// given to XGBoost as a custom objective. Deterministic: fixed seeds, one thread.
///
/// A model is kept as the bytes that Train returns (a blob of the log) and ranks as the flat trees
/// that Load reads from them. Nothing of XGBoost's outlives a call: a booster holds several times
/// what its trees take, and honed has a model for every task that it tunes. All functions are
/// thread-safe.
class XgboostModel {
 public:
  static constexpr int kBags = 4;
  static constexpr int kRounds = 50;
  static constexpr int kDepth = 6;

  /// The bytes of a new model. Needs at least two rows in some task; InvalidArgument otherwise.
  /// `target`: a text of the kind of device whose columns the rows have; empty: the CPU's.
  static absl::StatusOr<std::string> Train(const std::vector<TrainingTask>& tasks, uint64_t seed,
                                           std::string_view target = {});
  /// Reads what Train wrote; InvalidArgument on the features of another kind of device than the
  /// target's, another version of them, or damaged bytes.
  static absl::StatusOr<std::unique_ptr<XgboostModel>> Load(const std::string& bytes,
                                                            std::string_view target = {});

  /// By our own walk of the trees (FlatTrees): many rows of one Space are several times faster than
  /// by the library, and a row scores the same alone and among others.
  absl::StatusOr<std::vector<Prediction>> Predict(const FeatureRows& rows) const;
  /// The same by XGBoost itself: what Predict is tested against.
  static absl::StatusOr<std::vector<Prediction>> PredictByLibrary(const std::string& bytes,
                                                                  const FeatureRows& rows);

  /// What each feature adds to the score of a row, mean of the bag (SHAP values of the trees:
  /// Lundberg et al., "From local explanations to global understanding with explainable AI for
  /// trees", 2020). Together with `base`, the mean score over the training rows, they add up to
  /// Predict's mean.
  struct Explanation {
    FeatureVector contribution;
    float base = 0;
  };
  static absl::StatusOr<std::vector<Explanation>> Explain(const std::string& bytes,
                                                          const FeatureRows& rows);

 private:
  explicit XgboostModel(std::vector<FlatTrees> bags) : bags_(std::move(bags)) {}

  std::vector<FlatTrees> bags_;
};

}  // namespace hone::costmodel
