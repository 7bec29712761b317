#include <algorithm>
#include <cstdint>
#include <vector>

#include "graph/group_limits.h"
#include "graph/op.h"
#include "graph/passes/passes.h"

namespace hone::graph {
namespace {

class AttentionMarker {
 public:
  AttentionMarker(Graph& graph, const GroupLimits& limits)
      : graph_(graph), limits_(limits), readers_(graph.Readers()) {
    is_output_.resize(graph.values.size());
    for (ValueId output : graph.outputs) is_output_[output] = true;
  }

  int Run() {
    int marked = 0;
    for (Node& node : graph_.nodes) {
      if (node.op != "MatMul" || node.attributes.contains("attention")) continue;
      if (MakeCall(graph_, node).Int("transpose_a", 0) != 0 || !IsLong(node.inputs[0]) ||
          !MixesProbabilities(node))
        continue;
      node.attributes["attention"] = int64_t{1};
      ++marked;
    }
    return marked;
  }

 private:
  // Whether so many rows of so many keys are better one kernel.
  bool IsLong(ValueId probabilities) const {
    const std::vector<int64_t>& shape = graph_.values[probabilities].type.shape;
    return limits_.attention_keys > 0 && shape.size() >= 2 &&
           shape.back() >= limits_.attention_keys && shape.end()[-2] >= limits_.attention_rows;
  }

  const Node* Producer(ValueId id) const {
    const NodeId producer = id == kNoValue ? -1 : graph_.values[id].producer;
    return producer < 0 ? nullptr : &graph_.nodes[producer];
  }

  // Whether the value is read by one node alone, once: nobody misses it when it is never stored.
  bool IsPrivate(ValueId id) const { return readers_[id].size() == 1 && !is_output_[id]; }

  static bool IsElementwise(const Node& node) {
    return node.op == "Unary" || node.op == "Binary" || node.op == "Select" ||
           node.op == "Causal" || node.op == "Cast";
  }

  // A relabelling that leaves rows whole: [b·h, q, k] to [b, h, q, k].
  bool KeepsRows(const Node& node) const {
    const std::vector<int64_t>& from = graph_.values[node.inputs[0]].type.shape;
    const std::vector<int64_t>& to = graph_.values[node.outputs[0]].type.shape;
    return node.op == "Reshape" && from.size() >= 2 && to.size() >= 2 &&
           std::equal(from.end() - 2, from.end(), to.end() - 2);
  }

  // P of P · V is a softmax over its last axis, of scores that a product makes.
  bool MixesProbabilities(const Node& product) const {
    const Node* softmax = Behind(product.inputs[0], "Softmax", Between::kRelabellings, 0);
    if (softmax == nullptr) return false;
    const OpCall call = MakeCall(graph_, *softmax);
    const auto last = static_cast<int64_t>(call.inputs[0].type.shape.size()) - 1;
    const int64_t axis = call.Int("axis", -1);
    return call.Int("log", 0) == 0 && (axis == -1 || axis == last) &&
           Behind(softmax->inputs[0], "MatMul", Between::kMaps, 0) != nullptr;
  }

  enum class Between : uint8_t { kRelabellings, kMaps };
  // The `op` that makes `id`, or makes what relabellings (and, of maps, masks and scales) made it
  // of, each read by the next alone, all of them f32.
  const Node* Behind(ValueId id, std::string_view op, Between between, int depth) const {
    constexpr int kDeepest = 12;
    if (id == kNoValue || depth > kDeepest || !IsPrivate(id)) return nullptr;
    if (graph_.values[id].type.dtype != ir::DType::kF32) return nullptr;
    const Node* node = Producer(id);
    if (node == nullptr || node->op == op) return node;
    if (KeepsRows(*node)) return Behind(node->inputs[0], op, between, depth + 1);
    if (between == Between::kRelabellings || !IsElementwise(*node)) return nullptr;
    for (ValueId input : node->inputs) {
      if (graph_.values[input].type.shape != graph_.values[id].type.shape) continue;
      if (const Node* found = Behind(input, op, between, depth + 1)) return found;
    }
    return nullptr;
  }

  Graph& graph_;
  const GroupLimits limits_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> is_output_;
};

}  // namespace

absl::StatusOr<int> RecogniseAttention(Graph& graph, const PassContext& context) {
  const ir::Target& target = context.target;
  return AttentionMarker(graph, LimitsOfKinds().Of(target).Of(target)).Run();
}

}  // namespace hone::graph
