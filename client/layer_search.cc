#include "client/layer_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"

#include "base/status.h"
#include "graph/onnx_quantise/probe_model.h"

namespace hone::client {

using graph::onnx_quantise::Assignment;
using graph::onnx_quantise::InputGroup;
using graph::onnx_quantise::Layer;
using graph::onnx_quantise::LayerChoice;
using graph::onnx_quantise::SourceModel;

namespace {

/// Runs on which each layer is tried alone; a final score takes all.
constexpr size_t kRunsOfLayer = 4;
constexpr size_t kAllRuns = static_cast<size_t>(-1);

absl::Status Invalid(std::string message) { return absl::InvalidArgumentError(std::move(message)); }

}  // namespace

LayerSearch::LayerSearch(const SourceModel& source, LayerProbe& probe, const CalibrationSet& data,
                         KeepRequest request, ChangeWords words,
                         std::function<void(const std::string&)> tell)
    : source_(source),
      probe_(probe),
      data_(data),
      tell_(std::move(tell)),
      request_(std::move(request)),
      words_(words),
      scores_(source.layers.size()) {
  assignment_.layers.resize(source.layers.size());
  assignment_.groups.resize(source.groups.size());
}

absl::Status LayerSearch::CheckKeep(const std::function<std::string(const Layer&)>& why_not) {
  for (const std::string& name : request_.keep) {
    bool found = false;
    for (size_t i = 0; i < source_.layers.size(); ++i) {
      if (source_.layers[i].name != name) continue;
      assignment_.layers[i].why_kept = "asked for by --keep";
      found = true;
    }
    if (found) continue;
    std::vector<std::string> names;
    for (const Layer& layer : source_.layers) names.push_back(layer.name);
    constexpr size_t kMostNames = 12;
    const size_t more = names.size() - std::min(names.size(), kMostNames);
    names.resize(names.size() - more);
    return Invalid(fmt::format("--keep {}: the model has no layer of that name; it has {}{}", name,
                               fmt::join(names, ", "),
                               more > 0 ? fmt::format(" and {} more", more) : ""));
  }
  for (size_t i = 0; i < source_.layers.size(); ++i) {
    std::string& why = assignment_.layers[i].why_kept;
    if (why.empty()) why = why_not(source_.layers[i]);
    if (why.empty()) order_.push_back(i);
  }
  if (!order_.empty()) return absl::OkStatus();
  return Invalid(fmt::format("no layer can be {}: {}: {}", words_.changed, source_.layers[0].name,
                             assignment_.layers[0].why_kept));
}

absl::Status LayerSearch::Observe() {
  tell_(fmt::format("running {} layers on {} runs of {} data", source_.layers.size(),
                    data_.runs.size(), data_.drawn ? "drawn" : "calibration"));
  HONE_ASSIGN_OR_RETURN(reference_, ScoreReference::Create(probe_, data_));
  for (const InputGroup& group : source_.groups) statistics_.emplace_back(group);
  for (const NamedTensors& inputs : data_.runs) {
    HONE_RETURN_IF_ERROR(probe_.Run(inputs));
    for (size_t g = 0; g < source_.groups.size(); ++g)
      statistics_[g].Add(probe_.Data(g), probe_.InnerElements(g));
  }
  for (size_t g = 0; g < source_.groups.size(); ++g) {
    const double low = statistics_[g].Low({}), high = statistics_[g].High({});
    if (std::isfinite(low) && std::isfinite(high)) continue;
    return Invalid(
        fmt::format("the value {} reaches {} on the calibration data: its range is not "
                    "finite",
                    source_.groups[g].value, std::isfinite(low) ? high : low));
  }
  return absl::OkStatus();
}

absl::Status LayerSearch::CorrectBias(int64_t least_count) {
  if (data_.drawn) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const ModelScore before, ScoreOf(assignment_, false));
  Assignment corrected = assignment_;
  for (size_t i = 0; i < source_.layers.size(); ++i) {
    const Layer& layer = source_.layers[i];
    LayerChoice& choice = corrected.layers[i];
    if (choice.kept() || !graph::onnx_quantise::HasBias(layer) ||
        statistics_[layer.group].Count() < least_count)
      continue;
    const std::vector<double> shift =
        MeanShift(layer, choice.narrow, corrected.groups[layer.group].smooth,
                  statistics_[layer.group].Means());
    for (size_t n = 0; n < shift.size(); ++n) {
      choice.bias.push_back(
          static_cast<float>(layer.bias_data->DoubleAt(static_cast<int64_t>(n)) + shift[n]));
    }
  }
  HONE_ASSIGN_OR_RETURN(const ModelScore after, ScoreOf(corrected, false));
  corrects_bias_ = after.noise < before.noise;
  if (corrects_bias_) assignment_ = std::move(corrected);
  return absl::OkStatus();
}

absl::Status LayerSearch::SetLabels(std::vector<int64_t> labels, const CalibrationSet& labelled) {
  for (size_t i = 0; i < source_.layers.size(); ++i) probe_.Keep(i);
  labelled_ = &labelled;
  HONE_ASSIGN_OR_RETURN(
      labels_, Top1Labels::Create(std::move(labels), reference_->outputs(0), labelled.runs.size()));
  HONE_ASSIGN_OR_RETURN(top1_in_f32_, labels_->Share(probe_, labelled));
  return absl::OkStatus();
}

