// An index of an input that is out of range ends the run with an error that names the input; known
// ones are refused when the graph is made.
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/status.h"
#include "compiler/compile_model.h"
#include "graph/op.h"
#include "ir/target.h"
#include "tests/compiler/graph_oracle.h"
#include "tests/test_paths.h"

namespace hone::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using ::testing::HasSubstr;

ValueId AddInput(Graph& graph, const std::string& name, graph::TensorType type) {
  graph.inputs.push_back(graph.AddValue({.name = name, .type = std::move(type)}));
  return graph.inputs.back();
}

ValueId AddNode(Graph& graph, graph::Node node) {
  node.origin = "the " + node.op;
  const auto outputs = graph::AppendNode(graph, std::move(node));
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? outputs->front() : graph::kNoValue;
}

/// tanh(table[ids + offset]) of a table of 10 rows, or a look-up by `op` without the offset.
Graph LookUp(const std::string& op, int64_t offset) {
  Graph graph;
  const ValueId table = AddInput(graph, "table", {ir::DType::kF32, {10, 6}});
  ValueId ids = AddInput(
      graph, "ids",
      {ir::DType::kI64, op == "Gather" ? std::vector<int64_t>{5} : std::vector<int64_t>{5, 1}});
  if (offset != 0) {
    const ValueId more = graph.AddConstant(graph::MakeInt64s({}, {offset}));
    ids = AddNode(
        graph, {.op = "Binary", .attributes = {{"fn", std::string("add")}}, .inputs = {ids, more}});
  }
  graph::Node node{.op = op, .inputs = {table, ids}};
  if (op == "GatherND")
    node.attributes = {{"batch_dims", int64_t{0}}};
  else
    node.attributes = {{"axis", int64_t{0}}};
  const ValueId picked = AddNode(graph, std::move(node));
  const ValueId y = AddNode(
      graph, {.op = "Unary", .attributes = {{"fn", std::string("tanh")}}, .inputs = {picked}});
  graph.values[y].name = "y";
  graph.outputs = {y};
  return graph;
}

/// The outputs with these values of the second input.
absl::StatusOr<std::vector<graph::ConstantPtr>> OutputsWith(const Graph& graph,
                                                            const std::vector<int64_t>& ids,
                                                            int* kernels = nullptr) {
  const SystemMonotonicClock clock;
  measure::BuilderOptions options;
  options.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder";
  measure::BuilderClient builder(options, clock);
  DefaultTraceSource traces;
  HONE_ASSIGN_OR_RETURN(const CompiledModel model,
                        CompileModel(graph, {.target = "cpu:avx2,threads=2"}, builder, traces));
  const Result<std::string> bytes = runtime::SerializePackage(model.package);
  HONE_RETURN_IF_ERROR(ToAbsl(bytes.status()));
  std::vector<graph::ConstantPtr> inputs = RandomInputs(graph, 1);
  inputs[1] = graph::MakeInt64s(inputs[1]->type.shape, ids);
  if (kernels != nullptr) *kernels = static_cast<int>(model.report.kernels.size());
  return RunPackage(*bytes, inputs);
}

absl::Status RunWith(const Graph& graph, const std::vector<int64_t>& ids) {
  return OutputsWith(graph, ids).status();
}

/// Makes indices of ids, i64[5,2].
using MakeIndex = std::function<ValueId(Graph& graph, ValueId ids)>;

ValueId Fn(Graph& graph, const std::string& op, const std::string& fn, std::vector<ValueId> inputs,
           graph::Attributes more = {}) {
  more["fn"] = fn;
  return AddNode(graph, {.op = op, .attributes = std::move(more), .inputs = std::move(inputs)});
}

ValueId Whole(Graph& graph, int64_t value) {
  return graph.AddConstant(graph::MakeInt64s({}, {value}));
}

ValueId CastTo(Graph& graph, const std::string& dtype, ValueId x) {
  return AddNode(graph, {.op = "Cast", .attributes = {{"to", dtype}}, .inputs = {x}});
}

