#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "costmodel/features.h"

namespace hone::costmodel {

/// Measured candidates of one task. `label` is throughput relative to the task's best, in (0, 1]; a
/// candidate that failed by its own fault has 0.
struct TrainingTask {
  std::vector<FeatureVector> features;
  std::vector<float> labels;
};

/// A score (higher is better, comparable within one task only) and the spread of the bag.
struct Prediction {
  float mean = 0;
  float spread = 0;
};

/// A bag of boosted trees trained to rank within tasks: LambdaNDCG gradients on float labels
/// (Burges 2010, "From RankNet to LambdaRank to LambdaMART", §7, with gains 2^y-1 replaced by y),
/// given to XGBoost as a custom objective. Deterministic: fixed seeds, one thread. Predict is
/// thread-safe.
class XgboostModel {
 public:
  static constexpr int kBags = 4;
  static constexpr int kRounds = 50;
  static constexpr int kDepth = 6;

  /// Needs at least two rows in some task; InvalidArgument otherwise.
  static absl::StatusOr<std::unique_ptr<XgboostModel>> Train(const std::vector<TrainingTask>& tasks,
                                                             uint64_t seed);
  /// Reads what Save wrote; InvalidArgument on another feature schema or damaged bytes.
  static absl::StatusOr<std::unique_ptr<XgboostModel>> Load(const std::string& bytes);
  absl::StatusOr<std::string> Save() const;

  /// By our own walk of the trees (FlatTrees): many rows of one Space are several times faster than
  /// by the library, and a row scores the same alone and among others.
  absl::StatusOr<std::vector<Prediction>> Predict(std::span<const FeatureVector> rows) const;
  /// The same by XGBoost itself: what Predict is tested against.
  absl::StatusOr<std::vector<Prediction>> PredictByLibrary(
      std::span<const FeatureVector> rows) const;

  /// What each feature adds to the score of a row, mean of the bag (SHAP values of the trees:
  /// Lundberg et al., "From local explanations to global understanding with explainable AI for
  /// trees", 2020). Together with `base`, the mean score over the training rows, they add up to
  /// Predict's mean.
  struct Explanation {
    FeatureVector contribution{};
    float base = 0;
  };
  absl::StatusOr<std::vector<Explanation>> Explain(std::span<const FeatureVector> rows) const;
  ~XgboostModel();

 private:
  struct Impl;
  explicit XgboostModel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hone::costmodel
