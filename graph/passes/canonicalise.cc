#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

using Shape = std::vector<int64_t>;

bool IsIota(const Shape& perm) {
  for (size_t k = 0; k < perm.size(); ++k) {
    if (perm[k] != static_cast<int64_t>(k)) return false;
  }
  return true;
}

bool AllEqual(const Shape& values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
}

// Bits of the integers a dtype holds exactly.
int ExactBits(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF64: return 53;
    case ir::DType::kF32: return 24;
    case ir::DType::kF16: return 11;
    case ir::DType::kBF16: return 8;
    case ir::DType::kBool: return 1;
    default: return static_cast<int>(8 * ir::SizeOf(dtype)) - (ir::IsUnsigned(dtype) ? 0 : 1);
  }
}

// Whether every value of `from` is a value of `to`.
bool IsExactCast(ir::DType from, ir::DType to) {
  using ir::DType;
  if (from == to) return true;
  if (ir::IsFloat(from)) {
    return to == DType::kF64 || (to == DType::kF32 && from != DType::kF64);
  }
  if (ir::IsBool(from)) return true;
  if (ir::IsBool(to)) return false;
  const bool sign_fits = ir::IsUnsigned(from) || ir::IsFloat(to) || !ir::IsUnsigned(to);
  return sign_fits && ExactBits(from) <= ExactBits(to);
}

class Canonicaliser {
 public:
  explicit Canonicaliser(Graph& graph) : rewriter_(graph), graph_(graph) {}

  absl::StatusOr<int> Run() {
    int changes = 0;
    for (const Node& old : rewriter_.old_nodes()) {
      HONE_ASSIGN_OR_RETURN(const bool changed, Simplify(rewriter_.Mapped(old)));
      if (changed) {
        ++changes;
      } else {
        rewriter_.Keep(old);
      }
    }
    HONE_RETURN_IF_ERROR(rewriter_.Finish());
    return changes;
  }

 private:
  const TensorType& TypeOf(ValueId id) const { return rewriter_.TypeOf(id); }

  absl::StatusOr<bool> ReplaceBy(const Node& node, ValueId value) {
    if (!rewriter_.MayReplace(node.outputs[0], value)) return false;
    rewriter_.Replace(node.outputs[0], value);
    return true;
  }

  absl::StatusOr<bool> ReplaceBy(const Node& node, std::string op, ValueId input,
                                 Attributes attributes) {
    HONE_ASSIGN_OR_RETURN(
        ValueId value, rewriter_.Add(std::move(op), node.origin, {input}, std::move(attributes)));
    return ReplaceBy(node, value);
  }

  absl::StatusOr<bool> Simplify(const Node& node) {
    if (node.inputs.empty() || node.inputs[0] == kNoValue || node.outputs.size() != 1) return false;
    const OpCall call = MakeCall(graph_, node);
    const ValueId x = node.inputs[0];
    const bool same_type = TypeOf(x) == TypeOf(node.outputs[0]);
    const std::string& op = node.op;
    if (op == "Reshape") return SimplifyReshape(node);
    if (op == "Transpose") return SimplifyTranspose(node);
    if (op == "Cast") return SimplifyCast(node);
    if (op == "Concat" && node.inputs.size() == 1) return ReplaceBy(node, x);
    if (op == "Expand" || op == "Tile") {
      if (same_type) return ReplaceBy(node, x);
      return false;
    }
    if (op == "Slice" && same_type && AllEqual(call.Ints("steps"), 1)) return ReplaceBy(node, x);
    if (op == "Pad" && AllEqual(call.Ints("begin"), 0) && AllEqual(call.Ints("end"), 0))
      return ReplaceBy(node, x);
    if (op == "MatMul") return IsOuterProduct(node) ? OuterProduct(node) : FuseTransposes(node);
    if (op == "Binary" && ConstantFirst(node, call.String("fn", ""))) {
      Node swapped = node;
      std::swap(swapped.inputs[0], swapped.inputs[1]);
      HONE_ASSIGN_OR_RETURN(ValueId value, rewriter_.Add(std::move(swapped)));
      return ReplaceBy(node, value);
    }
    if (op == "Binary" || op == "Select") return DropExpands(node);
    return false;
  }

  // c + x is written x + c.
  bool ConstantFirst(const Node& node, const std::string& fn) const {
    if (fn != "add" && fn != "mul" && fn != "max" && fn != "min") return false;
    return graph_.values[node.inputs[0]].constant != nullptr &&
           graph_.values[node.inputs[1]].constant == nullptr;
  }

  absl::StatusOr<bool> SimplifyReshape(const Node& node) {
    const ValueId x = node.inputs[0];
    const Shape shape = TypeOf(node.outputs[0]).shape;
    if (TypeOf(x).shape == shape) return ReplaceBy(node, x);
    const Node* inner = rewriter_.ProducerOf(x, "Reshape");
    if (inner == nullptr) return false;
    const ValueId source = inner->inputs[0];
    if (TypeOf(source).shape == shape) return ReplaceBy(node, source);
    return ReplaceBy(node, "Reshape", source, {{"shape", shape}});
  }

  absl::StatusOr<bool> SimplifyTranspose(const Node& node) {
    const ValueId x = node.inputs[0];
    const Shape perm = MakeCall(graph_, node).Ints("perm");
    if (IsIota(perm)) return ReplaceBy(node, x);
    if (const Node* inner = rewriter_.ProducerOf(x, "Transpose")) {
      const Shape first = MakeCall(graph_, *inner).Ints("perm");
      Shape composed;
      for (int64_t axis : perm) composed.push_back(first[axis]);
      const ValueId source = inner->inputs[0];
      if (IsIota(composed)) return ReplaceBy(node, source);
      return ReplaceBy(node, "Transpose", source, {{"perm", composed}});
    }
    Shape moved;
    for (int64_t axis : perm) {
      if (TypeOf(x).shape[axis] != 1) moved.push_back(axis);
    }
    if (!std::is_sorted(moved.begin(), moved.end())) return false;
    return ReplaceBy(node, "Reshape", x, {{"shape", TypeOf(node.outputs[0]).shape}});
  }

