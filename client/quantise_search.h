#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/calibration_set.h"
#include "client/quantise_probe.h"
#include "client/quantise_score.h"
#include "client/quantise_timing.h"
#include "graph/onnx_quantise/assignment.h"
#include "graph/onnx_quantise/data_statistics.h"

namespace hone::client {

/// What is asked of a quantised model.
struct QuantiseRequest {
  graph::onnx_quantise::Scheme scheme = graph::onnx_quantise::Scheme::kInt8;
  graph::onnx_quantise::RangeMethod method = graph::onnx_quantise::RangeMethod::kMinMax;
  double percentile = 99.99;
  int64_t group_size = 32;
  std::vector<std::string> keep;      ///< names of layers
  std::optional<double> target_sqnr;  ///< dB
  std::optional<double> max_drop;     ///< of top-1, in points of a hundred
};

/// What was found out about a layer.
struct LayerFinding {
  double low = 0, high = 0;  ///< of the data that it reads, smoothed
  QuantiseScore alone;       ///< of the model with this layer narrowed and no other
  double share = 0;          ///< of the noise of all layers that can be narrowed
};

/// An assignment of the search, in the order in which layers are kept.
struct FrontPoint {
  size_t kept = 0;  ///< so many of QuantiseSearch::order() are kept beside those that must be
  QuantiseScore score;
};

/// Decides what becomes of each layer. Steps are to be called in their order. Not thread-safe.
class QuantiseSearch {
 public:
  /// What it refers to must outlive it.
  QuantiseSearch(const graph::onnx_quantise::SourceModel& source, QuantiseProbe& probe,
                 const CalibrationSet& data, QuantiseRequest request,
                 std::function<void(const std::string&)> tell);

  /// Looks at the data and narrows every layer that can be. InvalidArgument: a layer of `keep` that
  /// the model does not have, data that are not finite inside the model, no layer left.
  absl::Status Calibrate();
  /// Labels of `labelled`, which must outlive it.
  absl::Status SetLabels(std::vector<int64_t> labels, const CalibrationSet& labelled);
  /// The score of the model with each layer alone, and so the order in which layers are to be kept.
  absl::Status MeasureLayers();
  /// Keeps as few layers as meet the request's target. InvalidArgument where none could be
  /// narrowed.
  absl::Status MeetTarget();
  /// The score of the assignment as it is.
  absl::StatusOr<QuantiseScore> Score();
  /// The assignment with so many layers kept.
  graph::onnx_quantise::Assignment WithKept(size_t kept) const;

  /// How many layers of order() the assignment keeps.
  size_t NumKept() const;
  /// What another model is scored by; refers to this search.
  ScoreTerms terms() const;

  const graph::onnx_quantise::Assignment& assignment() const { return assignment_; }
  const std::vector<LayerFinding>& findings() const { return findings_; }
  /// Layers that can be narrowed, most noise first.
  const std::vector<size_t>& order() const { return order_; }
  const std::vector<FrontPoint>& front() const { return front_; }
  /// Scores so many layers kept, for the front; the assignment stays.
  absl::Status AddFrontPoint(size_t kept);
  std::optional<double> top1_in_f32() const { return top1_in_f32_; }
  bool corrects_bias() const { return corrects_bias_; }
  bool equalises() const { return equalises_; }

 private:
  absl::Status CheckKeep();
  absl::Status Observe();
  absl::Status ChooseGrids();
  absl::Status Equalise();
  absl::Status CorrectBias();
  void NarrowAll(graph::onnx_quantise::Assignment& assignment) const;
  bool AnyNarrowed(size_t group) const;
  void Apply(const graph::onnx_quantise::Assignment& assignment);
  absl::StatusOr<QuantiseScore> ScoreOf(const graph::onnx_quantise::Assignment& assignment,
                                        bool with_labels);
  bool Meets(const QuantiseScore& score) const;

  const graph::onnx_quantise::SourceModel& source_;
  QuantiseProbe& probe_;
  const CalibrationSet& data_;
  const QuantiseRequest request_;
  const std::function<void(const std::string&)> tell_;
  graph::onnx_quantise::Assignment assignment_;
  std::vector<graph::onnx_quantise::DataStatistics> statistics_;
  std::optional<QuantiseReference> reference_;
  std::optional<Top1Labels> labels_;
  const CalibrationSet* labelled_ = nullptr;
  std::optional<double> top1_in_f32_;
  std::vector<LayerFinding> findings_;
  std::vector<size_t> order_;
  std::vector<FrontPoint> front_;
  bool corrects_bias_ = false, equalises_ = false;
};

}  // namespace hone::client
