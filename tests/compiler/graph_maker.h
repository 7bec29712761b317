#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "graph/graph.h"
#include "graph/op.h"

namespace hone::compiler {

/// Builds small f32 graphs for tests; a node that does not fit fails the test.
class GraphMaker {
 public:
  explicit GraphMaker(uint64_t seed) : random_(seed) {}

  graph::ValueId Input(const std::string& name, std::vector<int64_t> shape) {
    graph::Value value;
    value.name = name;
    value.type = {ir::DType::kF32, std::move(shape)};
    graph_.inputs.push_back(graph_.AddValue(std::move(value)));
    return graph_.inputs.back();
  }

  graph::ValueId Node(const std::string& op, graph::Attributes attributes,
                      std::vector<graph::ValueId> inputs) {
    graph::Node node;
    node.op = op;
    node.origin = op;
    node.attributes = std::move(attributes);
    node.inputs = std::move(inputs);
    absl::StatusOr<std::vector<graph::ValueId>> outputs =
        graph::AppendNode(graph_, std::move(node));
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? outputs->front() : graph::kNoValue;
  }

  graph::ValueId Unary(const std::string& fn, graph::ValueId x) {
    return Node("Unary", {{"fn", fn}}, {x});
  }

  graph::ValueId Concat(int64_t axis, std::vector<graph::ValueId> parts) {
    return Node("Concat", {{"axis", axis}}, std::move(parts));
  }

  /// A constant of numbers in [-0.5, 0.5).
  graph::ValueId Weights(std::vector<int64_t> shape) {
    graph::TensorType type{ir::DType::kF32, shape};
    std::vector<double> values;
    for (int64_t i = 0; i < type.NumElements(); ++i) values.push_back(random_.Uniform() - 0.5);
    return graph_.AddConstant(graph::MakeConstant(ir::DType::kF32, std::move(shape), values));
  }

  graph::ValueId Constant(graph::ConstantPtr data) { return graph_.AddConstant(std::move(data)); }

  graph::ValueId Scalar(double value) {
    return graph_.AddConstant(graph::MakeConstant(ir::DType::kF32, {}, {value}));
  }

  /// The graph with these outputs, each under a name of its own.
  graph::Graph Finish(std::vector<graph::ValueId> outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::string& name = graph_.values[outputs[i]].name;
      if (outputs[i] != graph_.inputs.front()) name = "y" + std::to_string(i);
    }
    graph_.outputs = std::move(outputs);
    return std::move(graph_);
  }

 private:
  graph::Graph graph_;
  Random random_;
};

}  // namespace hone::compiler
