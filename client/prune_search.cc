#include "client/prune_search.h"

#include <algorithm>
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

}  // namespace

PruneSearch::PruneSearch(const SourceModel& source, LayerProbe& probe, const CalibrationSet& data,
                         PruneRequest request,
                         const std::vector<graph::onnx_prune::ChannelSet>& sets,
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

std::string PruneSearch::WhyNoChannels(const Layer& layer) const {
  const auto index = static_cast<size_t>(&layer - source_.layers.data());
  for (const ChannelSet& set : sets_) {
    if (std::ranges::find(set.readers, index) == set.readers.end()) continue;
    for (const size_t reader : set.readers) {
      const std::string& name = source_.layers[reader].name;
      if (std::ranges::find(request_.keep.keep, name) != request_.keep.keep.end())
        return fmt::format("{}, which reads the same channels, is kept", name);
    }
    return "";
  }
  return "others than layers make or read its input channels";
}

// A channel is as salient as what its readers' weights make of it: with data by what it was seen to
// carry, else by the size of the weights that make it.
absl::Status PruneSearch::PruneChannels() {
  for (const ChannelSet& set : sets_) {
    const auto pruned = [&](size_t i) { return !assignment_.layers[i].kept(); };
    if (!std::ranges::all_of(set.readers, pruned)) continue;
    const int64_t zeros = graph::onnx_prune::NumZeros(request_.sparsity, set.channels);
    const Layer& first = source_.layers[set.readers[0]];
    if (zeros == set.channels) {
      return absl::InvalidArgumentError(fmt::format(
          "--sparsity {} leaves none of the {} channels that {} {} reads; ask for less, "
          "or --keep {}",
          request_.sparsity, set.channels, first.op, first.name, first.name));
    }
    std::vector<std::vector<double>> norms(source_.layers.size());
    if (!data_.drawn)
      for (const size_t i : set.readers) norms[i] = statistics_[source_.layers[i].group].Norms();
    const std::vector<bool> gone =
        graph::onnx_prune::LeastSalientChannels(source_, set, norms, zeros);
    for (const size_t i : set.readers)
      assignment_.layers[i].narrow.restored =
          graph::onnx_prune::WithoutChannels(source_.layers[i], gone);
  }
  return absl::OkStatus();
}

absl::Status PruneSearch::Calibrate() {
  const bool channels = request_.structure.kind == PruneStructure::Kind::kChannel;
  HONE_RETURN_IF_ERROR(CheckKeep(
      [&](const Layer& layer) { return channels ? WhyNoChannels(layer) : std::string(); }));
  if (!channels) HONE_RETURN_IF_ERROR(CheckLayers());
  HONE_RETURN_IF_ERROR(Observe());
  if (channels) {
    HONE_RETURN_IF_ERROR(PruneChannels());
    return CorrectBias(kLeastOfMean);
  }
  for (const size_t i : order_) {
    const Layer& layer = source_.layers[i];
    // Drawn inputs say nothing of what a channel carries.
    std::vector<double> norms;
    if (!data_.drawn) norms = statistics_[layer.group].Norms();
    assignment_.layers[i].narrow.restored =
        graph::onnx_prune::PrunedWeights(layer, request_.structure, request_.sparsity, norms);
  }
  return CorrectBias(kLeastOfMean);
}

}  // namespace hone::client
