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

/// Attributes of the node that its operator does not have. Only the handler knows the operator's
/// attributes, by asking for them, and it stops asking at the first input that does not fit. So it
/// reads the node several times, with values of many types in place of the unknown inputs. The
/// operator has each attribute that was asked for in any of these readings. Empty where no reading
/// gets to the end. At most some hundred readings, and one where all is well.
std::vector<std::string> UnaskedAttributes(const Handler& handler, const NodeBehind& node,
                                           const Graph& graph, TensorReader& tensors);

}  // namespace hone::graph::onnx_import
