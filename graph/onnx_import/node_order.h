#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/onnx_import/onnx.pb.h"

namespace hone::graph::onnx_import {

using NodeProtos = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

/// How messages call a node: "node conv1 (Conv)".
std::string NodeText(const onnx::NodeProto& node);

/// The nodes by number so that each comes after those whose outputs it (or a branch inside it)
/// reads; the order of the file where it is one already. `is_defined`: names that exist beforehand.
/// kInvalidArgument for a name nobody makes, one made twice, and cycles.
absl::StatusOr<std::vector<int>> TopologicalOrder(
    const NodeProtos& nodes, const std::function<bool(const std::string&)>& is_defined);

}  // namespace hone::graph::onnx_import
