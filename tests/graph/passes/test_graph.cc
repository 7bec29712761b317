#include "tests/graph/passes/test_graph.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "gtest/gtest.h"

#include "base/core/check.h"
#include "base/status.h"
#include "graph/group_workload.h"
#include "graph/interpreter_evaluator.h"
#include "graph/op.h"
#include "ir/text.h"

namespace hone::graph::testing {
namespace {

std::vector<double> Draw(Random& random, int64_t count, double low, double high) {
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = low + (high - low) * random.Uniform();
  return values;
}

int64_t Elements(const std::vector<int64_t>& shape) {
  return TensorType{ir::DType::kF32, shape}.NumElements();
}

using Values = std::map<ValueId, ConstantPtr>;

Values Start(const Graph& graph, const Tensors& inputs) {
  Values values;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].constant != nullptr)
      values[static_cast<ValueId>(v)] = graph.values[v].constant;
  }
  for (ValueId input : graph.inputs) values[input] = inputs.at(graph.values[input].name);
  return values;
}

void RunWorkloadOn(const GroupWorkload& group, Values& values) {
  std::vector<ConstantPtr> tensors;
  for (ValueId id : group.inputs) tensors.push_back(values.at(id));
  for (ValueId id : group.constants) tensors.push_back(values.at(id));
  auto results = InterpreterEvaluator().Evaluate(group.workload, tensors);
  HONE_CHECK(results.ok()) << StatusMessage(results.status()) << "\n" << ir::ToText(group.workload);
  for (size_t k = 0; k < results->size(); ++k) values[group.outputs[k]] = (*results)[k];
}

std::vector<ConstantPtr> Outputs(const Graph& graph, const Values& values) {
  std::vector<ConstantPtr> outputs;
  for (ValueId id : graph.outputs) {
    HONE_CHECK(values.contains(id)) << "nobody made output " << graph.values[id].name;
    outputs.push_back(values.at(id));
  }
  return outputs;
}

// The operand's bytes from the alias's first element on, under its type.
ConstantPtr AliasOf(const ConstantPtr& data, const TensorType& type, int64_t offset) {
  const auto* first = data->bytes.data() + offset * ir::SizeOf(type.dtype);
  return MakeConstant(type, std::vector<std::byte>(first, first + type.Bytes()));
}

}  // namespace

TestGraph::TestGraph(uint64_t seed) : random_(seed) { graph.name = "test"; }

ConstantPtr TestGraph::Seeded(std::vector<int64_t> shape, double low, double high) {
  const std::vector<double> values = Draw(random_, Elements(shape), low, high);
  return MakeConstant(ir::DType::kF32, std::move(shape), values);
}

ValueId TestGraph::Input(std::vector<int64_t> shape, ir::DType dtype) {
  Value value;
  value.name = "input" + std::to_string(graph.inputs.size());
  value.type = {dtype, std::move(shape)};
  graph.inputs.push_back(graph.AddValue(std::move(value)));
  return graph.inputs.back();
}

ValueId TestGraph::Constant(std::vector<int64_t> shape) {
  return graph.AddConstant(Seeded(std::move(shape), -1, 1));
}

ValueId TestGraph::Positive(std::vector<int64_t> shape) {
  return graph.AddConstant(Seeded(std::move(shape), 0.5, 1.5));
}

ValueId TestGraph::Scalar(double value) {
  return graph.AddConstant(MakeConstant(ir::DType::kF32, {}, {value}));
}

std::vector<ValueId> TestGraph::Ops(const std::string& op, std::vector<ValueId> inputs,
                                    int num_outputs, Attributes attributes) {
  Node node;
  node.op = op;
  node.origin = op + std::to_string(graph.nodes.size());
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  auto outputs = AppendNode(graph, std::move(node), num_outputs);
  HONE_CHECK(outputs.ok()) << StatusMessage(outputs.status());
  return *outputs;
}

ValueId TestGraph::Op(const std::string& op, std::vector<ValueId> inputs, Attributes attributes) {
  return Ops(op, std::move(inputs), 1, std::move(attributes))[0];
}

