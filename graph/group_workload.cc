#include "graph/group_workload.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/op.h"
#include "graph/pruned_constants.h"
#include "graph/workload_rewrite.h"
#include "ir/checked_index.h"
#include "ir/workload_builder.h"

namespace hone::graph {
namespace {

// What a Workload says of an input's values. Estimates of floats differ from layer to layer, and
// equal layers are to be one task: only their sign is kept. Integers are indices, whose range is
// exact.
ir::ValueRange TaskRange(const Value& value) {
  if (!ir::IsFloat(value.type.dtype)) return value.range;
  if (value.range.low > 0) return {0.5, 1.5};
  if (value.range.low == 0) return {0, 1};
  if (value.range.high <= 0) return {-1, 0};
  return {-1, 1};
}

// What is drawn for an input to measure and check a kernel must not be refused as an index.
void KeepIndicesInside(ir::Workload& workload) {
  for (const ir::CheckedIndex& check : ir::CheckedIndices(workload)) {
    ir::Tensor& tensor = workload.tensors[check.tensor];
    const auto extent = static_cast<double>(check.extent);
    if (!check.direct || (tensor.range.low >= -extent && tensor.range.high <= extent)) continue;
    tensor.range = {0, std::min(std::max(tensor.range.high, 1.0), extent)};
  }
}

/// Expresses nodes one after the other; remembers which builder tensor is which value.
class GroupBuilder {
 public:
  explicit GroupBuilder(const Graph& graph) : graph_(graph) {}

  absl::Status Append(const Node& node) {
    const OpDefinition* definition = FindOp(node.op);
    if (definition == nullptr || definition->express == nullptr) {
      return absl::UnimplementedError(
          fmt::format("node {} ({}) cannot be expressed as a loop nest", node.origin, node.op));
    }
    std::vector<int> tensors;
    for (ValueId input : node.inputs) tensors.push_back(input == kNoValue ? -1 : TensorOf(input));
    auto outputs = definition->express(MakeCall(graph_, node), builder_, tensors);
    if (!outputs.ok()) {
      return Annotate(outputs.status(), fmt::format("node {} ({})", node.origin, node.op));
    }
    HONE_CHECK(outputs->size() >= node.outputs.size()) << node.op << " expressed too few outputs";
    std::vector<int> made;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k] == kNoValue) continue;
      int tensor = (*outputs)[k];
      // One tensor is one value: an LSTM over one step may give its last state as its sequence.
      if (std::ranges::find(made, tensor) != made.end()) tensor = Copy(tensor);
      made.push_back(tensor);
      tensor_of_[node.outputs[k]] = tensor;
    }
    return absl::OkStatus();
  }

  /// Canonical Stages with these outputs; `shape_stages` changes them before the second
  /// canonicalisation.
  template <typename Rewrite>
  GroupWorkload Finish(const std::vector<ValueId>& outputs, Rewrite rewrite) {
    for (ValueId output : outputs) builder_.MarkOutput(tensor_of_.at(output));
    ir::WorkloadBuilder::Result made = builder_.Finish();
    rewrite(made.workload);
    ir::WorkloadBuilder::Result canonical = ir::Canonicalise(made.workload);

    KeepIndicesInside(canonical.workload);

    std::map<int, ValueId> value_of;
    for (const auto& [value, tensor] : tensor_of_) {
      const int first = made.canonical[tensor];
      if (first < 0) continue;
      const int second = canonical.canonical[first];
      if (second >= 0) value_of[second] = value;
    }
    GroupWorkload result;
    result.workload = std::move(canonical.workload);
    for (int tensor : result.workload.Inputs()) result.inputs.push_back(value_of.at(tensor));
    for (int tensor : result.workload.Constants()) result.constants.push_back(value_of.at(tensor));
    for (int tensor : result.workload.Outputs()) result.outputs.push_back(value_of.at(tensor));
    return result;
  }

 private:
  int Copy(int tensor) {
    const std::vector<int64_t> shape = builder_.tensor(tensor).shape;
    std::vector<ir::Expr> axes;
    for (size_t k = 0; k < shape.size(); ++k) axes.push_back(ir::Var(static_cast<int>(k)));
    return builder_.AddMap(shape, builder_.At(tensor, axes));
  }

  int TensorOf(ValueId id) {
    const auto found = tensor_of_.find(id);
    if (found != tensor_of_.end()) return found->second;
    const Value& value = graph_.values[id];
    const int tensor =
        value.constant != nullptr
            ? builder_.AddConstant(value.type.dtype, value.type.shape)
            : builder_.AddInput(value.type.dtype, value.type.shape, TaskRange(value));
    tensor_of_[id] = tensor;
    return tensor;
  }

  const Graph& graph_;
  ir::WorkloadBuilder builder_;
  std::map<ValueId, int> tensor_of_;
};

}  // namespace

absl::StatusOr<GroupWorkload> BuildWorkload(const Graph& graph, const Group& group) {
  return BuildWorkload(graph, graph.Readers(), group);
}

absl::StatusOr<GroupWorkload> BuildWorkload(const Graph& graph,
                                            const std::vector<std::vector<NodeId>>& readers,
                                            const Group& group) {
  GroupBuilder builder(graph);
  for (NodeId node : group.nodes) HONE_RETURN_IF_ERROR(builder.Append(graph.nodes[node]));
  GroupWorkload made =
      builder.Finish(GroupOutputs(graph, readers, group.nodes), [](ir::Workload& workload) {
        MoveOntoReshapes(workload);
        InlineMoves(workload);
        MoveOntoAnchorAxes(workload);
        Tidy(workload);
      });
  StatePanels(graph, made);
  return made;
}

absl::StatusOr<GroupWorkload> BuildNodeWorkload(const Graph& graph, NodeId node) {
  GroupBuilder builder(graph);
  HONE_RETURN_IF_ERROR(builder.Append(graph.nodes[node]));
  std::vector<ValueId> outputs;
  for (ValueId output : graph.nodes[node].outputs) {
    if (output != kNoValue) outputs.push_back(output);
  }
  return builder.Finish(outputs, [](ir::Workload&) {});
}

std::vector<ValueId> GroupOutputs(const Graph& graph,
                                  const std::vector<std::vector<NodeId>>& readers,
                                  const std::vector<NodeId>& nodes) {
  const std::set<NodeId> inside(nodes.begin(), nodes.end());
  const auto is_wanted = [&](ValueId value) {
    const std::vector<NodeId>& by = readers[static_cast<size_t>(value)];
    return std::ranges::find(graph.outputs, value) != graph.outputs.end() ||
           std::ranges::any_of(by, [&](NodeId reader) { return !inside.contains(reader); });
  };
  std::vector<ValueId> outputs;
  for (NodeId node : nodes) {
    for (ValueId output : graph.nodes[node].outputs) {
      if (output != kNoValue && is_wanted(output)) outputs.push_back(output);
    }
  }
  return outputs;
}

}  // namespace hone::graph
