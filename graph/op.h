#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"
#include "ir/workload_builder.h"

namespace hone::graph {

/// What an operator's definition sees of a node: no graph, only types, attributes and known values.
struct OpInput {
  bool present = false;
  TensorType type;
  ConstantPtr constant;  ///< null when the value is not known at compile time
};
struct OpCall {
  std::string_view op;
  std::string_view origin;
  const Attributes* attributes = nullptr;
  std::vector<OpInput> inputs;
  int num_outputs = 1;

  int64_t Int(std::string_view name, int64_t otherwise) const;
  double Float(std::string_view name, double otherwise) const;
  std::string String(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> Ints(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<double> Floats(std::string_view name, std::vector<double> otherwise = {}) const;
};

/// The one definition of an operator. Shape checks, constant folding, code and oracle all come from
/// it.
struct OpDefinition {
  std::string_view name;
  /// Types of the outputs, or InvalidArgument saying what does not fit (without node name: the
  /// caller adds it).
  absl::StatusOr<std::vector<TensorType>> (*infer)(const OpCall& call) = nullptr;
  /// Appends Stages. tensors[i] is the builder's tensor of input i (-1 when absent); gives the
  /// builder tensor of each output. A scalar constant input (one element) should be read through
  /// `call.inputs[i].constant` as an ir::Const. An output that is the input itself under another
  /// shape is still expressed as a map Stage (it will be inlined).
  absl::StatusOr<std::vector<int>> (*express)(const OpCall& call, ir::WorkloadBuilder& builder,
                                              const std::vector<int>& tensors) = nullptr;
  /// Not empty: no loop nest expresses it; the runtime's routine of that name runs it (TopK,
  /// Scatter*).
  std::string_view extern_name = {};
};

/// The operator by canonical name, or null. Thread-safe (an immutable table).
const OpDefinition* FindOp(std::string_view name);
/// Every definition, by name.
std::vector<const OpDefinition*> AllOps();

/// The OpCall of a node.
OpCall MakeCall(const Graph& graph, const Node& node);
/// The checked types of a call's outputs (at least num_outputs, at most rank 6, sizes that do not
/// overflow). Errors do not name the node.
absl::StatusOr<std::vector<TensorType>> InferTypes(const OpCall& call);
/// Infers and appends: makes output values (named after the node) and pushes the node. Errors name
/// node, operator and shapes.
absl::StatusOr<std::vector<ValueId>> AppendNode(Graph& graph, Node node, int num_outputs = 1);

}  // namespace hone::graph
