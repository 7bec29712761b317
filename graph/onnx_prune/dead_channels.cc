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

std::vector<int64_t> Repeated(const std::vector<int64_t>& keep, int64_t repeat) {
  std::vector<int64_t> places;
  for (const int64_t channel : keep)
    for (int64_t i = 0; i < repeat; ++i) places.push_back(channel * repeat + i);
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
    std::vector<int64_t> keep;
    for (size_t c = 0; c < read.size(); ++c)
      if (read[c]) keep.push_back(static_cast<int64_t>(c));
    if (keep.empty()) keep.push_back(0);
    if (keep.size() == read.size()) continue;
    for (const ChannelSlot& slot : set.slots) {
      dropped.slices[{slot.node, slot.input}].push_back(
          {.axis = slot.axis, .keep = Repeated(keep, slot.repeat)});
    }
    for (const int node : set.depthwise) dropped.groups[node] = static_cast<int64_t>(keep.size());
  }
  return dropped;
}

}  // namespace hone::graph::onnx_prune
