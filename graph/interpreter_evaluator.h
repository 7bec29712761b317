#pragma once

#include <vector>

#include "graph/evaluator.h"

namespace hone::graph {

/// Evaluates by ir's interpreter: for tests and for small work.
class InterpreterEvaluator final : public Evaluator {
 public:
  absl::StatusOr<std::vector<ConstantPtr>> Evaluate(
      const ir::Workload& workload, const std::vector<ConstantPtr>& tensors) override;
};

}  // namespace hone::graph