/// tanh(table[index]) of a table of 10, whose look-up has the axes of its index.
Graph LookUpComputed(const MakeIndex& make_index) {
  Graph graph;
  const ValueId table = AddInput(graph, "table", {ir::DType::kF32, {10}});
  const ValueId index = make_index(graph, AddInput(graph, "ids", {ir::DType::kI64, {5, 2}}));
  const ValueId picked = AddNode(
      graph, {.op = "Gather", .attributes = {{"axis", int64_t{0}}}, .inputs = {table, index}});
  const ValueId y = Fn(graph, "Unary", "tanh", {picked});
  graph.values[y].name = "y";
  graph.outputs = {y};
  return graph;
}

const graph::Attributes kRows = {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}};

ValueId SumOfRows(Graph& graph, ValueId ids) { return Fn(graph, "Reduce", "sum", {ids}, kRows); }

struct Computed {
  const char* name;
  MakeIndex make_index;
  std::vector<int64_t> good;  ///< with a 20 at [2, 1] an index is out of range
};

const Computed kComputed[] = {
    {"sum", SumOfRows, {3, 4, 0, 0, 2, 7, -1, -9, 5, -6}},
    {"maximum",
     [](Graph& g, ValueId ids) { return Fn(g, "Reduce", "max", {ids}, kRows); },
     {3, 4, 0, 0, 2, 7, -1, -9, 5, -6}},
    {"argmax",
     [](Graph& g, ValueId ids) {
       const ValueId at =
           Fn(g, "ArgReduce", "max", {ids}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
       return Fn(g, "Binary", "mul", {at, Whole(g, 10)});
     },
     {3, 2, 0, 0, 2, 1, -1, -9, 5, -6}},
    {"a long way",
     [](Graph& g, ValueId ids) {
       ValueId index = ids;
       for (int i = 0; i < 12; ++i)
         index = Fn(g, "Binary", i % 2 == 0 ? "add" : "max", {index, ids});
       return index;
     },
     {0, 1, 0, 0, 1, 0, 0, 0, 1, 0}},
    {"a product",
     [](Graph& g, ValueId ids) {
       const ValueId ones =
           g.AddConstant(graph::MakeConstant(ir::DType::kF32, {2, 3}, {1, 0, 1, 0, 1, 1}));
       const ValueId x = CastTo(g, "f32", ids);
       return CastTo(g, "i64", AddNode(g, {.op = "MatMul", .inputs = {x, ones}}));
     },
     {3, 4, 0, 0, 2, 7, -1, -9, 5, -6}},
    {"a reduction and arithmetic",
     [](Graph& g, ValueId ids) {
       const ValueId sum = SumOfRows(g, ids);
       return Fn(g, "Binary", "max", {Fn(g, "Unary", "abs", {sum}), Whole(g, 1)});
     },
     {3, 4, 0, 0, 2, 7, -1, -8, 5, -6}},
    {"what is never negative",
     [](Graph& g, ValueId ids) {
       return Fn(g, "Binary", "max", {Fn(g, "Unary", "abs", {ids}), Whole(g, 2)});
     },
     {3, 4, 0, 0, 2, 7, -1, -9, 5, -6}},
    {"a truth",
     [](Graph& g, ValueId ids) {
       const ValueId more = Fn(g, "Binary", "lt", {Whole(g, 9), SumOfRows(g, ids)});
       return Fn(g, "Binary", "mul", {CastTo(g, "i64", more), Whole(g, 10)});
     },
     {3, 4, 0, 0, 2, 7, -1, -9, 5, -6}},
    {"an index beside other readers of it",
     [](Graph& g, ValueId ids) {
       const ValueId sum = SumOfRows(g, ids);
       const ValueId first = AddNode(
           g, {.op = "Gather", .attributes = {{"axis", int64_t{0}}}, .inputs = {g.inputs[0], sum}});
       return Fn(g, "Binary", "add", {CastTo(g, "i64", Fn(g, "Unary", "tanh", {first})), sum});
     },
     {3, 4, 0, 0, 2, 7, -1, -8, 5, -6}},
};

class BadIndexTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ir::Target target;
    std::string why;
    ASSERT_TRUE(ir::ParseTarget("cpu:avx2,threads=2", &target, &why));
    if (!ir::HostCanRun(target, &why)) GTEST_SKIP() << why;
  }
};

