#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

/// Operators above which reading a table of 256 is quicker than computing.
constexpr size_t kManyOperators = 24;

bool IsByte(ir::DType type) { return type == ir::DType::kI8 || type == ir::DType::kU8; }

class ByteTabulator {
 public:
  explicit ByteTabulator(Graph& graph)
      : before_(graph),
        readers_(graph.Readers()),
        root_(graph.values.size(), kNoValue),
        known_(graph.values.size()),
        wanted_(graph.values.size()),
        rewriter_(graph) {
    for (size_t v = 0; v < graph.values.size(); ++v) {
      known_[v] = graph.values[v].constant != nullptr;
      if (!known_[v] && graph.values[v].type.dtype == ir::DType::kU8)
        root_[v] = static_cast<ValueId>(v);
    }
    for (ValueId output : graph.outputs) wanted_[output] = true;
  }

  absl::StatusOr<int> Run() {
    for (const Node& node : before_.nodes) FindRoot(node);
    for (auto node = before_.nodes.rbegin(); node != before_.nodes.rend(); ++node)
      FindWanted(*node);
    int changes = 0;
    for (const Node& node : before_.nodes) {
      if (!IsWorthATable(node)) {
        rewriter_.Keep(node);
        continue;
      }
      HONE_RETURN_IF_ERROR(Tabulate(node));
      ++changes;
    }
    HONE_RETURN_IF_ERROR(rewriter_.Finish());
    return changes;
  }

 private:
  const TensorType& TypeOf(ValueId id) const { return before_.values[id].type; }

  bool IsKnownScalar(ValueId id) const { return known_[id] && TypeOf(id).NumElements() == 1; }

  // A value's root: the u8 of which it is a function, element by element; a u8 is its own where it
  // is no other's.
  void FindRoot(const Node& node) {
    const ValueId result = node.outputs[0];
    if (result == kNoValue || std::ranges::count(node.inputs, kNoValue) > 0) return;
    known_[result] = std::ranges::all_of(node.inputs, [&](ValueId input) { return known_[input]; });
    const bool elementwise = node.op == "Unary" || node.op == "Binary" || node.op == "Cast" ||
                             node.op == "Activation" || node.op == "Select";
    if (!elementwise || known_[result]) return;
    ValueId root = kNoValue;
    for (ValueId input : node.inputs) {
      if (IsKnownScalar(input)) continue;
      const bool same = root_[input] != kNoValue && (root == kNoValue || root == root_[input]);
      if (!same || TypeOf(input).shape != TypeOf(result).shape) return;
      root = root_[input];
    }
    if (root != kNoValue) root_[result] = root;
  }

  // Bytes are wanted where something reads them, or what follows from them, that is not computed on
  // the way to other bytes of the same root.
  void FindWanted(const Node& node) {
    for (ValueId output : node.outputs) {
      if (output == kNoValue || wanted_[output]) continue;
      wanted_[output] = std::ranges::any_of(readers_[output], [&](NodeId reader) {
        const ValueId next = before_.nodes[reader].outputs[0];
        if (next == kNoValue || root_[next] != root_[output]) return true;
        return !IsByte(TypeOf(next).dtype) && wanted_[next];
      });
    }
  }

  // The nodes between the root and a value.
  std::set<NodeId> ConeOf(ValueId value) const {
    std::set<NodeId> cone;
    std::vector<ValueId> open = {value};
    while (!open.empty()) {
      const ValueId at = open.back();
      open.pop_back();
      if (root_[at] == kNoValue || at == root_[value]) continue;
      const NodeId producer = before_.values[at].producer;
      if (!cone.insert(producer).second) continue;
      for (ValueId input : before_.nodes[producer].inputs) open.push_back(input);
    }
    return cone;
  }

  bool IsWorthATable(const Node& node) const {
    const ValueId value = node.outputs[0];
    if (node.op != "Cast" || !IsByte(TypeOf(value).dtype) || !wanted_[value]) return false;
    if (root_[value] == kNoValue || root_[value] == value) return false;
    const std::set<NodeId> cone = ConeOf(value);
    return cone.size() > kManyOperators || std::ranges::any_of(cone, [&](NodeId id) {
             static constexpr const char* kCheap[] = {"neg",  "abs",   "not",   "floor",
                                                      "ceil", "round", "trunc", "sign"};
             const Node& inner = before_.nodes[id];
             const std::string fn = MakeCall(before_, inner).String("fn", "");
             if (inner.op == "Unary") return std::ranges::find(kCheap, fn) == std::end(kCheap);
             return inner.op == "Activation" || fn == "pow";
           });
  }

  // Computes the cone of all bytes there are; FoldConstants makes a constant of that.
  absl::Status Tabulate(const Node& node) {
    std::vector<double> bytes(256);
    for (size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<double>(k);
    const auto count = static_cast<int64_t>(bytes.size());
    const ValueId value = node.outputs[0];
    std::map<ValueId, ValueId> of_table = {
        {root_[value], rewriter_.AddConstant(MakeConstant(ir::DType::kU8, {count}, bytes))}};
    for (NodeId id : ConeOf(value)) {
      Node own = before_.nodes[id];
      const ValueId result = own.outputs[0];
      own.outputs.clear();
      for (ValueId& input : own.inputs) {
        const auto known = of_table.find(input);
        input = known != of_table.end() ? known->second : rewriter_.Mapped(input);
      }
      HONE_ASSIGN_OR_RETURN(of_table[result], rewriter_.Add(std::move(own)));
    }
    ValueId table = of_table[value];
    HONE_ASSIGN_OR_RETURN(table, rewriter_.Add("Reshape", node.origin, {table},
                                               {{"shape", std::vector<int64_t>{count}}}));
    HONE_ASSIGN_OR_RETURN(
        const ValueId found,
        rewriter_.Add("Lookup", node.origin, {rewriter_.Mapped(root_[value]), table}));
    rewriter_.Replace(value, found);
    return absl::OkStatus();
  }

  const Graph before_;
  const std::vector<std::vector<NodeId>> readers_;
  std::vector<ValueId> root_;  ///< by value; kNoValue: of no one byte
  std::vector<bool> known_, wanted_;
  Rewriter rewriter_;
};

}  // namespace

absl::StatusOr<int> TabulateBytes(Graph& graph, const PassContext&) {
  return ByteTabulator(graph).Run();
}

}  // namespace hone::graph
