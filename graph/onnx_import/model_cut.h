#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace hone::graph::onnx_import {

/// Where to cut a model so that the nodes behind, which cannot be imported, are left out and its
/// products and convolutions are kept: the fewest named values through which all that leads from
/// these to the values `wanted` goes, those nearest to `wanted` of several equal choices, in the
/// order of the graph. Empty where nothing such leads there, or too many values would be needed to
/// list them. `names`: what the model calls its values.
std::vector<std::string> CutBefore(const Graph& graph, const std::vector<ValueId>& wanted,
                                   const std::map<std::string, ValueId>& names);

}  // namespace hone::graph::onnx_import
