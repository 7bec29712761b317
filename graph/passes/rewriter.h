#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"

namespace hone::graph {

/// Rebuilds a graph's node list in one walk. A pass takes the old nodes, and for each keeps it,
/// drops it or puts others in its place; values replaced are redirected in everything that follows.
/// Outputs of the graph keep their value, and with it their name. Not thread-safe.
class Rewriter {
 public:
  explicit Rewriter(Graph& graph);

  /// The nodes to walk over, in topological order. Their inputs are as before; see Mapped.
  const std::vector<Node>& old_nodes() const { return old_nodes_; }
  /// What an old value is now.
  ValueId Mapped(ValueId value) const;
  /// The node with its inputs mapped.
  Node Mapped(const Node& node) const;

  /// Keeps the node (its inputs are mapped here), and its output values.
  void Keep(Node node);
  /// Appends a new node; InvalidArgument when the operator refuses it. Gives its first output.
  absl::StatusOr<ValueId> Add(Node node);
  absl::StatusOr<ValueId> Add(std::string op, std::string origin, std::vector<ValueId> inputs,
                              Attributes attributes = {});
  ValueId AddConstant(ConstantPtr data) { return graph_.AddConstant(std::move(data)); }
  /// False when `value` is an output of the graph and `by` cannot take its name: an input, a
  /// constant, another output.
  bool MayReplace(ValueId value, ValueId by) const;
  /// From now on `value` is `by` (already mapped, same type). Where MayReplace is false a reshape
  /// makes the output.
  void Replace(ValueId value, ValueId by);

  /// Installs the new list. To be called once, at the end.
  absl::Status Finish();

  Graph& graph() { return graph_; }
  const TensorType& TypeOf(ValueId id) const { return graph_.values[id].type; }
  /// The new node that makes `id`, when it is an `op` (and its attribute `fn` is this): patterns
  /// are matched with it. Valid until the next node is added.
  const Node* ProducerOf(ValueId id, std::string_view op, std::string_view fn = {}) const;
  /// The value of a constant whose elements are all the same; empty for anything else and for more
  /// than 2^20 elements.
  std::optional<double> Uniform(ValueId id) const;

 private:
  Graph& graph_;
  std::vector<Node> old_nodes_;
  std::vector<ValueId> replaced_;  ///< by old value: what it is now, or itself
};

}  // namespace hone::graph