  absl::StatusOr<bool> SimplifyCast(const Node& node) {
    const ValueId x = node.inputs[0];
    const ir::DType to = TypeOf(node.outputs[0]).dtype;
    if (TypeOf(x).dtype == to) return ReplaceBy(node, x);
    const Node* inner = rewriter_.ProducerOf(x, "Cast");
    if (inner == nullptr) return false;
    const ValueId source = inner->inputs[0];
    if (!IsExactCast(TypeOf(source).dtype, TypeOf(x).dtype)) return false;
    if (TypeOf(source).dtype == to) return ReplaceBy(node, source);
    return ReplaceBy(node, "Cast", source, {{"to", std::string(ir::ToString(to))}});
  }

  // Nothing is summed: rotary embeddings are written so.
  bool IsOuterProduct(const Node& node) const {
    const Shape& a = TypeOf(node.inputs[0]).shape;
    const Shape& b = TypeOf(node.inputs[1]).shape;
    if (a.size() < 2 || b.size() < 2) return false;
    return a[a.size() - (MakeCall(graph_, node).Int("transpose_a", 0) != 0 ? 2 : 1)] == 1;
  }

  // A column times a row is the product of their elements, which fuses as such.
  absl::StatusOr<bool> OuterProduct(const Node& node) {
    const char* names[] = {"transpose_a", "transpose_b"};
    std::vector<ValueId> factors = {node.inputs[0], node.inputs[1]};
    for (size_t k = 0; k < 2; ++k) {
      if (MakeCall(graph_, node).Int(names[k], 0) == 0) continue;
      Shape shape = TypeOf(factors[k]).shape;
      std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
      HONE_ASSIGN_OR_RETURN(
          factors[k], rewriter_.Add("Reshape", node.origin, {factors[k]}, {{"shape", shape}}));
    }
    HONE_ASSIGN_OR_RETURN(ValueId value, rewriter_.Add("Binary", node.origin, std::move(factors),
                                                       {{"fn", std::string("mul")}}));
    return ReplaceBy(node, value);
  }

  // The matrix product reads an operand with its last two axes swapped when that makes the
  // transpose before it disappear, or leaves the innermost axis where it is (so that whole vectors
  // move).
  absl::StatusOr<bool> FuseTransposes(const Node& node) {
    Node fused = node;
    bool changed = false;
    const char* names[] = {"transpose_a", "transpose_b"};
    for (size_t k = 0; k < 2; ++k) {
      const Node* transpose = rewriter_.ProducerOf(fused.inputs[k], "Transpose");
      if (transpose == nullptr) continue;
      Shape perm = MakeCall(graph_, *transpose).Ints("perm");
      const size_t rank = perm.size();
      if (rank < 2 || perm[rank - 2] != static_cast<int64_t>(rank) - 1) continue;
      std::swap(perm[rank - 1], perm[rank - 2]);
      const ValueId source = transpose->inputs[0];
      fused.inputs[k] = source;
      if (!IsIota(perm)) {
        HONE_ASSIGN_OR_RETURN(fused.inputs[k],
                              rewriter_.Add("Transpose", node.origin, {source}, {{"perm", perm}}));
      }
      fused.attributes[names[k]] = int64_t{1} - MakeCall(graph_, node).Int(names[k], 0);
      changed = true;
    }
    if (!changed) return false;
    HONE_ASSIGN_OR_RETURN(ValueId value, rewriter_.Add(std::move(fused)));
    return ReplaceBy(node, value);
  }

  // An operand need not be expanded when the others already have the result's shape.
  absl::StatusOr<bool> DropExpands(const Node& node) {
    Node lean = node;
    bool changed = false;
    for (ValueId& input : lean.inputs) {
      const Node* expand = rewriter_.ProducerOf(input, "Expand");
      if (expand == nullptr) continue;
      const ValueId kept = std::exchange(input, expand->inputs[0]);
      if (BroadcastShape(lean.inputs) == TypeOf(node.outputs[0]).shape) {
        changed = true;
      } else {
        input = kept;
      }
    }
    if (!changed) return false;
    HONE_ASSIGN_OR_RETURN(ValueId value, rewriter_.Add(std::move(lean)));
    return ReplaceBy(node, value);
  }

  Shape BroadcastShape(const std::vector<ValueId>& inputs) const {
    size_t rank = 0;
    for (ValueId input : inputs) rank = std::max(rank, TypeOf(input).shape.size());
    Shape result(rank, 1);
    for (ValueId input : inputs) {
      const Shape& shape = TypeOf(input).shape;
      for (size_t k = 0; k < shape.size(); ++k) {
        int64_t& extent = result[rank - shape.size() + k];
        if (shape[k] != 1) extent = shape[k];
      }
    }
    return result;
  }

  Rewriter rewriter_;
  Graph& graph_;
};

}  // namespace

absl::StatusOr<int> Canonicalise(Graph& graph, const PassContext&) {
  // A change may make room for another one further down only, except through Mapped operands: two
  // walks reach the end in practice, and the limit keeps a mistake from running for ever.
  int total = 0;
  for (int walk = 0; walk < 8; ++walk) {
    HONE_ASSIGN_OR_RETURN(const int changes, Canonicaliser(graph).Run());
    total += changes;
    if (changes == 0) break;
  }
  return total;
}

}  // namespace hone::graph
