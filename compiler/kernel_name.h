#pragma once

#include <string>

#include "graph/graph.h"
#include "graph/grouping.h"

namespace hone::compiler {

/// What a group computes, for people: its operators in order and the shape of its last output:
/// "depthwise conv 3x3/2 + relu 1x56x56x96". Not unique, and nothing depends on it.
std::string KernelName(const graph::Graph& graph, const graph::Group& group);

}  // namespace hone::compiler
