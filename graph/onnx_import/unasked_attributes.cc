#include "graph/onnx_import/unasked_attributes.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace hone::graph::onnx_import {
namespace {

constexpr std::array<size_t, 6> kRanks = {4, 3, 2, 1, 5, 0};
constexpr std::array<ir::DType, 5> kDTypes = {ir::DType::kF32, ir::DType::kI64, ir::DType::kBool,
                                              ir::DType::kU8, ir::DType::kI32};
constexpr int64_t kLength = 16;  ///< of axes that say nothing of other inputs
constexpr size_t kMostExtents = 12;
constexpr int64_t kMostChannels = 1 << 13;

/// Extents that may fit the known inputs: theirs, and so many groups of them.
std::vector<int64_t> Extents(const NodeBehind& node, const Graph& graph) {
  std::set<int64_t> stated = {4}, factors = {1};
  for (const ValueId input : node.inputs) {
    if (input < 0) continue;
    for (const int64_t extent : graph.values[static_cast<size_t>(input)].type.shape)
      stated.insert(extent);
  }
  for (const auto& [name, attribute] : node.attributes) factors.insert(attribute->i());
  std::vector<int64_t> extents;
  for (const int64_t factor : factors) {
    for (const int64_t extent : stated) {
      const bool fits = factor > 0 && extent > 0 && extent <= kMostChannels / factor;
      if (!fits || extents.size() >= kMostExtents) continue;
      if (std::find(extents.begin(), extents.end(), extent * factor) == extents.end())
        extents.push_back(extent * factor);
    }
  }
  return extents;
}

/// Channels are the second axis, and the last one of sequences and matrices.
TensorType TypeOf(ir::DType dtype, size_t rank, int64_t extent) {
  TensorType type{.dtype = dtype, .shape = std::vector<int64_t>(rank, kLength)};
  if (rank > 1) type.shape[1] = extent;
  if (rank > 0 && rank < 4) type.shape.back() = extent;
  return type;
}

/// What is left of `names` after a reading; whether the node fits.
bool Read(const Handler& handler, const NodeBehind& node, const Graph& graph, TensorReader& tensors,
          const TensorType& unknown, std::vector<std::string>& names) {
  Graph scratch;
  std::vector<ValueId> inputs;
  for (const ValueId input : node.inputs) {
    if (input == kNoValue) {
      inputs.push_back(kNoValue);
    } else if (input == kUnknown) {
      inputs.push_back(scratch.AddValue({.type = unknown}));
    } else {
      const Value& value = graph.values[static_cast<size_t>(input)];
      inputs.push_back(
          scratch.AddValue({.name = value.name, .type = value.type, .constant = value.constant}));
    }
  }
  NodeImport reading(scratch, tensors, node.proto, node.attributes, std::move(inputs), node.opset);
  ReadNode(handler, reading);
  const std::vector<std::string> unasked = reading.UnknownAttributes();
  std::erase_if(names, [&](const std::string& name) {
    return std::find(unasked.begin(), unasked.end(), name) == unasked.end();
  });
  return reading.ok();
}

}  // namespace

void ReadNode(const Handler& handler, NodeImport& node) {
  handler.import(node);
  constexpr int64_t kFirstWithoutHints = 7;
  if (node.opset() < kFirstWithoutHints) node.Ints("consumed_inputs");  // concerns memory only
}

std::vector<std::string> UnaskedAttributes(const Handler& handler, const NodeBehind& node,
                                           const Graph& graph, TensorReader& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, attribute] : node.attributes) names.push_back(name);
  bool fits = false;
  for (const int64_t extent : Extents(node, graph)) {
    for (const size_t rank : kRanks) {
      for (const ir::DType dtype : kDTypes) {
        if (names.empty()) return names;
        if (Read(handler, node, graph, tensors, TypeOf(dtype, rank, extent), names)) fits = true;
      }
    }
  }
  if (!fits) names.clear();
  return names;
}

}  // namespace hone::graph::onnx_import
