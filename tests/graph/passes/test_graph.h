#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/random.h"
#include "graph/graph.h"
#include "graph/grouping.h"
#include "graph/passes/passes.h"

// Small graphs built by hand or at random, and two ways to run them: node by node, and group by
// group.
namespace hone::graph::testing {

/// Builds a graph; everything that fails ends the test program with the message.
class TestGraph {
 public:
  explicit TestGraph(uint64_t seed = 1);

  ValueId Input(std::vector<int64_t> shape, ir::DType dtype = ir::DType::kF32);
  /// Seeded values in [-1, 1), or in [0.5, 1.5) for Positive.
  ValueId Constant(std::vector<int64_t> shape);
  ValueId Positive(std::vector<int64_t> shape);
  ValueId Scalar(double value);
  ValueId Op(const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {});
  std::vector<ValueId> Ops(const std::string& op, std::vector<ValueId> inputs, int num_outputs,
                           Attributes attributes);

  ValueId Unary(const std::string& fn, ValueId x) { return Op("Unary", {x}, {{"fn", fn}}); }
  ValueId Binary(const std::string& fn, ValueId a, ValueId b) {
    return Op("Binary", {a, b}, {{"fn", fn}});
  }
  ValueId Relu(ValueId x) { return Binary("max", x, Scalar(0)); }
  ValueId Reshape(ValueId x, std::vector<int64_t> shape) {
    return Op("Reshape", {x}, {{"shape", std::move(shape)}});
  }
  ValueId Transpose(ValueId x, std::vector<int64_t> perm) {
    return Op("Transpose", {x}, {{"perm", std::move(perm)}});
  }
  /// k×k, out_channels, stride and pad alike in both directions, seeded weights and bias.
  ValueId Conv(ValueId x, int64_t out_channels, int64_t kernel, int64_t stride = 1, int64_t pad = 0,
               int64_t group = 1);
  ValueId BatchNorm(ValueId x);
  /// x·W + bias with constants.
  ValueId Linear(ValueId x, int64_t columns);
  ValueId LayerNorm(ValueId x);

  void Output(ValueId id, const std::string& name = "");
  const std::vector<int64_t>& Shape(ValueId id) const { return graph.values[id].type.shape; }

  Graph graph;

 private:
  ConstantPtr Seeded(std::vector<int64_t> shape, double low, double high);

  Random random_;
};

/// By name of graph input; deterministic in `seed`.
using Tensors = std::map<std::string, ConstantPtr>;
Tensors RandomInputs(const Graph& graph, uint64_t seed);

/// The outputs in the graph's order.
std::vector<ConstantPtr> RunNodes(const Graph& graph, const Tensors& inputs);
/// The same by the groups' Workloads, one after the other.
std::vector<ConstantPtr> RunGroups(const Graph& graph, const std::vector<Group>& groups,
                                   const Tensors& inputs);

/// Types equal, and |a - b| ≤ 1e-5 · max|a| + 1e-4 · |a| everywhere (integers equal); NaN equals
/// NaN.
void ExpectSame(const std::vector<ConstantPtr>& expected, const std::vector<ConstantPtr>& actual);

/// The text with values numbered in order of appearance: the order in which a test made them does
/// not show.
std::string Renumbered(const std::string& text);

/// Long lines broken at spaces, the rest indented by four.
std::string Wrapped(const std::string& text);

/// Runs one pass: the graph's text before and after is this (leading newline aside), the pass
/// reports changes, runs to no change the second time, and keeps the results on random inputs.
using PassFunction = absl::StatusOr<int> (*)(Graph&, const PassContext&);
void ExpectRewrite(const Graph& graph, PassFunction pass, std::string_view before,
                   std::string_view after);

/// The Target tests group for: nominal L2 of 1 MiB.
ir::Target TestTarget();

/// A random graph of about `nodes` nodes from convolutions to reshapes; the same for the same seed.
Graph RandomGraph(uint64_t seed, int nodes);

}  // namespace hone::graph::testing
