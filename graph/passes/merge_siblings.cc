#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

/// A matrix product with constant weights [K, N] (or [N, K]), and the constant bias added to it, if
/// there is one.
struct Sibling {
  NodeId product = -1;
  NodeId bias_node = -1;
  ConstantPtr weights;
  ConstantPtr bias;
  ValueId result = kNoValue;
  int64_t columns = 0;
};

// Matrices [rows, columns] side by side (`along_columns`) or one above the other, as bytes.
ConstantPtr Joined(const std::vector<ConstantPtr>& parts, bool along_columns) {
  const TensorType& first = parts[0]->type;
  const bool matrix = first.shape.size() == 2;
  TensorType type = first;
  const size_t axis = matrix && along_columns ? 1 : 0;
  type.shape[axis] = 0;
  for (const ConstantPtr& part : parts) type.shape[axis] += part->type.shape[axis];
  std::vector<std::byte> bytes(static_cast<size_t>(type.Bytes()));
  const int64_t rows = axis == 1 ? type.shape[0] : 1;
  std::byte* to = bytes.data();
  for (int64_t row = 0; row < rows; ++row) {
    for (const ConstantPtr& part : parts) {
      const size_t size = part->bytes.size() / static_cast<size_t>(rows);
      std::memcpy(to, part->bytes.data() + static_cast<size_t>(row) * size, size);
      to += size;
    }
  }
  return MakeConstant(std::move(type), std::move(bytes));
}

class SiblingMerger {
 public:
  explicit SiblingMerger(Graph& graph)
      : readers_(graph.Readers()),
        is_output_(graph.values.size()),
        rewriter_(graph),
        graph_(graph) {
    for (ValueId output : graph.outputs) is_output_[output] = true;
  }

  absl::StatusOr<int> Run() {
    FindFamilies();
    int changes = 0;
    std::vector<bool> dropped(rewriter_.old_nodes().size());
    for (size_t n = 0; n < rewriter_.old_nodes().size(); ++n) {
      const auto family = families_.find(static_cast<NodeId>(n));
      if (family != families_.end()) {
        HONE_RETURN_IF_ERROR(Merge(family->second));
        for (const Sibling& sibling : family->second) {
          dropped[sibling.product] = true;
          if (sibling.bias_node >= 0) dropped[sibling.bias_node] = true;
        }
        ++changes;
      }
      if (!dropped[n]) rewriter_.Keep(rewriter_.old_nodes()[n]);
    }
    HONE_RETURN_IF_ERROR(rewriter_.Finish());
    return changes;
  }

 private:
  const Node& OldNode(NodeId id) const { return rewriter_.old_nodes()[id]; }

  // Siblings read one value and have weights of one height and type; they are merged where the
  // first of them stands.
  void FindFamilies() {
    using Key = std::tuple<ValueId, int64_t, int64_t, int64_t, ir::DType>;
    std::map<Key, std::vector<Sibling>> by_key;
    for (NodeId n = 0; n < static_cast<NodeId>(rewriter_.old_nodes().size()); ++n) {
      const std::optional<Sibling> sibling = SiblingAt(n);
      if (!sibling || !IsWorthMerging(*sibling)) continue;
      const OpCall call = MakeCall(graph_, OldNode(n));
      const int64_t transpose_b = call.Int("transpose_b", 0);
      by_key[{OldNode(n).inputs[0], call.Int("transpose_a", 0), transpose_b,
              sibling->weights->type.shape[transpose_b], sibling->weights->type.dtype}]
          .push_back(*sibling);
    }
    for (auto& [key, family] : by_key) {
      if (family.size() >= 2) families_[family[0].product] = std::move(family);
    }
  }

  // An epilogue that could be fused into a product alone would have to read its part of the whole
  // from memory; readers that relabel or multiply do so anyway.
  bool IsWorthMerging(const Sibling& sibling) const {
    if (is_output_[sibling.result]) return false;
    return std::ranges::all_of(readers_[sibling.result], [&](NodeId reader) {
      const std::string& op = OldNode(reader).op;
      return op == "Reshape" || op == "Transpose" || op == "MatMul";
    });
  }

  std::optional<Sibling> SiblingAt(NodeId n) const {
    const Node& node = OldNode(n);
    if (node.op != "MatMul") return std::nullopt;
    Sibling sibling;
    sibling.product = n;
    sibling.weights = graph_.values[node.inputs[1]].constant;
    if (sibling.weights == nullptr || sibling.weights->type.shape.size() != 2) return std::nullopt;
    if (graph_.values[node.inputs[0]].constant != nullptr) return std::nullopt;
    sibling.result = node.outputs[0];
    sibling.columns = graph_.values[sibling.result].type.shape.back();
    const std::vector<NodeId>& readers = readers_[sibling.result];
    if (is_output_[sibling.result] || readers.size() != 1) return sibling;
    const Node& next = OldNode(readers[0]);
    if (next.op != "Binary" || MakeCall(graph_, next).String("fn", "") != "add") return sibling;
    const ValueId other = next.inputs[next.inputs[0] == sibling.result ? 1 : 0];
    const ConstantPtr& bias = graph_.values[other].constant;
    if (bias == nullptr || bias->type.shape != std::vector<int64_t>{sibling.columns})
      return sibling;
    sibling.bias_node = readers[0];
    sibling.bias = bias;
    sibling.result = next.outputs[0];
    return sibling;
  }

  absl::Status Merge(const std::vector<Sibling>& family) {
    Node product = rewriter_.Mapped(OldNode(family[0].product));
    product.outputs.clear();
    const bool transposed = MakeCall(graph_, product).Int("transpose_b", 0) != 0;
    std::vector<ConstantPtr> weights;
    std::vector<ConstantPtr> biases;
    bool any_bias = false;
    for (const Sibling& sibling : family) {
      weights.push_back(sibling.weights);
      any_bias = any_bias || sibling.bias != nullptr;
      biases.push_back(sibling.bias);
      if (sibling.bias == nullptr) {
        const std::vector<double> zeros(static_cast<size_t>(sibling.columns), 0.0);
        biases.back() = MakeConstant(sibling.weights->type.dtype, {sibling.columns}, zeros);
      }
    }
    product.inputs[1] = rewriter_.AddConstant(Joined(weights, !transposed));
    const std::string origin = product.origin;
    HONE_ASSIGN_OR_RETURN(ValueId result, rewriter_.Add(std::move(product)));
    if (any_bias) {
      const ValueId bias = rewriter_.AddConstant(Joined(biases, true));
      HONE_ASSIGN_OR_RETURN(
          result, rewriter_.Add("Binary", origin, {result, bias}, {{"fn", std::string("add")}}));
    }
    std::vector<int64_t> starts(rewriter_.TypeOf(result).shape.size(), 0);
    for (const Sibling& sibling : family) {
      const std::vector<int64_t> steps(starts.size(), 1);
      HONE_ASSIGN_OR_RETURN(ValueId part,
                            rewriter_.Add("Slice", OldNode(sibling.product).origin, {result},
                                          {{"starts", starts},
                                           {"steps", steps},
                                           {"sizes", rewriter_.TypeOf(sibling.result).shape}}));
      rewriter_.Replace(sibling.result, part);
      starts.back() += sibling.columns;
    }
    return absl::OkStatus();
  }

  std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> is_output_;
  Rewriter rewriter_;
  Graph& graph_;
  std::map<NodeId, std::vector<Sibling>> families_;  ///< by the first member's product
};

}  // namespace

absl::StatusOr<int> MergeSiblings(Graph& graph, const PassContext&) {
  return SiblingMerger(graph).Run();
}

}  // namespace hone::graph
