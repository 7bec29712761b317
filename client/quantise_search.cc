#include "client/quantise_search.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/status.h"
#include "graph/onnx_quantise/smoothing.h"

namespace hone::client {

using graph::onnx_quantise::Assignment;
using graph::onnx_quantise::DataStatistics;
using graph::onnx_quantise::InputGroup;
using graph::onnx_quantise::Layer;
using graph::onnx_quantise::LayerChoice;
using graph::onnx_quantise::RangeHistogram;
using graph::onnx_quantise::RangeMethod;
using graph::onnx_quantise::Scheme;
using graph::onnx_quantise::SourceModel;

QuantiseSearch::QuantiseSearch(const SourceModel& source, LayerProbe& probe,
                               const CalibrationSet& data, QuantiseRequest request,
                               std::function<void(const std::string&)> tell)
    : LayerSearch(source, probe, data, request.keep,
                  {.changed = "narrowed", .advice = "choose another --scheme"}, std::move(tell)),
      request_(std::move(request)),
      ranges_(source.layers.size()) {
  assignment_.scheme = request_.scheme;
  assignment_.group_size = request_.group_size;
}

bool QuantiseSearch::AnyNarrowed(size_t group) const {
  return std::ranges::any_of(source_.groups[group].layers,
                             [&](size_t i) { return !assignment_.layers[i].kept(); });
}

absl::Status QuantiseSearch::ChooseGrids() {
  std::map<size_t, RangeHistogram> histograms;
  for (size_t g = 0; g < source_.groups.size(); ++g) {
    graph::onnx_quantise::GroupChoice& choice = assignment_.groups[g];
    const DataStatistics& seen = statistics_[g];
    if (AnyNarrowed(g))
      choice.smooth = ChooseSmoothing(source_, source_.groups[g], seen, request_.scheme);
    const double low = seen.Low(choice.smooth), high = seen.High(choice.smooth);
    choice.grid = graph::onnx_quantise::GridFor(low, high);
    for (const size_t i : source_.groups[g].layers) {
      ranges_[i].low = low;
      ranges_[i].high = high;
    }
    probe_.SetGroup(g, choice);
    if (low < high) histograms.emplace(g, RangeHistogram(low, high));
  }
  if (request_.scheme != Scheme::kInt8 || request_.method == RangeMethod::kMinMax)
    return absl::OkStatus();
  for (const NamedTensors& inputs : data_.runs) {
    HONE_RETURN_IF_ERROR(probe_.Run(inputs));
    for (auto& [g, histogram] : histograms)
      for (const float value : probe_.Data(g)) histogram.Add(value);
  }
  for (const auto& [g, histogram] : histograms)
    assignment_.groups[g].grid = histogram.Grid(request_.method, request_.percentile);
  return absl::OkStatus();
}

absl::Status QuantiseSearch::Calibrate() {
  HONE_RETURN_IF_ERROR(CheckKeep([this](const Layer& layer) {
    return WhyNotNarrow(layer, request_.scheme, request_.group_size);
  }));
  HONE_RETURN_IF_ERROR(Observe());
  HONE_RETURN_IF_ERROR(ChooseGrids());
  NarrowAll(assignment_);
  HONE_RETURN_IF_ERROR(Equalise());
  return CorrectBias(1);
}

void QuantiseSearch::NarrowAll(Assignment& assignment) const {
  for (size_t i = 0; i < source_.layers.size(); ++i) {
    const Layer& layer = source_.layers[i];
    LayerChoice& choice = assignment.layers[i];
    if (choice.kept()) continue;
    choice.narrow = graph::onnx_quantise::Narrow(
        layer, request_.scheme, assignment.groups[layer.group].smooth, request_.group_size);
  }
}

// Channels whose producer divides them exactly cost nothing, so they are evened out wherever that
// makes the model better.
absl::Status QuantiseSearch::Equalise() {
  if (request_.scheme != Scheme::kInt8 || data_.drawn) return absl::OkStatus();
  Assignment even = assignment_;
  bool any = false;
  for (size_t g = 0; g < source_.groups.size(); ++g) {
    const InputGroup& group = source_.groups[g];
    const bool kept =
        std::ranges::any_of(group.layers, [&](size_t i) { return assignment_.layers[i].kept(); });
    if (kept || group.producer < 0 || !even.groups[g].smooth.empty() ||
        assignment_.layers[static_cast<size_t>(group.producer)].kept())
      continue;
    std::vector<float> factors = EqualisingFactors(source_, group, statistics_[g]);
    if (factors.empty()) continue;
    const double low = statistics_[g].Low(factors), high = statistics_[g].High(factors);
    even.groups[g] = {graph::onnx_quantise::GridFor(low, high), std::move(factors)};
    any = true;
  }
  if (!any) return absl::OkStatus();
  NarrowAll(even);
  HONE_ASSIGN_OR_RETURN(const ModelScore before, ScoreOf(assignment_, false));
  HONE_ASSIGN_OR_RETURN(const ModelScore after, ScoreOf(even, false));
  equalises_ = after.noise < before.noise;
  if (!equalises_) return absl::OkStatus();
  assignment_ = std::move(even);
  for (size_t i = 0; i < source_.layers.size(); ++i) {
    const size_t g = source_.layers[i].group;
    ranges_[i].low = statistics_[g].Low(assignment_.groups[g].smooth);
    ranges_[i].high = statistics_[g].High(assignment_.groups[g].smooth);
  }
  return absl::OkStatus();
}

}  // namespace hone::client
