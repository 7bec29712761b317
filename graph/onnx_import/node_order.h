#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/onnx_import/onnx.pb.h"

namespace hone::graph::onnx_import {

using NodeProtos = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

/// A node's name, or else that of its first output.
std::string NodeName(const onnx::NodeProto& node);
/// How messages call a node: "node conv1 (Conv)".
std::string NodeText(const onnx::NodeProto& node);

/// The names that exist before a list of nodes: those it may read, and among them those of its own
/// graph, which no node may make again (a branch may reuse names from around it).
struct KnownNames {
  std::function<bool(const std::string&)> is_visible;
  std::function<bool(const std::string&)> is_own;
};

/// The nodes by number so that each comes after those whose outputs it (or a branch inside it)
/// reads; the order of the file where it is one already. kInvalidArgument for a name that no node
/// makes, one that two nodes make, and cycles.
absl::StatusOr<std::vector<int>> TopologicalOrder(const NodeProtos& nodes, const KnownNames& known);

/// The names that a node reads, those that bodies inside it read from around them included.
std::set<std::string> NamesRead(const onnx::NodeProto& node);

/// The names that are needed to make `outputs`, themselves included.
std::set<std::string> NamesNeeded(const NodeProtos& nodes, const std::vector<std::string>& outputs);

}  // namespace hone::graph::onnx_import
