#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/onnx_quantise/source_model.h"

namespace hone::graph::onnx_prune {

/// A dimension of a constant that a node reads, along which channels stand: `repeat` places for
/// each, side by side.
struct ChannelSlot {
  int node = 0, input = 0;
  size_t axis = 0;
  int64_t repeat = 1;
  std::vector<int> ids = {};  ///< the channels in their order; empty: each once
};

/// A whole number that counts channels: `repeat` for each of `ids`. An element of a constant that a
/// node reads, or of the attribute, where that is not empty.
struct ChannelCount {
  int node = 0, input = 0;
  std::string attribute = {};
  size_t element = 0;
  int64_t repeat = 1;
  std::vector<int> ids = {};
};

/// Channels that pass a model one by one, from the layers that make them to the layers that read
/// them, through operators that compute each from itself alone. Residual sums make one set of
/// theirs. A channel may be taken out of all of it.
struct ChannelSet {
  int64_t channels = 0;
  std::vector<size_t> makers;   ///< layers of the source, whose columns they are
  std::vector<size_t> readers;  ///< layers; terms / channels of each sum meet one channel
  std::vector<ChannelSlot> slots;
  std::vector<int> depthwise = {};  ///< nodes whose attribute `group` is the number of channels
  std::vector<ChannelCount> counts = {};
};

/// What may be taken out of a model.
struct ChannelSets {
  std::vector<ChannelSet> sets;
  /// By layer: why what it reads may not, where more is known than that it is none of them.
  std::map<size_t, std::string> why_not;
};

/// All sets whose channels nothing else depends on: no output of the graph, no reshape, no body of
/// a loop.
std::vector<ChannelSet> FindChannelSets(const onnx_quantise::SourceModel& source);

}  // namespace hone::graph::onnx_prune
