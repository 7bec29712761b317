#include "tests/graph/reference_run.h"

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "graph/op.h"
#include "ir/interpreter.h"
#include "ir/workload_builder.h"

namespace hone::graph {
namespace {

struct Known {
  ir::TensorBuffer buffer;
  std::vector<double> bounds;
};

ir::TensorBuffer BufferOf(const TensorData& data) {
  ir::TensorBuffer buffer = ir::TensorBuffer::Zeros(data.type.dtype, data.type.shape);
  if (!buffer.bytes.empty())
    std::memcpy(buffer.bytes.data(), data.bytes.data(), buffer.bytes.size());
  return buffer;
}

absl::StatusOr<std::vector<Known>> RunNode(const Graph& graph, const Node& node,
                                           const std::vector<Known>& values) {
  const OpCall call = MakeCall(graph, node);
  const OpDefinition* definition = FindOp(node.op);
  if (definition->express == nullptr)
    return absl::UnimplementedError("extern " + std::string(definition->extern_name));
  ir::WorkloadBuilder builder;
  std::vector<int> tensors;
  for (const OpInput& input : call.inputs) {
    tensors.push_back(input.present ? builder.AddConstant(input.type.dtype, input.type.shape) : -1);
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<int> outputs,
                        definition->express(call, builder, tensors));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const TensorType& type = graph.values[static_cast<size_t>(node.outputs[i])].type;
    const ir::Tensor& made = builder.tensor(outputs[i]);
    if (TensorType{made.dtype, made.shape} != type) {
      return absl::InternalError(node.op + " infers " + ToText(type) + ", but expresses " +
                                 ToText(TensorType{made.dtype, made.shape}));
    }
    builder.MarkOutput(outputs[i]);
  }
  const ir::WorkloadBuilder::Result result = builder.Finish();
  std::vector<ir::TensorBuffer> arguments;
  for (int id : result.workload.Constants()) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i] < 0 || result.canonical[static_cast<size_t>(tensors[i])] != id) continue;
      arguments.push_back(values[static_cast<size_t>(node.inputs[i])].buffer);
      break;
    }
  }
  auto made = ir::RunWorkload(result.workload, arguments);
  if (!made.ok()) return Annotate(made.status(), node.op);
  const std::vector<int> order = result.workload.Outputs();
  std::vector<Known> known;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const int id = result.canonical[static_cast<size_t>(outputs[i])];
    const auto at = static_cast<size_t>(std::find(order.begin(), order.end(), id) - order.begin());
    known.push_back({(*made)[at].tensor, (*made)[at].bounds});
  }
  return known;
}

}  // namespace

absl::StatusOr<std::vector<ReferenceTensor>> RunByInterpreter(
    const Graph& graph, const std::map<std::string, ConstantPtr>& inputs) {
  std::vector<Known> values(graph.values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (graph.values[i].constant != nullptr) values[i].buffer = BufferOf(*graph.values[i].constant);
  }
  for (ValueId id : graph.inputs) {
    const Value& value = graph.values[static_cast<size_t>(id)];
    const auto given = inputs.find(value.name);
    if (given == inputs.end() || given->second->type != value.type) {
      return absl::InvalidArgumentError("no value of " + ToText(value.type) + " for input " +
                                        value.name);
    }
    values[static_cast<size_t>(id)].buffer = BufferOf(*given->second);
  }
  for (const Node& node : graph.nodes) {
    HONE_ASSIGN_OR_RETURN(std::vector<Known> made, RunNode(graph, node, values));
    for (size_t i = 0; i < made.size(); ++i)
      values[static_cast<size_t>(node.outputs[i])] = std::move(made[i]);
  }
  std::vector<ReferenceTensor> outputs;
  for (ValueId id : graph.outputs) {
    const Known& known = values[static_cast<size_t>(id)];
    outputs.push_back(
        {{known.buffer.dtype, known.buffer.shape}, known.buffer.ToDoubles(), known.bounds});
    outputs.back().bounds.resize(outputs.back().values.size());
  }
  return outputs;
}

}  // namespace hone::graph
