#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace hone::graph {

/// Rebuilds a graph's node list in one walk. A pass takes the old nodes, and for each keeps it, drops it or puts others in
/// its place; values replaced are redirected in everything that follows. Outputs of the graph keep their value, and with it
/// their name. Not thread-safe.
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
  absl::StatusOr<ValueId> Add(std::string op, std::string origin, std::vector<ValueId> inputs, Attributes attributes = {});
  ValueId AddConstant(ConstantPtr data) { return graph_.AddConstant(std::move(data)); }
  /// From now on `value` is `by` (already mapped, same type).
  void Replace(ValueId value, ValueId by);

  /// Installs the new list. To be called once, at the end.
  absl::Status Finish();

  Graph& graph() { return graph_; }
  const Value& value(ValueId id) const { return graph_.values[id]; }

 private:
  Graph& graph_;
  std::vector<Node> old_nodes_;
  std::vector<ValueId> replaced_;  ///< by old value: what it is now, or itself
};

}  // namespace hone::graph