TEST_F(BadIndexTest, EndsTheRunAndNamesTheInput) {
  for (const char* const op : {"Gather", "GatherElements", "GatherND"}) {
    SCOPED_TRACE(op);
    const Graph graph = LookUp(op, 0);
    const absl::Status good = RunWith(graph, {0, -10, 9, -1, 4});
    EXPECT_TRUE(good.ok()) << good;
    for (const int64_t bad : {int64_t{10}, int64_t{-11}, int64_t{1} << 40}) {
      const absl::Status status = RunWith(graph, {0, 1, bad, 3, 4});
      EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
      EXPECT_THAT(StatusMessage(status),
                  HasSubstr("node 'the " + std::string(op) +
                            "': an index in the model's input 'ids' is out of "
                            "range; give indices within the tensor"));
    }
  }
}

TEST_F(BadIndexTest, IsFoundBehindArithmetic) {
  const Graph graph = LookUp("Gather", 3);
  const absl::Status good = RunWith(graph, {0, -13, 6, -3, -4});
  EXPECT_TRUE(good.ok()) << good;
  const absl::Status status = RunWith(graph, {0, 1, 7, 3, 4});
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(StatusMessage(status), HasSubstr("node 'the Gather': an index in the model's input"));
}

TEST_F(BadIndexTest, IsFoundHoweverItIsComputed) {
  for (const Computed& computed : kComputed) {
    SCOPED_TRACE(computed.name);
    const Graph graph = LookUpComputed(computed.make_index);
    const auto got = OutputsWith(graph, computed.good);
    ASSERT_TRUE(got.ok()) << got.status();
    std::vector<graph::ConstantPtr> inputs = RandomInputs(graph, 1);
    inputs[1] = graph::MakeInt64s({5, 2}, computed.good);
    const auto want = RunNodeByNode(graph, inputs);
    ASSERT_TRUE(want.ok()) << want.status();
    EXPECT_THAT((*got)[0]->AsDoubles(),
                ::testing::Pointwise(::testing::DoubleNear(1e-6), (*want)[0]->AsDoubles()));
    std::vector<int64_t> bad = computed.good;
    bad[5] = 20;
    EXPECT_EQ(RunWith(graph, bad).code(), absl::StatusCode::kOutOfRange);
  }
}

TEST_F(BadIndexTest, WhatIsCheckedAnywayStaysInOneKernel) {
  int kernels = 0;
  const Graph graph = LookUpComputed([](Graph& g, ValueId ids) {
    return Fn(g, "Binary", "add", {Fn(g, "Binary", "mul", {ids, Whole(g, 2)}), Whole(g, 1)});
  });
  const auto outputs = OutputsWith(graph, {0, 1, 2, 3, 4, -5, 0, 1, 2, 3}, &kernels);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(kernels, 1);
}

TEST_F(BadIndexTest, IsRefusedWhenItIsKnown) {
  Graph graph;
  const ValueId table = AddInput(graph, "table", {ir::DType::kF32, {10, 6}});
  const ValueId ids = graph.AddConstant(graph::MakeInt64s({2}, {9, 10}));
  const auto made = graph::AppendNode(graph, {.op = "Gather",
                                              .origin = "pick",
                                              .attributes = {{"axis", int64_t{0}}},
                                              .inputs = {table, ids}});
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(StatusMessage(made.status()), HasSubstr("index 10"));
}

}  // namespace
}  // namespace hone::compiler
