#pragma once

#include <vector>

#include "graph/op.h"

// Which values a tensor takes, roughly: measuring and checking draw the inputs of a group from it,
// so that indices stay inside their tables, variances positive and exponents small. An estimate,
// never a proof.
namespace hone::graph {

/// The range of a constant: of its values when it is small, the default of its dtype otherwise.
ir::ValueRange RangeOfConstant(const TensorData& data);

/// What is assumed of a dtype when nothing is known: bool {0, 1}, 8-bit integers everything, other
/// integers [0, 16), floats [-1, 1).
ir::ValueRange DefaultRange(ir::DType dtype);

/// Sets the ranges of a node's outputs from those of its inputs.
void SetRanges(Graph& graph, const Node& node);

/// Sets the range of every node's outputs from the graph inputs on. Integer inputs in `unstated`
/// whose values are used as indices get the extent of what they index.
void InferRanges(Graph& graph, const std::vector<ValueId>& unstated);

}  // namespace hone::graph
