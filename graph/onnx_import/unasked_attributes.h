#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/onnx_import/handler.h"

namespace hone::graph::onnx_import {

/// Stands for a value that a node which cannot be imported would have made.
inline constexpr ValueId kUnknown = -2;

/// Has the handler read a node, hints of old operator sets included.
void ReadNode(const Handler& handler, NodeImport& node);

/// A node behind one that cannot be imported: `inputs` are values of `graph`, kNoValue or kUnknown.
struct NodeBehind {
  const onnx::NodeProto& proto;
  const std::map<std::string, const onnx::AttributeProto*>& attributes;
  const std::vector<ValueId>& inputs;
  int64_t opset = 0;
};

/// Attributes that its operator does not have. Which it has the handler alone knows, by asking for
/// them, and it asks as long as inputs fit: so it reads the node with values of many types in place
/// of the unknown ones. Where it asked for an attribute once, the operator has it; where none of
/// them fits to the end nobody can tell, and there is no answer. At most some hundred readings,
/// one where all is well.
std::vector<std::string> UnaskedAttributes(const Handler& handler, const NodeBehind& node,
                                           const Graph& graph, TensorReader& tensors);

}  // namespace hone::graph::onnx_import
