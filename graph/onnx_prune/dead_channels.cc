#include "graph/onnx_prune/dead_channels.h"

#include <algorithm>

#include "graph/constant_slice.h"

namespace hone::graph::onnx_prune {

using onnx_quantise::Assignment;
using onnx_quantise::Layer;
using onnx_quantise::SourceModel;

namespace {

void MarkRead(const Layer& layer, const TensorData& weights, int64_t channels,
              std::vector<bool>* read) {
  const auto* values = reinterpret_cast<const float*>(weights.bytes.data());
  const int64_t of_channel = layer.terms / channels;
  for (int64_t n = 0; n < layer.columns; ++n)
    for (int64_t t = 0; t < layer.terms; ++t)
      if (values[layer.ElementOf(n, t)] != 0) (*read)[static_cast<size_t>(t / of_channel)] = true;
}

/// The places that stay, `repeat` for each channel of `ids`; of all where these are empty.
std::vector<int64_t> PlacesLeft(const std::vector<bool>& keep, const std::vector<int>& ids,
                                int64_t repeat) {
  std::vector<int64_t> places;
  const size_t count = ids.empty() ? keep.size() : ids.size();
  for (size_t k = 0; k < count; ++k) {
    if (!keep[ids.empty() ? k : static_cast<size_t>(ids[k])]) continue;
    for (int64_t i = 0; i < repeat; ++i) places.push_back(static_cast<int64_t>(k) * repeat + i);
  }
  return places;
}

}  // namespace

ConstantPtr DroppedChannels::Apply(int node, int input, ConstantPtr data) const {
  const auto it = slices.find({node, input});
  if (it == slices.end()) return data;
  for (const Slice& slice : it->second) data = Sliced(*data, slice.axis, slice.keep);
  return data;
}

ConstantPtr WeightsAfter(const SourceModel& source, const Assignment& assignment, size_t layer) {
  const onnx_quantise::LayerChoice& choice = assignment.layers[layer];
  const ConstantPtr& own = source.layers[layer].weights_data;
  if (choice.kept()) return own;
  const auto bytes = std::as_bytes(std::span(choice.narrow.restored));
  return MakeConstant(own->type, {bytes.begin(), bytes.end()});
}

DroppedChannels FindDeadChannels(const SourceModel& source, const Assignment& assignment,
                                 const std::vector<ChannelSet>& sets) {
  DroppedChannels dropped;
  for (const ChannelSet& set : sets) {
    std::vector<bool> read(static_cast<size_t>(set.channels));
    for (const size_t i : set.readers)
      MarkRead(source.layers[i], *WeightsAfter(source, assignment, i), set.channels, &read);
    if (std::ranges::find(read, true) == read.end()) read[0] = true;
    if (std::ranges::find(read, false) == read.end()) continue;
    for (const ChannelSlot& slot : set.slots) {
      dropped.slices[{slot.node, slot.input}].push_back(
          {.axis = slot.axis, .keep = PlacesLeft(read, slot.ids, slot.repeat)});
    }
    const auto number = [&](const std::vector<int>& ids, int64_t repeat) {
      return static_cast<int64_t>(PlacesLeft(read, ids, repeat).size());
    };
    for (const int node : set.depthwise)
      dropped.counts[node].push_back({.attribute = "group", .number = number({}, 1)});
    for (const ChannelCount& count : set.counts) {
      dropped.counts[count.node].push_back({.input = count.input,
                                            .attribute = count.attribute,
                                            .element = count.element,
                                            .number = number(count.ids, count.repeat)});
    }
  }
  return dropped;
}

}  // namespace hone::graph::onnx_prune
