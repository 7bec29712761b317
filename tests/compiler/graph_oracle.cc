#include "tests/compiler/graph_oracle.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/core/random.h"
#include "base/status.h"
#include "graph/group_workload.h"
#include "graph/interpreter_evaluator.h"
#include "runtime/context.h"
#include "runtime/executable.h"

namespace hone::compiler {

using graph::ConstantPtr;

absl::StatusOr<std::vector<ConstantPtr>> RunNodeByNode(const graph::Graph& graph,
                                                       const std::vector<ConstantPtr>& inputs) {
  std::vector<ConstantPtr> values(graph.values.size());
  for (size_t v = 0; v < values.size(); ++v) values[v] = graph.values[v].constant;
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs[i]] = inputs[i];
  graph::InterpreterEvaluator interpreter;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    HONE_ASSIGN_OR_RETURN(const graph::GroupWorkload node,
                          graph::BuildNodeWorkload(graph, static_cast<graph::NodeId>(n)));
    std::vector<ConstantPtr> arguments;
    for (const graph::ValueId v : node.inputs) arguments.push_back(values[v]);
    for (const graph::ValueId v : node.constants) arguments.push_back(values[v]);
    HONE_ASSIGN_OR_RETURN(const std::vector<ConstantPtr> results,
                          interpreter.Evaluate(node.workload, arguments));
    for (size_t i = 0; i < results.size(); ++i) values[node.outputs[i]] = results[i];
  }
  std::vector<ConstantPtr> outputs;
  for (const graph::ValueId v : graph.outputs) outputs.push_back(values[v]);
  return outputs;
}

absl::StatusOr<std::vector<ConstantPtr>> RunPackage(const std::string& bytes,
                                                    const std::vector<ConstantPtr>& inputs,
                                                    int threads) {
  auto executable = runtime::Executable::OpenMemory(std::as_bytes(std::span(bytes)), {});
  HONE_RETURN_IF_ERROR(ToAbsl(executable.status()));
  const ir::Plan& plan = (*executable)->plan();
  auto context = runtime::Context::Create(*executable, {.threads = threads, .poison = true});
  HONE_RETURN_IF_ERROR(ToAbsl(context.status()));
  std::vector<runtime::InputBuffer> in;
  for (const ConstantPtr& input : inputs) in.push_back({input->bytes.data(), input->bytes.size()});

  std::vector<std::vector<std::byte>> first;
  for (int run = 0; run < 3; ++run) {
    std::vector<std::vector<std::byte>> memory;
    for (const ir::PlanValue& output : plan.outputs) {
      graph::TensorType type{output.dtype, output.shape};
      memory.emplace_back(static_cast<size_t>(type.Bytes()));
    }
    std::vector<runtime::OutputBuffer> out;
    for (auto& buffer : memory) out.push_back({buffer.data(), buffer.size()});
    HONE_RETURN_IF_ERROR(ToAbsl((*context)->Run(in, out)));
    if (run == 0) first = memory;
    if (memory != first) return absl::InternalError("two runs differ");
  }
  std::vector<ConstantPtr> results;
  for (size_t i = 0; i < first.size(); ++i) {
    results.push_back(graph::MakeConstant(
        graph::TensorType{plan.outputs[i].dtype, plan.outputs[i].shape}, std::move(first[i])));
  }
  return results;
}

std::vector<ConstantPtr> RandomInputs(const graph::Graph& graph, uint64_t seed) {
  Random random(seed);
  std::vector<ConstantPtr> inputs;
  for (const graph::ValueId v : graph.inputs) {
    const graph::Value& value = graph.values[v];
    std::vector<double> numbers;
    for (int64_t i = 0; i < value.type.NumElements(); ++i) {
      numbers.push_back(value.range.low + (value.range.high - value.range.low) * random.Uniform());
    }
    inputs.push_back(graph::MakeConstant(value.type.dtype, value.type.shape, numbers));
  }
  return inputs;
}

}  // namespace hone::compiler
