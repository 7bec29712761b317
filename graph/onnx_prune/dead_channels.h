#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/onnx_prune/channel_sets.h"
#include "graph/onnx_quantise/assignment.h"

namespace hone::graph::onnx_prune {

/// What is taken out of a model with its dead channels.
struct DroppedChannels {
  /// By node and input: places that stay along a dimension of the constant there.
  struct Slice {
    size_t axis = 0;
    std::vector<int64_t> keep;
  };
  /// A whole number of a node that says how many stay, as ChannelCount.
  struct Count {
    int input = 0;
    std::string attribute;
    size_t element = 0;
    int64_t number = 0;
  };
  std::map<std::pair<int, int>, std::vector<Slice>> slices;
  std::map<int, std::vector<Count>> counts;  ///< by node

  bool empty() const { return slices.empty(); }
  /// The constant without them.
  ConstantPtr Apply(int node, int input, ConstantPtr data) const;
};

/// A layer's weights after an assignment, in their own type.
ConstantPtr WeightsAfter(const onnx_quantise::SourceModel& source,
                         const onnx_quantise::Assignment& assignment, size_t layer);

/// The channels of the sets that no layer reads any more: all weights that meet them are zero after
/// the assignment. One of each set stays.
DroppedChannels FindDeadChannels(const onnx_quantise::SourceModel& source,
                                 const onnx_quantise::Assignment& assignment,
                                 const std::vector<ChannelSet>& sets);

}  // namespace hone::graph::onnx_prune
