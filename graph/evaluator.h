#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"
#include "ir/workload.h"

namespace hone::graph {

/// Runs a Workload on values. Passes that need values (constant folding) get an Evaluator from
/// their caller.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  /// `tensors`: one for every input of the Workload, then one for every constant, in Workload
  /// order, of exactly those types. Gives the outputs in Workload order. The same bytes on every
  /// machine.
  virtual absl::StatusOr<std::vector<ConstantPtr>> Evaluate(
      const ir::Workload& workload, const std::vector<ConstantPtr>& tensors) = 0;
};

}  // namespace hone::graph
