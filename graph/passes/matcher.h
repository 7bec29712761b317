#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace hone::graph {

/// Σ coefficient · x^i · f^j, by (i, j); no zero coefficients.
using Polynomial = std::map<std::pair<int, int>, double>;

/// Whether each coefficient is the wanted one, to the digits that exporters write in `dtype` (five
/// for f32).
bool IsNearly(const Polynomial& polynomial, const Polynomial& wanted, ir::DType dtype);
bool IsNearly(double value, double wanted, ir::DType dtype);

/// Questions that the passes which recognise formulas ask of a graph that they have not yet
/// changed. Holds a reference to it. Thread-safe to read.
class Matcher {
 public:
  explicit Matcher(const Graph& graph);

  /// The node that makes `id`, when it is an `op` (and its attribute `fn` is this), or null.
  const Node* ProducerOf(ValueId id, std::string_view op, std::string_view fn = {}) const;
  /// The value of a constant of at most 4096 elements that are all the same.
  std::optional<double> Uniform(ValueId id) const;
  /// The one node that reads `id`, once; null when others do or `id` is an output of the graph.
  const Node* OnlyReader(ValueId id) const;
  NodeId IdOf(const Node& node) const { return static_cast<NodeId>(&node - graph_.nodes.data()); }

  /// `value` written as sums, products, differences, whole powers and quotients of `x`, `f`
  /// (kNoValue: none) and constants; nothing where anything else occurs or the degree passes 4.
  std::optional<Polynomial> ReadAs(ValueId value, ValueId x, ValueId f = kNoValue) const;
  /// `value` and what it is made of by the same operations, outermost first: what a polynomial may
  /// be a polynomial of. Constants are left out.
  std::vector<ValueId> Bases(ValueId value) const;

 private:
  std::optional<Polynomial> ReadAs(ValueId value, ValueId x, ValueId f, int depth) const;
  std::optional<Polynomial> ReadBinary(const Node& node, ValueId x, ValueId f, int depth) const;

  const Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> is_output_;
};

}  // namespace hone::graph
