#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"

namespace hone::graph {

/// A value and how far correct code may be away from it, by element.
struct ReferenceTensor {
  TensorType type;
  std::vector<double> values;
  std::vector<double> bounds;
};

/// Runs a graph node by node through the interpreter, each operator by its own definition. `inputs`
/// by name. kUnimplemented for externs.
absl::StatusOr<std::vector<ReferenceTensor>> RunByInterpreter(
    const Graph& graph, const std::map<std::string, ConstantPtr>& inputs);

}  // namespace hone::graph
