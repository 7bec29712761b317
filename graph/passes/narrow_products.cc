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
#include "ir/kind_facts.h"

namespace hone::graph {
namespace {

using ir::DType;

/// Operators that hand on the elements of their first input, and so hand on half the bytes.
constexpr std::array<std::string_view, 4> kMoves = {"Reshape", "Transpose", "Slice", "Expand"};

/// Columns of a product from which vectors run along them.
constexpr int64_t kFewestColumns = 16;
/// Rows that make up for packing an operand that is computed.
constexpr int64_t kFewestRows = 8;
/// Rows up to which a processor reads the weights of f32 for longer than it multiplies them: two
/// operations for four bytes and row, at some five operations in the time of a byte.
constexpr int64_t kMostRowsOfReading = 8;
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
    if (call.Int("transpose_a", 0) != 0 || columns < kFewestColumns) return false;
    if (call.inputs[1].constant != nullptr) return a.back() % 2 == 0;
    return a[a.size() - 2] >= kFewestRows;
  }
  if (node.op != "Conv" || call.String("layout", "nchw") != "nhwc" || b[1] % 2 != 0) return false;
  return b[0] >= kFewestColumns && (call.Int("group", 1) == 1 || b[1] >= kFewestChannelsOfGroup);
}

/// Whether a known operand of f32 is all that the product's bytes are.
bool HasLargeWeights(const Graph& graph, const Node& node) {
  if (node.op != "MatMul") return false;
  const OpCall call = MakeCall(graph, node);
  constexpr int64_t kFewElements = 1 << 12;
  return call.inputs[1].constant != nullptr && call.inputs[0].type.dtype == DType::kF32 &&
         call.inputs[1].type.dtype == DType::kF32 &&
         call.inputs[1].type.NumElements() >= kFewElements;
}

/// Whether a product of large weights waits for them rather than for its arithmetic.
bool WaitsForWeights(const Graph& graph, const Node& node) {
  if (!HasLargeWeights(graph, node) || !IsMadeOfPairs(graph, node)) return false;
  const std::vector<int64_t>& y = graph.values[node.outputs[0]].type.shape;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < y.size(); ++i) rows *= y[i];
  return rows <= kMostRowsOfReading;
}

/// Weights of the matrix products that `chosen` names in the graph's precision, widened where they
/// are read.
absl::StatusOr<int> HalveWeights(Graph& graph, bool (*chosen)(const Graph&, const Node&)) {
  Rewriter rewriter(graph);
  int changes = 0;
  for (const Node& old : rewriter.old_nodes()) {
    Node node = rewriter.Mapped(old);
    if (chosen(graph, node)) {
      HONE_ASSIGN_OR_RETURN(node.inputs[1],
                            rewriter.Add("Cast", node.origin, {node.inputs[1]},
                                         {{"to", std::string(ToString(graph.precision))}}));
      ++changes;
    }
    rewriter.Keep(std::move(node));
  }
  HONE_RETURN_IF_ERROR(rewriter.Finish());
  return changes;
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
      HONE_RETURN_IF_ERROR(FillUp(&node));
      node.attributes["to"] = std::string(ToString(DType::kF32));
      rewriter_.Keep(std::move(node));
      ++changes;
    }
    HONE_RETURN_IF_ERROR(rewriter_.Finish());
    return changes;
  }

 private:
  /// A term of zeros behind an odd number of them.
  absl::Status FillUp(Node* node) {
    if (node->op != "MatMul") return absl::OkStatus();
    const bool turned = MakeCall(graph_, *node).Int("transpose_b", 0) != 0;
    for (size_t k = 0; k < 2; ++k) {
      const std::vector<int64_t> shape = graph_.values[node->inputs[k]].type.shape;
      const size_t terms = shape.size() - (k == 0 || turned ? 1 : 2);
      if (shape[terms] % 2 == 0) continue;
      const std::vector<int64_t> none(shape.size(), 0);
      std::vector<int64_t> end = none;
      end[terms] = 1;
      HONE_ASSIGN_OR_RETURN(
          node->inputs[k],
          rewriter_.Add("Pad", node->origin, {node->inputs[k]},
                        {{"begin", none}, {"end", end}, {"mode", std::string("constant")}}));
    }
    return absl::OkStatus();
  }

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

absl::StatusOr<int> NarrowProducts(Graph& graph, const PassContext& context) {
  if (graph.precision == DType::kF32) return 0;
  if (graph.precision == DType::kF16) return HalveWeights(graph, HasLargeWeights);
  if (!ir::Multiplies(context.target, graph.precision)) return HalveWeights(graph, WaitsForWeights);
  return ProductNarrower(graph).Run();
}

}  // namespace hone::graph
