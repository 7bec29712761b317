#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

using ir::DType;

/// Operators that hand on the elements of their first input, and so hand on half the bytes.
constexpr std::array<std::string_view, 4> kMoves = {"Reshape", "Transpose", "Slice", "Expand"};

/// Columns of a product from which vectors run along them.
constexpr int64_t kFewestColumns = 16;
/// Input channels of a group below which a tile has too little to multiply.
constexpr int64_t kFewestChannelsOfGroup = 16;

/// Whether pairs of terms lie side by side in both operands, or can be packed so.
bool IsMadeOfPairs(const Graph& graph, const Node& node) {
  const OpCall call = MakeCall(graph, node);
  if (call.inputs.size() < 2 || call.inputs[0].type.dtype != DType::kF32 ||
      call.inputs[1].type.dtype != DType::kF32)
    return false;
  const std::vector<int64_t>& a = call.inputs[0].type.shape;
  const std::vector<int64_t>& b = call.inputs[1].type.shape;
  if (node.op == "MatMul") {
    const int64_t columns = graph.values[node.outputs[0]].type.shape.back();
    // What is not constant would be packed in each run, which costs more than it gains.
    return call.inputs[1].constant != nullptr && call.Int("transpose_a", 0) == 0 &&
           a.back() % 2 == 0 && columns >= kFewestColumns;
  }
  if (node.op != "Conv" || call.String("layout", "nchw") != "nhwc" || b[1] % 2 != 0) return false;
  return b[0] >= kFewestColumns && (call.Int("group", 1) == 1 || b[1] >= kFewestChannelsOfGroup);
}

class ProductNarrower {
 public:
  explicit ProductNarrower(Graph& graph) : to_(graph.precision), rewriter_(graph), graph_(graph) {}

  absl::StatusOr<int> Run() {
    int changes = 0;
    for (const Node& old : rewriter_.old_nodes()) {
      Node node = rewriter_.Mapped(old);
      if (!IsMadeOfPairs(graph_, node)) {
        rewriter_.Keep(old);
        continue;
      }
      for (size_t k = 0; k < 2; ++k) {
        HONE_ASSIGN_OR_RETURN(node.inputs[k], Narrowed(node.inputs[k], node.origin));
      }
      node.attributes["to"] = std::string(ToString(DType::kF32));
      rewriter_.Keep(std::move(node));
      ++changes;
    }
    HONE_RETURN_IF_ERROR(rewriter_.Finish());
    return changes;
  }

 private:
  /// The value rounded, where it is computed: what only moves elements then moves rounded ones.
  absl::StatusOr<ValueId> Narrowed(ValueId value, const std::string& origin) {
    if (const auto known = narrowed_.find(value); known != narrowed_.end()) return known->second;
    ValueId result = kNoValue;
    const NodeId producer = graph_.values[value].producer;
    if (producer >= 0 && std::ranges::find(kMoves, graph_.nodes[producer].op) != kMoves.end()) {
      Node move = graph_.nodes[producer];
      HONE_ASSIGN_OR_RETURN(move.inputs[0], Narrowed(move.inputs[0], origin));
      move.outputs.clear();
      HONE_ASSIGN_OR_RETURN(result, rewriter_.Add(std::move(move)));
    } else {
      HONE_ASSIGN_OR_RETURN(
          result, rewriter_.Add("Cast", origin, {value}, {{"to", std::string(ToString(to_))}}));
    }
    narrowed_[value] = result;
    return result;
  }

  const DType to_;
  Rewriter rewriter_;
  Graph& graph_;
  std::map<ValueId, ValueId> narrowed_;
};

}  // namespace

absl::StatusOr<int> NarrowProducts(Graph& graph, const PassContext&) {
  if (graph.precision == DType::kF32) return 0;
  return ProductNarrower(graph).Run();
}

}  // namespace hone::graph
