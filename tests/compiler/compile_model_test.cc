#include "compiler/compile_model.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/core/random.h"
#include "base/status.h"
#include "graph/op.h"
#include "ir/target.h"
#include "tests/compiler/graph_oracle.h"
#include "tests/test_paths.h"

namespace hone::compiler {
namespace {

using graph::Graph;
using graph::ValueId;

class CompileModelTest : public ::testing::Test {
 protected:
  static measure::BuilderOptions RealBuilder(int processes) {
    measure::BuilderOptions options;
    options.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder";
    options.processes = processes;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    options.address_space_bytes.reset();
#endif
    return options;
  }

  static ValueId Input(Graph& graph, const std::string& name, std::vector<int64_t> shape) {
    graph::Value value;
    value.name = name;
    value.type = {ir::DType::kF32, std::move(shape)};
    graph.inputs.push_back(graph.AddValue(std::move(value)));
    return graph.inputs.back();
  }

  static ValueId Node(Graph& graph, const std::string& op, graph::Attributes attributes,
                      std::vector<ValueId> inputs) {
    graph::Node node;
    node.op = op;
    node.origin = op;
    node.attributes = std::move(attributes);
    node.inputs = std::move(inputs);
    absl::StatusOr<std::vector<ValueId>> outputs = graph::AppendNode(graph, std::move(node));
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs->front();
  }

  static ValueId Weights(Graph& graph, std::vector<int64_t> shape, Random& random) {
    graph::TensorType type{ir::DType::kF32, shape};
    std::vector<double> values;
    for (int64_t i = 0; i < type.NumElements(); ++i) values.push_back(random.Uniform() - 0.5);
    return graph.AddConstant(graph::MakeConstant(ir::DType::kF32, std::move(shape), values));
  }

  // Two dense layers.
  static Graph Perceptron() {
    Graph graph;
    Random random(5);
    const ValueId x = Input(graph, "x", {4, 24});
    const ValueId zero = graph.AddConstant(graph::MakeConstant(ir::DType::kF32, {}, {0.0}));
    ValueId h = Node(graph, "MatMul", {}, {x, Weights(graph, {24, 40}, random)});
    h = Node(graph, "Binary", {{"fn", "add"}}, {h, Weights(graph, {40}, random)});
    h = Node(graph, "Binary", {{"fn", "max"}}, {h, zero});
    ValueId y = Node(graph, "MatMul", {}, {h, Weights(graph, {40, 10}, random)});
    y = Node(graph, "Binary", {{"fn", "add"}}, {y, Weights(graph, {10}, random)});
    graph.values[y].name = "y";
    graph.outputs = {y};
    return graph;
  }

  CompiledModel Compile(const Graph& graph, int processes = 1) {
    measure::BuilderClient builder(RealBuilder(processes), clock_);
    DefaultTraceSource traces;
    absl::StatusOr<CompiledModel> model =
        CompileModel(graph, {.target = "cpu:avx2,threads=2"}, builder, traces);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : CompiledModel();
  }

  static std::string Bytes(const CompiledModel& model) {
    Result<std::string> bytes = runtime::SerializePackage(model.package);
    EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
    return bytes.ok() ? *bytes : "";
  }

  // Compiled code and the node-by-node interpreter give the same, on seeded inputs.
  void ExpectComputesTheSame(const Graph& graph) {
    ir::Target target;
    std::string why;
    ASSERT_TRUE(ir::ParseTarget("cpu:avx2,threads=2", &target, &why));
    if (!ir::HostCanRun(target, &why)) GTEST_SKIP() << why;
    const std::string bytes = Bytes(Compile(graph));
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed);
      const std::vector<graph::ConstantPtr> inputs = RandomInputs(graph, seed);
      const auto expected = RunNodeByNode(graph, inputs);
      ASSERT_TRUE(expected.ok()) << expected.status();
      const auto actual = RunPackage(bytes, inputs);
      ASSERT_TRUE(actual.ok()) << actual.status();
      ASSERT_EQ(actual->size(), expected->size());
      for (size_t i = 0; i < expected->size(); ++i) {
        EXPECT_EQ((*actual)[i]->type, (*expected)[i]->type);
        const std::vector<double> want = (*expected)[i]->AsDoubles();
        const std::vector<double> got = (*actual)[i]->AsDoubles();
        for (size_t e = 0; e < want.size(); ++e) {
          ASSERT_NEAR(got[e], want[e], 1e-5 * (1 + std::abs(want[e])))
              << "output " << i << " at " << e;
        }
      }
    }
  }

