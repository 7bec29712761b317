#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/layer_search.h"

namespace hone::client {

/// What is asked of a quantised model.
struct QuantiseRequest {
  graph::onnx_quantise::Scheme scheme = graph::onnx_quantise::Scheme::kInt8;
  graph::onnx_quantise::RangeMethod method = graph::onnx_quantise::RangeMethod::kMinMax;
  double percentile = 99.99;
  int64_t group_size = 32;
  KeepRequest keep;
};

/// How far the data that a layer reads reach, smoothed.
struct DataRange {
  double low = 0, high = 0;
};

/// Decides what becomes of each layer of a quantised model. Not thread-safe.
class QuantiseSearch : public LayerSearch {
 public:
  /// What it refers to must outlive it.
  QuantiseSearch(const graph::onnx_quantise::SourceModel& source, LayerProbe& probe,
                 const CalibrationSet& data, QuantiseRequest request,
                 std::function<void(const std::string&)> tell);

  /// Looks at the data and narrows every layer that can be: the first step. InvalidArgument: a
  /// layer of `keep` that the model does not have, data that are not finite inside the model, no
  /// layer left.
  absl::Status Calibrate();

  const std::vector<DataRange>& ranges() const { return ranges_; }
  bool equalises() const { return equalises_; }

 private:
  absl::Status ChooseGrids();
  absl::Status Equalise();
  void NarrowAll(graph::onnx_quantise::Assignment& assignment) const;
  bool AnyNarrowed(size_t group) const;

  const QuantiseRequest request_;
  std::vector<DataRange> ranges_;
  bool equalises_ = false;
};

}  // namespace hone::client