void LayerSearch::Apply(const Assignment& assignment) {
  for (size_t g = 0; g < source_.groups.size(); ++g) probe_.SetGroup(g, assignment.groups[g]);
  for (size_t i = 0; i < source_.layers.size(); ++i) {
    if (assignment.layers[i].kept())
      probe_.Keep(i);
    else
      probe_.Narrow(i, assignment.layers[i]);
  }
}

absl::StatusOr<ModelScore> LayerSearch::ScoreOn(size_t runs, const Assignment& assignment) {
  Apply(assignment);
  return reference_->Score(probe_, data_, runs);
}

absl::StatusOr<ModelScore> LayerSearch::ScoreOf(const Assignment& assignment, bool with_labels) {
  HONE_ASSIGN_OR_RETURN(ModelScore score, ScoreOn(kAllRuns, assignment));
  if (with_labels && labels_) {
    HONE_ASSIGN_OR_RETURN(score.top1, labels_->Share(probe_, *labelled_));
  }
  return score;
}

absl::StatusOr<ModelScore> LayerSearch::Score() { return ScoreOf(assignment_, true); }

absl::Status LayerSearch::MeasureLayers() {
  for (size_t i = 0; i < source_.layers.size(); ++i) probe_.Keep(i);
  for (size_t g = 0; g < source_.groups.size(); ++g) probe_.SetGroup(g, assignment_.groups[g]);
  double all = 0;
  for (const size_t i : order_) {
    probe_.Narrow(i, assignment_.layers[i]);
    HONE_ASSIGN_OR_RETURN(scores_[i].alone, reference_->Score(probe_, data_, kRunsOfLayer));
    probe_.Keep(i);
    all += scores_[i].alone.noise;
  }
  for (const size_t i : order_) scores_[i].share = all > 0 ? scores_[i].alone.noise / all : 0;
  std::ranges::stable_sort(
      order_, [&](size_t a, size_t b) { return scores_[a].alone.noise > scores_[b].alone.noise; });
  return absl::OkStatus();
}

size_t LayerSearch::NumKept() const {
  return static_cast<size_t>(
      std::ranges::count_if(order_, [&](size_t i) { return assignment_.layers[i].kept(); }));
}

ScoreTerms LayerSearch::terms() const {
  return {&*reference_, &data_, labels_ ? &*labels_ : nullptr, labelled_};
}

Assignment LayerSearch::WithKept(size_t kept) const {
  Assignment assignment = assignment_;
  for (size_t k = 0; k < order_.size(); ++k) {
    LayerChoice& layer = assignment.layers[order_[k]];
    layer.why_kept =
        k < kept ? fmt::format("{:.1f} % of the noise", 100 * scores_[order_[k]].share) : "";
  }
  return assignment;
}

bool LayerSearch::Meets(const ModelScore& score) const {
  if (request_.target_sqnr && score.Decibels() < *request_.target_sqnr) return false;
  constexpr double kHundred = 100, kRounding = 1e-9;
  return !request_.max_drop ||
         (*top1_in_f32_ - *score.top1) * kHundred <= *request_.max_drop + kRounding;
}

absl::Status LayerSearch::AddFrontPoint(size_t kept) {
  if (std::ranges::any_of(front_, [&](const FrontPoint& p) { return p.kept == kept; }))
    return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const ModelScore score, ScoreOf(WithKept(kept), true));
  front_.push_back({kept, score});
  std::ranges::sort(front_, {}, &FrontPoint::kept);
  return absl::OkStatus();
}

// The fewest layers in the order of their noise by bisection; then, from the least noise on, each
// of them is narrowed after all where the target is met without it.
absl::Status LayerSearch::MeetTarget() {
  size_t low = 0, high = order_.size();  // high meets it
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    tell_(fmt::format("trying {} of {} layers as they are", middle, order_.size()));
    HONE_RETURN_IF_ERROR(AddFrontPoint(middle));
    const auto point =
        std::ranges::find_if(front_, [&](const FrontPoint& p) { return p.kept == middle; });
    if (Meets(point->score))
      high = middle;
    else
      low = middle + 1;
  }
  if (high == order_.size()) {
    return Invalid(
        fmt::format("no layer can be {} within {}: even {} alone, the most exact one, gives {:.1f} "
                    "dB; ask for less, or {}",
                    words_.changed, request_.target_sqnr ? "--target-sqnr" : "--max-drop",
                    source_.layers[order_.back()].name, scores_[order_.back()].alone.Decibels(),
                    words_.advice));
  }
  HONE_RETURN_IF_ERROR(AddFrontPoint(high));
  Assignment best = WithKept(high);
  for (size_t k = high; k-- > 0;) {
    Assignment other = best;
    other.layers[order_[k]].why_kept.clear();
    HONE_ASSIGN_OR_RETURN(const ModelScore score, ScoreOf(other, true));
    if (Meets(score)) best = std::move(other);
  }
  assignment_ = std::move(best);
  return absl::OkStatus();
}

}  // namespace hone::client
