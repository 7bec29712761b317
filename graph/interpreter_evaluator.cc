#include "graph/interpreter_evaluator.h"

#include <cstring>
#include <utility>

#include "base/status.h"
#include "ir/interpreter.h"

namespace hone::graph {

absl::StatusOr<std::vector<ConstantPtr>> InterpreterEvaluator::Evaluate(
    const ir::Workload& workload, const std::vector<ConstantPtr>& tensors) {
  std::vector<ir::TensorBuffer> arguments;
  for (const ConstantPtr& tensor : tensors) {
    ir::TensorBuffer argument = ir::TensorBuffer::Zeros(tensor->type.dtype, tensor->type.shape);
    if (!tensor->bytes.empty())
      std::memcpy(argument.bytes.data(), tensor->bytes.data(), tensor->bytes.size());
    arguments.push_back(std::move(argument));
  }
  HONE_ASSIGN_OR_RETURN(std::vector<ir::InterpretedTensor> results,
                        ir::RunWorkload(workload, arguments));
  std::vector<ConstantPtr> outputs;
  for (const ir::InterpretedTensor& result : results) {
    std::vector<std::byte> bytes(result.tensor.bytes.size());
    if (!bytes.empty()) std::memcpy(bytes.data(), result.tensor.bytes.data(), bytes.size());
    outputs.push_back(MakeConstant({result.tensor.dtype, result.tensor.shape}, std::move(bytes)));
  }
  return outputs;
}

}  // namespace hone::graph
