#pragma once

#include <map>
#include <string>

#include "graph/onnx_import/onnx.pb.h"

namespace hone::graph::onnx_prune {

/// The graph's tensors by the names that nodes read them by: initialisers, Constant nodes and
/// Identities of these.
std::map<std::string, const onnx::TensorProto*> KnownTensors(const onnx::GraphProto& graph);

}  // namespace hone::graph::onnx_prune