ValueId TestGraph::Conv(ValueId x, int64_t out_channels, int64_t kernel, int64_t stride,
                        int64_t pad, int64_t group) {
  const int64_t in_channels = Shape(x)[1] / group;
  const ValueId w = Constant({out_channels, in_channels, kernel, kernel});
  const ValueId bias = Constant({out_channels});
  return Op("Conv", {x, w, bias},
            {{"strides", std::vector<int64_t>{stride, stride}},
             {"dilations", std::vector<int64_t>{1, 1}},
             {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
             {"group", group},
             {"layout", std::string("nchw")}});
}

ValueId TestGraph::BatchNorm(ValueId x) {
  const int64_t channels = Shape(x)[1];
  return Op(
      "BatchNorm",
      {x, Positive({channels}), Constant({channels}), Constant({channels}), Positive({channels})},
      {{"epsilon", 1e-5}, {"layout", std::string("nchw")}});
}

ValueId TestGraph::Linear(ValueId x, int64_t columns) {
  const ValueId product = Op("MatMul", {x, Constant({Shape(x).back(), columns})});
  return Binary("add", product, Constant({columns}));
}

ValueId TestGraph::LayerNorm(ValueId x) {
  const int64_t last = static_cast<int64_t>(Shape(x).size()) - 1;
  return Op(
      "Normalise", {x, Positive({Shape(x).back()}), Constant({Shape(x).back()})},
      {{"axes", std::vector<int64_t>{last}}, {"epsilon", 1e-5}, {"kind", std::string("layer")}});
}

void TestGraph::Output(ValueId id, const std::string& name) {
  if (!name.empty()) graph.values[id].name = name;
  graph.outputs.push_back(id);
}

Tensors RandomInputs(const Graph& graph, uint64_t seed) {
  Random random(seed);
  Tensors tensors;
  for (ValueId id : graph.inputs) {
    const Value& value = graph.values[id];
    std::vector<double> values =
        Draw(random, value.type.NumElements(), value.range.low, value.range.high);
    tensors[value.name] = MakeConstant(value.type.dtype, value.type.shape, values);
  }
  return tensors;
}

std::vector<ConstantPtr> RunNodes(const Graph& graph, const Tensors& inputs) {
  Values values = Start(graph, inputs);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    auto group = BuildNodeWorkload(graph, static_cast<NodeId>(n));
    HONE_CHECK(group.ok()) << StatusMessage(group.status());
    RunWorkloadOn(*group, values);
  }
  return Outputs(graph, values);
}

std::vector<ConstantPtr> RunGroups(const Graph& graph, const std::vector<Group>& groups,
                                   const Tensors& inputs) {
  Values values = Start(graph, inputs);
  for (const Group& group : groups) {
    if (group.kind == GroupKind::kAlias) {
      const Node& node = graph.nodes[group.nodes[0]];
      const ValueId output = node.outputs[0];
      values[output] =
          AliasOf(values.at(node.inputs[0]), graph.values[output].type, group.alias_offset);
      continue;
    }
    auto workload = BuildWorkload(graph, group);
    HONE_CHECK(workload.ok()) << StatusMessage(workload.status());
    RunWorkloadOn(*workload, values);
  }
  return Outputs(graph, values);
}

void ExpectSame(const std::vector<ConstantPtr>& expected, const std::vector<ConstantPtr>& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t k = 0; k < expected.size(); ++k) {
    ASSERT_EQ(ToText(expected[k]->type), ToText(actual[k]->type)) << "output " << k;
    const std::vector<double> a = expected[k]->AsDoubles();
    const std::vector<double> b = actual[k]->AsDoubles();
    const bool exact = !ir::IsFloat(expected[k]->type.dtype);
    double largest = 0;
    for (double value : a)
      largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
      const double tolerance = exact ? 0 : 1e-5 * largest + 1e-4 * std::abs(a[i]);
      ASSERT_LE(std::abs(a[i] - b[i]), tolerance)
          << "output " << k << " element " << i << ": " << a[i] << " and " << b[i];
    }
  }
}

std::string Wrapped(const std::string& text) {
  constexpr size_t kColumns = 96;
  std::string result;
  size_t column = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t word = std::min(text.find_first_of(" \n", i + 1), text.size()) - i;
    if (text[i] == ' ' && column + word > kColumns) {
      result += "\n    ";
      column = 4;
      continue;
    }
    result += text[i];
    column = text[i] == '\n' ? 0 : column + 1;
  }
  return result;
}

std::string Renumbered(const std::string& text) {
  std::map<std::string, size_t> numbers;
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '%') {
      result += text[i++];
      continue;
    }
    size_t end = i + 1;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    const size_t number = numbers.emplace(text.substr(i, end - i), numbers.size()).first->second;
    result += "%" + std::to_string(number);
    i = end;
  }
  return result;
}

ir::Target TestTarget() {
  ir::Target target;
  std::string why;
  HONE_CHECK(ir::ParseTarget("cpu:avx2,threads=1", &target, &why)) << why;
  return target;
}

void ExpectRewrite(const Graph& graph, PassFunction pass, std::string_view before,
                   std::string_view after) {
  InterpreterEvaluator evaluator;
  const ir::Target target = TestTarget();
  const PassContext context{evaluator, target};
  EXPECT_EQ("\n" + Wrapped(Renumbered(ToText(graph))), before);
  Graph rewritten = graph;
  const auto changes = pass(rewritten, context);
  ASSERT_TRUE(changes.ok()) << StatusMessage(changes.status());
  EXPECT_GT(*changes, 0);
  EXPECT_EQ("\n" + Wrapped(Renumbered(ToText(rewritten))), after);
  const Tensors inputs = RandomInputs(graph, 7);
  ExpectSame(RunNodes(graph, inputs), RunNodes(rewritten, inputs));
  const auto again = pass(rewritten, context);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, 0) << "a second run changes the graph again:\n" << ToText(rewritten);
}

}  // namespace hone::graph::testing
