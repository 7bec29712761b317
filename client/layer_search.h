#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "client/calibration_set.h"
#include "client/layer_probe.h"
#include "client/model_score.h"
#include "client/written_model.h"
#include "graph/onnx_quantise/assignment.h"
#include "graph/onnx_quantise/data_statistics.h"

namespace hone::client {

/// Which layers a user wants to stay as they are.
struct KeepRequest {
  std::vector<std::string> keep;      ///< names of layers
  std::optional<double> target_sqnr;  ///< dB
  std::optional<double> max_drop;     ///< of top-1, in points of a hundred
};

/// How a search speaks of what it does to layers. The texts live as long as the program.
struct ChangeWords {
  std::string_view changed;  ///< "narrowed"
  std::string_view advice;   ///< what else may be asked for: "choose another --scheme"
};

/// What a changed layer does to the model.
struct LayerScore {
  ModelScore alone;  ///< of the model with this layer changed and no other
  double share = 0;  ///< of the noise of all layers that can be changed
};

/// An assignment of the search, in the order in which layers are kept.
struct FrontPoint {
  size_t kept = 0;  ///< so many of LayerSearch::order() are kept beside those that must be
  ModelScore score;
};

/// Finds out which layers of a model are to be changed and which cost too much. A kind of change
/// derives from it and fills the assignment; then steps are to be called in their order. Not
/// thread-safe.
class LayerSearch {
 public:
  /// Labels of `labelled`, which must outlive it.
  absl::Status SetLabels(std::vector<int64_t> labels, const CalibrationSet& labelled);
  /// The score of the model with each layer alone, and so the order in which layers are to be kept.
  absl::Status MeasureLayers();
  /// Keeps as few layers as meet the request's target. InvalidArgument where none could be
  /// changed.
  absl::Status MeetTarget();
  /// The score of the assignment as it is.
  absl::StatusOr<ModelScore> Score();
  /// The assignment with so many layers kept.
  graph::onnx_quantise::Assignment WithKept(size_t kept) const;

  /// How many layers of order() the assignment keeps.
  size_t NumKept() const;
  /// What another model is scored by; refers to this search.
  ScoreTerms terms() const;

  const graph::onnx_quantise::Assignment& assignment() const { return assignment_; }
  const std::vector<LayerScore>& scores() const { return scores_; }
  /// Layers that can be changed, most noise first.
  const std::vector<size_t>& order() const { return order_; }
  const std::vector<FrontPoint>& front() const { return front_; }
  /// Scores so many layers kept, for the front; the assignment stays.
  absl::Status AddFrontPoint(size_t kept);
  std::optional<double> top1_in_f32() const { return top1_in_f32_; }
  bool corrects_bias() const { return corrects_bias_; }

 protected:
  /// What it refers to must outlive it.
  LayerSearch(const graph::onnx_quantise::SourceModel& source, LayerProbe& probe,
              const CalibrationSet& data, KeepRequest request, ChangeWords words,
              std::function<void(const std::string&)> tell);
  ~LayerSearch() = default;

  /// Keeps what is asked for and what `why_not` gives a reason for; puts the others into order().
  /// InvalidArgument: a layer of `keep` that the model does not have; no layer left.
  absl::Status CheckKeep(
      const std::function<std::string(const graph::onnx_quantise::Layer&)>& why_not);
  /// Looks at the data. InvalidArgument: outputs or values inside the model that are not finite.
  absl::Status Observe();
  /// Adds what the changes take from each column's mean, where that makes the model better. Layers
  /// whose channels were seen less often than `least_count` stay without: a mean of few numbers
  /// would only fit the calibration data.
  absl::Status CorrectBias(int64_t least_count);
  absl::StatusOr<ModelScore> ScoreOf(const graph::onnx_quantise::Assignment& assignment,
                                     bool with_labels);
  /// The same on at most so many runs, spread over the data, without labels.
  absl::StatusOr<ModelScore> ScoreOn(size_t runs,
                                     const graph::onnx_quantise::Assignment& assignment);

  const graph::onnx_quantise::SourceModel& source_;
  LayerProbe& probe_;
  const CalibrationSet& data_;
  graph::onnx_quantise::Assignment assignment_;
  /// What the data were, group by group, after Observe.
  std::vector<graph::onnx_quantise::DataStatistics> statistics_;
  std::vector<size_t> order_;
  const std::function<void(const std::string&)> tell_;

 private:
  void Apply(const graph::onnx_quantise::Assignment& assignment);
  bool Meets(const ModelScore& score) const;

  const KeepRequest request_;
  const ChangeWords words_;
  std::optional<ScoreReference> reference_;
  std::optional<Top1Labels> labels_;
  const CalibrationSet* labelled_ = nullptr;
  std::optional<double> top1_in_f32_;
  std::vector<LayerScore> scores_;
  std::vector<FrontPoint> front_;
  bool corrects_bias_ = false;
};

}  // namespace hone::client
