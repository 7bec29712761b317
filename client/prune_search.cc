#include "client/prune_search.h"

#include <algorithm>
#include <span>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/onnx_prune/pruned_weights.h"

namespace hone::client {

using graph::onnx_prune::ChannelSet;
using graph::onnx_prune::PruneStructure;
using graph::onnx_quantise::Layer;
using graph::onnx_quantise::SourceModel;

namespace {

/// Numbers of a channel from which its mean says something of others.
constexpr int64_t kLeastOfMean = 32;
/// Moments of values that are held at once, in bytes, and runs that say whether they help.
constexpr int64_t kMomentBytes = int64_t{256} << 20;
constexpr size_t kRunsOfUpdate = 8;

}  // namespace

PruneSearch::PruneSearch(const SourceModel& source, LayerProbe& probe, const CalibrationSet& data,
                         PruneRequest request, const graph::onnx_prune::ChannelSets& sets,
                         std::function<void(const std::string&)> tell)
    : LayerSearch(source, probe, data, request.keep,
                  {.changed = "pruned", .advice = "choose another --sparsity"}, std::move(tell)),
      request_(std::move(request)),
      sets_(sets) {}

absl::Status PruneSearch::CheckLayers() const {
  for (const size_t i : order_)
    HONE_RETURN_IF_ERROR(
        graph::onnx_prune::CheckFits(source_.layers[i], request_.structure, request_.sparsity));
  return absl::OkStatus();
}

bool PruneSearch::heads() const { return request_.structure.kind == PruneStructure::Kind::kHead; }

std::string PruneSearch::WhyNoChannels(const Layer& layer) const {
  const auto index = static_cast<size_t>(&layer - source_.layers.data());
  for (const ChannelSet& set : sets_.sets) {
    if (std::ranges::find(set.readers, index) == set.readers.end()) continue;
    for (const size_t reader : set.readers) {
      const std::string& name = source_.layers[reader].name;
      if (std::ranges::find(request_.keep.keep, name) != request_.keep.keep.end())
        return fmt::format("{}, which reads the same {}, is kept", name,
                           heads() ? "heads" : "channels");
    }
    return "";
  }
  if (const auto it = sets_.why_not.find(index); it != sets_.why_not.end()) return it->second;
  return heads() ? "it reads no attention's output"
                 : "its input channels are not computed and read by layers only";
}

// A channel is as salient as what its readers' weights make of it: with data by what it was seen to
// carry, else by the size of the weights that make it.
absl::Status PruneSearch::PruneChannels() {
  for (const ChannelSet& set : sets_.sets) {
    saliencies_.emplace_back();
    const auto pruned = [&](size_t i) { return !assignment_.layers[i].kept(); };
    if (!std::ranges::all_of(set.readers, pruned)) continue;
    const int64_t zeros = graph::onnx_prune::NumZeros(request_.sparsity, set.channels);
    const Layer& first = source_.layers[set.readers[0]];
    if (zeros == set.channels) {
      return absl::InvalidArgumentError(fmt::format(
          "--sparsity {} leaves none of the {} {} that {} {} reads; ask for less, or --keep {}",
          request_.sparsity, set.channels, heads() ? "heads" : "channels", first.op, first.name,
          first.name));
    }
    std::vector<std::vector<double>> norms(source_.layers.size());
    if (!data_.drawn)
      for (const size_t i : set.readers) norms[i] = statistics_[source_.layers[i].group].Norms();
    saliencies_.back() = graph::onnx_prune::ChannelSaliencies(source_, set, norms);
    const std::vector<bool> gone = graph::onnx_prune::LeastSalient(saliencies_.back(), zeros);
    for (const size_t i : set.readers)
      assignment_.layers[i].narrow.restored =
          graph::onnx_prune::WithoutChannels(source_.layers[i], gone);
  }
  return absl::OkStatus();
}

size_t PruneSearch::MomentsOf(size_t layer) const {
  const Layer& own = source_.layers[layer];
  return own.terms == own.channels ? own.group : source_.groups.size() + layer;
}

/// Sums over all data for as many of the layers from `first` on as the memory for them takes; at
/// least for one.
absl::StatusOr<PruneSearch::Moments> PruneSearch::MomentsFrom(std::span<const size_t> layers) {
  Moments moments;
  int64_t bytes = 0;
  for (const size_t i : layers) {
    if (moments.contains(MomentsOf(i))) continue;
    bytes += graph::onnx_prune::InputMoments::Bytes(source_.layers[i].terms);
    if (bytes > kMomentBytes && !moments.empty()) break;
    moments.emplace(MomentsOf(i), source_.layers[i].terms);
  }
  for (size_t i = 0; i < source_.layers.size(); ++i) probe_.Keep(i);
  for (const NamedTensors& inputs : data_.runs) {
    HONE_RETURN_IF_ERROR(probe_.Run(inputs));
    for (auto& [of, own] : moments) {
      if (of < source_.groups.size()) {
        own.Add(probe_.Data(of), probe_.InnerElements(of));
        continue;
      }
      const Layer& layer = source_.layers[of - source_.groups.size()];
      own.AddWindows(probe_.Data(layer.group), probe_.DataShape(layer.group),
                     *graph::onnx_prune::WindowOf(source_, layer));
    }
  }
  return moments;
}

// Layer by layer: what is better alone may be worse with the noise of those before.
absl::Status PruneSearch::UpdateWeights() {
  updates_.resize(source_.layers.size());
  if (data_.drawn) return absl::OkStatus();
  std::vector<size_t> layers;
  for (size_t i = 0; i < source_.layers.size(); ++i) {
    if (assignment_.layers[i].kept()) continue;
    const Layer& layer = source_.layers[i];
    updates_[i].why_not =
        graph::onnx_prune::WhyNotUpdated(source_, layer, statistics_[layer.group].Count());
    if (updates_[i].why_not.empty()) layers.push_back(i);
  }
  if (layers.empty()) return absl::OkStatus();
  tell_(fmt::format("updating the remaining weights of {} layers", layers.size()));
  HONE_ASSIGN_OR_RETURN(ModelScore best, ScoreOn(kRunsOfUpdate, assignment_));
  before_update_ = best;
  Moments moments;
  for (size_t k = 0; k < layers.size(); ++k) {
    const Layer& layer = source_.layers[layers[k]];
    if (!moments.contains(MomentsOf(layers[k]))) {
      HONE_ASSIGN_OR_RETURN(moments, MomentsFrom(std::span(layers).subspan(k)));
    }
    std::vector<float>& weights = assignment_.layers[layers[k]].narrow.restored;
    const std::vector<float> before = weights;
    weights = graph::onnx_prune::UpdatedWeights(layer, before, moments.at(MomentsOf(layers[k])));
    HONE_ASSIGN_OR_RETURN(const ModelScore score, ScoreOn(kRunsOfUpdate, assignment_));
    updates_[layers[k]].done = score.noise < best.noise;
    if (updates_[layers[k]].done) {
      best = score;
    } else {
      weights = before;
      updates_[layers[k]].why_not = "the model is not more exact with it";
    }
  }
  after_update_ = best;
  return absl::OkStatus();
}

void PruneSearch::PruneWeights() {
  for (const size_t i : order_) {
    const Layer& layer = source_.layers[i];
    // Drawn inputs say nothing of what a channel carries.
    std::vector<double> norms;
    if (!data_.drawn) norms = statistics_[layer.group].Norms();
    assignment_.layers[i].narrow.restored =
        graph::onnx_prune::PrunedWeights(layer, request_.structure, request_.sparsity, norms);
  }
}

absl::Status PruneSearch::Calibrate() {
  const bool channels = request_.structure.takes_out();
  if (heads() && sets_.sets.empty()) {
    const auto why = sets_.why_not.begin();
    return absl::InvalidArgumentError(
        why == sets_.why_not.end()
            ? std::string("no head can be pruned: no MatMul, Gemm or Conv with known weights of "
                          "f32 reads the output of an attention")
            : fmt::format("no head can be pruned: {} {} reads an attention, but {}",
                          source_.layers[why->first].op, source_.layers[why->first].name,
                          why->second));
  }
  HONE_RETURN_IF_ERROR(CheckKeep(
      [&](const Layer& layer) { return channels ? WhyNoChannels(layer) : std::string(); }));
  if (!channels) HONE_RETURN_IF_ERROR(CheckLayers());
  HONE_RETURN_IF_ERROR(Observe());
  if (channels)
    HONE_RETURN_IF_ERROR(PruneChannels());
  else
    PruneWeights();
  HONE_RETURN_IF_ERROR(UpdateWeights());
  return CorrectBias(kLeastOfMean);
}

}  // namespace hone::client
