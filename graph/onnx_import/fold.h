#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "graph/op.h"

namespace hone::graph::onnx_import {

/// The outputs of a call whose inputs are all known and whose work is small (the chains that
/// compute shapes, indices and scalars), computed by the interpreter from the operator's own
/// Stages; results without elements are known whatever the inputs. Empty when the call is to become
/// a node. `types`: of the outputs.
absl::StatusOr<std::vector<ConstantPtr>> Fold(const OpCall& call,
                                              const std::vector<TensorType>& types);

}  // namespace hone::graph::onnx_import
