#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/passes/quantised.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

/// Whether the operator hands on or selects elements of its first input, whatever they stand for:
/// greater bytes are greater numbers.
bool MovesElements(const Graph& graph, const Node& node) {
  if (node.outputs.size() != 1) return false;
  if (node.op == "Pool") return MakeCall(graph, node).String("kind", "") == "max";
  return node.op == "Reshape" || node.op == "Transpose" || node.op == "Slice" ||
         node.op == "Expand" || node.op == "Gather";
}

class ByteMover {
 public:
  explicit ByteMover(Graph& graph) : rewriter_(graph), graph_(graph) {}

  /// `before` is the graph that the rewriter was given.
  absl::StatusOr<int> Run(const Graph& before) {
    const Matcher matcher(before);
    const QuantisedMatcher quantised(before, matcher);
    int changes = 0;
    for (const Node& node : before.nodes) {
      HONE_ASSIGN_OR_RETURN(bool moved, RestoreBytes(node, before, quantised));
      if (!moved) {
        HONE_ASSIGN_OR_RETURN(moved, GatherBytes(node, quantised));
      }
      if (moved)
        ++changes;
      else
        rewriter_.Keep(node);
    }
    HONE_RETURN_IF_ERROR(rewriter_.Finish());
    return changes;
  }

 private:
  // Quantising what was dequantised by the same numbers, with nothing but moves between.
  absl::StatusOr<bool> RestoreBytes(const Node& node, const Graph& before,
                                    const QuantisedMatcher& quantised) {
    const auto q = node.op == "Cast" ? quantised.QuantisedAt(node.outputs[0]) : std::nullopt;
    if (!q) return false;
    std::vector<const Node*> moves;
    ValueId from = q->x;
    auto d = quantised.DequantisedAt(from);
    while (!d) {
      const NodeId producer = before.values[from].producer;
      if (producer < 0 || !MovesElements(before, before.nodes[producer])) return false;
      moves.push_back(&before.nodes[producer]);
      from = moves.back()->inputs[0];
      d = quantised.DequantisedAt(from);
    }
    if (before.values[d->bytes].type.dtype != before.values[node.outputs[0]].type.dtype ||
        !quantised.Restores(*q, *d))
      return false;
    ValueId bytes = rewriter_.Mapped(d->bytes);
    for (const Node* move : std::vector(moves.rbegin(), moves.rend())) {
      Node own = rewriter_.Mapped(*move);
      own.inputs[0] = bytes;
      own.outputs.clear();
      HONE_ASSIGN_OR_RETURN(bytes, rewriter_.Add(std::move(own)));
    }
    rewriter_.Replace(node.outputs[0], bytes);
    return true;
  }

  // Rows of a dequantised table are rows of its bytes, dequantised.
  absl::StatusOr<bool> GatherBytes(const Node& node, const QuantisedMatcher& quantised) {
    const auto table = node.op == "Gather" ? quantised.DequantisedAt(node.inputs[0]) : std::nullopt;
    if (!table || !quantised.KnownScalar(table->scale)) return false;
    if (table->zero != nullptr && table->zero->type.NumElements() != 1) return false;
    Node gather = rewriter_.Mapped(node);
    gather.inputs[0] = rewriter_.Mapped(table->bytes);
    gather.outputs.clear();
    HONE_ASSIGN_OR_RETURN(ValueId x, rewriter_.Add(std::move(gather)));
    const auto cast = [&](const char* to) {
      return rewriter_.Add("Cast", node.origin, {x}, {{"to", std::string(to)}});
    };
    const auto binary = [&](const char* fn, ValueId right) {
      return rewriter_.Add("Binary", node.origin, {x, right}, {{"fn", std::string(fn)}});
    };
    HONE_ASSIGN_OR_RETURN(x, cast("i32"));
    if (table->zero != nullptr) {
      HONE_ASSIGN_OR_RETURN(
          x, binary("sub", rewriter_.AddConstant(
                               MakeConstant(ir::DType::kI32, {}, {table->zero->DoubleAt(0)}))));
    }
    HONE_ASSIGN_OR_RETURN(x, cast("f32"));
    HONE_ASSIGN_OR_RETURN(x, binary("mul", rewriter_.Mapped(table->scale)));
    rewriter_.Replace(node.outputs[0], x);
    return true;
  }

  Rewriter rewriter_;
  Graph& graph_;
};

}  // namespace

absl::StatusOr<int> MoveBytes(Graph& graph, const PassContext&) {
  const Graph before = graph;
  return ByteMover(graph).Run(before);
}

}  // namespace hone::graph
