// An index of an input that is out of range ends the run with an error that names the input; known
// ones are refused when the graph is made.
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

absl::Status RunWith(const Graph& graph, const std::vector<int64_t>& ids) {
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
  return RunPackage(*bytes, inputs).status();
}

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
