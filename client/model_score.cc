#include "client/model_score.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"

namespace hone::client {
namespace {

constexpr double kMostDecibels = 180;

NamedTensors Copied(const NamedTensors& tensors) {
  NamedTensors copies;
  for (const auto& [name, tensor] : tensors) {
    copies.emplace_back(
        name, *graph::MakeConstant(tensor.type, {tensor.bytes.begin(), tensor.bytes.end()}));
  }
  return copies;
}

}  // namespace

double ModelScore::Decibels() const {
  if (!(noise > 0)) return kMostDecibels;
  return std::min(-10 * std::log10(noise), kMostDecibels);
}

void ScoreSum::Add(const NamedTensors& outputs, const NamedTensors& reference) {
  noise_.resize(reference.size());
  signal_.resize(reference.size());
  for (size_t k = 0; k < reference.size(); ++k) {
    const graph::TensorData& expected = reference[k].second;
    const std::vector<double> y = outputs[k].second.AsDoubles(), r = expected.AsDoubles();
    const bool floats = ir::IsFloat(expected.type.dtype);
    for (size_t i = 0; i < r.size(); ++i) {
      const double difference = y[i] - r[i];
      if (floats) {
        noise_[k] += std::isnan(difference) ? r[i] * r[i] : difference * difference;
        signal_[k] += r[i] * r[i];
      } else {
        noise_[k] += difference == 0 ? 0 : 1;
        signal_[k] += 1;
      }
    }
  }
}

ModelScore ScoreSum::Score() const {
  ModelScore score;
  size_t counted = 0;
  for (size_t k = 0; k < noise_.size(); ++k) {
    if (signal_[k] == 0) continue;
    score.noise += noise_[k] / signal_[k];
    ++counted;
  }
  if (counted > 0) score.noise /= static_cast<double>(counted);
  return score;
}

absl::StatusOr<ScoreReference> ScoreReference::Create(LayerProbe& probe,
                                                            const CalibrationSet& set) {
  ScoreReference reference;
  for (size_t run = 0; run < set.runs.size(); ++run) {
    HONE_RETURN_IF_ERROR(probe.Run(set.runs[run]));
    reference.outputs_.push_back(Copied(probe.Outputs()));
    for (const auto& [name, tensor] : reference.outputs_.back()) {
      if (!ir::IsFloat(tensor.type.dtype)) continue;
      const std::vector<double> values = tensor.AsDoubles();
      if (std::ranges::all_of(values, [](double v) { return std::isfinite(v); })) continue;
      return absl::InvalidArgumentError(
          fmt::format("output {} of the model in f32 is not finite on run {} of the calibration "
                      "data: nothing can be compared with that",
                      name, run));
    }
  }
  return reference;
}

absl::StatusOr<ModelScore> ScoreReference::Score(LayerProbe& probe,
                                                       const CalibrationSet& set,
                                                       size_t most) const {
  ScoreSum sum;
  const size_t runs = std::min(most, set.runs.size());
  for (size_t i = 0; i < runs; ++i) {
    const size_t run = i * set.runs.size() / runs;
    HONE_RETURN_IF_ERROR(probe.Run(set.runs[run]));
    sum.Add(probe.Outputs(), outputs_[run]);
  }
  return sum.Score();
}

absl::StatusOr<Top1Labels> Top1Labels::Create(std::vector<int64_t> labels,
                                              const NamedTensors& outputs, size_t runs) {
  Top1Labels top1;
  const graph::TensorType& type = outputs[0].second.type;
  top1.classes_ = type.shape.empty() ? 1 : type.shape.back();
  const int64_t rows =
      static_cast<int64_t>(runs) * type.NumElements() / std::max<int64_t>(top1.classes_, 1);
  if (static_cast<int64_t>(labels.size()) != rows) {
    return absl::InvalidArgumentError(
        fmt::format("--labels: {} labels for {} rows: {} runs of the first output {}: {}",
                    labels.size(), rows, runs, outputs[0].first, graph::ToText(type)));
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= 0 && labels[i] < top1.classes_) continue;
    return absl::InvalidArgumentError(
        fmt::format("--labels: label {} is {}; the first output {} has classes 0 to {}", i,
                    labels[i], outputs[0].first, top1.classes_ - 1));
  }
  top1.labels_ = std::move(labels);
  return top1;
}

int64_t Top1Labels::NumRight(const graph::TensorData& output, size_t run) const {
  const std::vector<double> values = output.AsDoubles();
  const auto classes = static_cast<std::ptrdiff_t>(classes_);
  const size_t rows = values.size() / static_cast<size_t>(classes_);
  int64_t right = 0;
  for (size_t row = 0; row < rows; ++row) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(row) * classes;
    const auto greatest = std::max_element(first, first + classes) - first;
    right += greatest == labels_[run * rows + row] ? 1 : 0;
  }
  return right;
}

absl::StatusOr<double> Top1Labels::Share(LayerProbe& probe, const CalibrationSet& set) const {
  int64_t right = 0;
  for (size_t run = 0; run < set.runs.size(); ++run) {
    HONE_RETURN_IF_ERROR(probe.Run(set.runs[run]));
    right += NumRight(probe.Outputs()[0].second, run);
  }
  return static_cast<double>(right) / static_cast<double>(num_rows());
}

}  // namespace hone::client
