#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"

namespace hone::compiler {

/// The attributes that the runtime's routine for this node wants, all of them in its order
/// (runtime/externs.h). Unimplemented for a node that no routine runs.
absl::StatusOr<std::vector<int64_t>> ExternAttributes(const graph::Graph& graph,
                                                      const graph::Node& node);

}  // namespace hone::compiler
