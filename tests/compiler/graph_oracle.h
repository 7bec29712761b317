#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"

namespace hone::compiler {

/// The graph's outputs by the interpreter, one node at a time: no passes, no groups, no code.
absl::StatusOr<std::vector<graph::ConstantPtr>> RunNodeByNode(
    const graph::Graph& graph, const std::vector<graph::ConstantPtr>& inputs);

/// Loads a package from its bytes and runs it three times, with poisoned memory; the runs must
/// agree. `threads` 0: as many as the package says.
absl::StatusOr<std::vector<graph::ConstantPtr>> RunPackage(
    const std::string& bytes, const std::vector<graph::ConstantPtr>& inputs, int threads = 0);

/// Seeded values within each input's range.
std::vector<graph::ConstantPtr> RandomInputs(const graph::Graph& graph, uint64_t seed);

}  // namespace hone::compiler