  SystemMonotonicClock clock_;
};

TEST_F(CompileModelTest, ASmallNetworkComputesWhatItsNodesSay) {
  ExpectComputesTheSame(Perceptron());
}

TEST_F(CompileModelTest, ThePackageSaysWhatItIs) {
  const CompiledModel model = Compile(Perceptron());
  const std::string bytes = Bytes(model);
  const auto parsed = runtime::ParsePackage(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(parsed->info.target, "cpu:avx2,threads=2");
  EXPECT_EQ(parsed->plan.inputs.at(0).name, "x");
  EXPECT_EQ(parsed->plan.outputs.at(0).name, "y");
  ASSERT_EQ(parsed->info.kernels.size(), parsed->plan.kernels.size());
  for (const runtime::PackageKernel& kernel : parsed->info.kernels)
    EXPECT_EQ(kernel.rung, "default");
  EXPECT_EQ(model.report.kernels.size(), parsed->plan.kernels.size());
  EXPECT_LE(model.report.lower_bound_bytes, model.report.arena_bytes);
  EXPECT_LE(model.report.arena_bytes, model.report.sum_bytes);
}

TEST_F(CompileModelTest, TheSameModelGivesTheSameBytes) {
  const std::string first = Bytes(Compile(Perceptron(), 1));
  EXPECT_EQ(Bytes(Compile(Perceptron(), 2)), first);
}

TEST_F(CompileModelTest, EqualLayersShareOneKernel) {
  Graph graph;
  Random random(6);
  ValueId h = Input(graph, "x", {4, 32});
  for (int layer = 0; layer < 3; ++layer) {
    h = Node(graph, "MatMul", {}, {h, Weights(graph, {32, 32}, random)});
    h = Node(graph, "Unary", {{"fn", "tanh"}}, {h});
  }
  graph.outputs = {h};
  const CompiledModel model = Compile(graph);
  ASSERT_EQ(model.report.kernels.size(), 1u);
  EXPECT_EQ(model.report.kernels[0].count, 3);
  EXPECT_EQ(model.package.plan.steps.size(), 3u);
  ExpectComputesTheSame(graph);
}

TEST_F(CompileModelTest, OutputsMayBeInputsConstantsAndViewsOfEachOther) {
  Graph graph;
  Random random(7);
  const ValueId x = Input(graph, "x", {4, 8});
  const ValueId e = Node(graph, "Unary", {{"fn", "exp"}}, {x});
  const ValueId view = Node(graph, "Reshape", {{"shape", std::vector<int64_t>{2, 16}}}, {e});
  const ValueId sum =
      Node(graph, "Reduce",
           {{"fn", "sum"}, {"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}}, {view});
  const ValueId part = Node(graph, "Slice",
                            {{"starts", std::vector<int64_t>{1, 0}},
                             {"steps", std::vector<int64_t>{1, 1}},
                             {"sizes", std::vector<int64_t>{2, 8}}},
                            {e});
  graph.outputs = {e, x, Weights(graph, {3}, random), view, sum, part};
  for (const ValueId v : graph.outputs) {
    if (graph.values[v].name.empty()) graph.values[v].name = "value" + std::to_string(v);
  }
  ExpectComputesTheSame(graph);
}

TEST_F(CompileModelTest, AnUnknownTargetIsNamed) {
  measure::BuilderClient builder(RealBuilder(1), clock_);
  DefaultTraceSource traces;
  const auto model = CompileModel(Perceptron(), {.target = "cpu:mmx"}, builder, traces);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(StatusMessage(model.status()), ::testing::HasSubstr("mmx"));
}

TEST_F(CompileModelTest, ATraceThatDoesNotFitNamesItsKernel) {
  class BadTraces final : public TraceSource {
   public:
    absl::StatusOr<FoundTrace> Find(const ir::Workload&, const std::string&,
                                    const ir::Target&) override {
      return FoundTrace{.trace = "parallel(s9.i0)", .rung = "exact"};
    }
  };
  measure::BuilderClient builder(RealBuilder(1), clock_);
  BadTraces traces;
  const auto model = CompileModel(Perceptron(), {.target = "cpu:avx2"}, builder, traces);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(StatusMessage(model.status()), ::testing::HasSubstr("exact schedule"));
  EXPECT_THAT(StatusMessage(model.status()), ::testing::HasSubstr("s9"));
}

}  // namespace
}  // namespace hone::compiler
