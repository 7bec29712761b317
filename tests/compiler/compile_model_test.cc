#include "compiler/compile_model.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/status.h"
#include "ir/target.h"
#include "tests/compiler/graph_maker.h"
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
    return options;
  }

  // Two dense layers.
  static Graph Perceptron() {
    GraphMaker maker(5);
    const ValueId x = maker.Input("x", {4, 24});
    ValueId h = maker.Node("MatMul", {}, {x, maker.Weights({24, 40})});
    h = maker.Node("Binary", {{"fn", "add"}}, {h, maker.Weights({40})});
    h = maker.Node("Binary", {{"fn", "max"}}, {h, maker.Scalar(0)});
    ValueId y = maker.Node("MatMul", {}, {h, maker.Weights({40, 10})});
    y = maker.Node("Binary", {{"fn", "add"}}, {y, maker.Weights({10})});
    return maker.Finish({y});
  }

  absl::StatusOr<CompiledModel> TryCompile(const Graph& graph, BatchRun batch, int processes = 1) {
    measure::BuilderClient builder(RealBuilder(processes), clock_);
    DefaultTraceSource traces;
    return CompileModel(graph, {.target = "cpu:avx2,threads=2", .batch = batch}, builder, traces);
  }

  CompiledModel Compile(const Graph& graph, int processes = 1, BatchRun batch = BatchRun::kAuto) {
    absl::StatusOr<CompiledModel> model = TryCompile(graph, batch, processes);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : CompiledModel();
  }

  static std::string Bytes(const CompiledModel& model) {
    Result<std::string> bytes = runtime::SerializePackage(model.package);
    EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
    return bytes.ok() ? *bytes : "";
  }

  // Compiled code and the node-by-node interpreter give the same, on seeded inputs.
  void ExpectComputesTheSame(const Graph& graph, BatchRun batch = BatchRun::kAuto) {
    ir::Target target;
    std::string why;
    ASSERT_TRUE(ir::ParseTarget("cpu:avx2,threads=2", &target, &why));
    if (!ir::HostCanRun(target, &why)) GTEST_SKIP() << why;
    const std::string bytes = Bytes(Compile(graph, 1, batch));
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

// Both products of an attention in one kernel, as RecogniseAttention marks them: with the default
// schedule every intermediate is a phase of its own.
TEST_F(CompileModelTest, AnAttentionMayBeOneKernel) {
  GraphMaker maker(9);
  const ValueId q = maker.Input("q", {2, 19, 16});
  const ValueId k = maker.Input("k", {2, 33, 16});
  const ValueId v = maker.Input("v", {2, 33, 24});
  const ValueId mask = maker.Input("mask", {1, 1, 33});
  ValueId scores = maker.Node("MatMul", {{"transpose_b", int64_t{1}}}, {q, k});
  scores = maker.Node("Binary", {{"fn", "mul"}}, {scores, maker.Scalar(0.25)});
  scores = maker.Node("Binary", {{"fn", "add"}}, {scores, mask});
  const ValueId p = maker.Node("Softmax", {{"axis", int64_t{2}}}, {scores});
  const ValueId y = maker.Node("MatMul", {{"attention", int64_t{1}}}, {p, v});
  const Graph graph =
      maker.Finish({maker.Node("Transpose", {{"perm", std::vector<int64_t>{1, 0, 2}}}, {y})});
  EXPECT_EQ(Compile(graph).report.kernels.size(), 1U);
  ExpectComputesTheSame(graph);
}

/// Images through a convolution, a pooled branch and a layer whose 10 results are no multiple of 64
/// bytes.
Graph Classifier(int64_t batch, int64_t size) {
  using Ints = std::vector<int64_t>;
  GraphMaker maker(8);
  const ValueId x = maker.Input("x", {batch, 3, size, size});
  ValueId h = maker.Node("Conv",
                         {{"strides", Ints{1, 1}},
                          {"dilations", Ints{1, 1}},
                          {"pads", Ints{1, 1, 1, 1}},
                          {"group", int64_t{1}},
                          {"layout", std::string("nchw")}},
                         {x, maker.Weights({16, 3, 3, 3})});
  h = maker.Node("Binary", {{"fn", "max"}}, {h, maker.Scalar(0)});
  const graph::Attributes mean = {{"fn", "mean"}, {"axes", Ints{2, 3}}, {"keepdims", int64_t{1}}};
  h = maker.Node("Binary", {{"fn", "mul"}}, {h, maker.Node("Reduce", mean, {h})});
  h = maker.Node("Reshape", {{"shape", Ints{batch, 16}}}, {maker.Node("Reduce", mean, {h})});
  const ValueId y = maker.Node("MatMul", {}, {h, maker.Weights({16, 10})});
  return maker.Finish({y, maker.Node("Softmax", {{"axis", int64_t{1}}}, {y})});
}

TEST_F(CompileModelTest, ABatchRunsImageByImage) {
  for (const int64_t batch : {2, 3, 8}) {
    SCOPED_TRACE(::testing::Message() << "batch " << batch);
    ExpectComputesTheSame(Classifier(batch, 9), BatchRun::kTogether);
    ExpectComputesTheSame(Classifier(batch, 9), BatchRun::kEach);
    const CompiledModel one = Compile(Classifier(1, 9));
    const CompiledModel each = Compile(Classifier(batch, 9), 1, BatchRun::kEach);
    EXPECT_EQ(each.report.images, batch);
    // Memory, code and weights are those of one image; inputs and outputs are the batch's.
    EXPECT_EQ(each.package.plan.arena_bytes, one.package.plan.arena_bytes);
    EXPECT_EQ(each.code, one.code);
    ASSERT_EQ(each.report.kernels.size(), one.report.kernels.size());
    for (size_t k = 0; k < one.report.kernels.size(); ++k) {
      EXPECT_EQ(each.report.kernels[k].workload_hash, one.report.kernels[k].workload_hash);
      EXPECT_EQ(each.report.kernels[k].count, batch * one.report.kernels[k].count);
    }
    EXPECT_EQ(each.package.plan.inputs[0].shape, (std::vector<int64_t>{batch, 3, 9, 9}));
    EXPECT_EQ(each.package.plan.outputs[1].shape, (std::vector<int64_t>{batch, 10}));
  }
}

// The same schedules on the same images give the same bytes.
TEST_F(CompileModelTest, ImageByImageGivesTheBytesOfEachImageAlone) {
  const std::string one = Bytes(Compile(Classifier(1, 9)));
  const std::string all = Bytes(Compile(Classifier(3, 9), 1, BatchRun::kEach));
  const std::vector<graph::ConstantPtr> inputs = RandomInputs(Classifier(3, 9), 4);
  const auto together = RunPackage(all, inputs);
  ASSERT_TRUE(together.ok()) << together.status();
  for (size_t image = 0; image < 3; ++image) {
    const size_t part = inputs[0]->bytes.size() / 3;
    const auto bytes = inputs[0]->bytes.subspan(image * part, part);
    const auto alone = RunPackage(
        one, {graph::MakeConstant({ir::DType::kF32, {1, 3, 9, 9}}, {bytes.begin(), bytes.end()})});
    ASSERT_TRUE(alone.ok()) << alone.status();
    for (size_t output = 0; output < 2; ++output) {
      EXPECT_THAT((*together)[output]->bytes.subspan(image * 40, 40),
                  ::testing::ElementsAreArray((*alone)[output]->bytes));
    }
  }
}

TEST_F(CompileModelTest, ABatchRunsTogetherWhereItsTensorsStayNear) {
  EXPECT_EQ(Compile(Classifier(8, 9)).report.images, 1);
  // 16 channels at 160x160 are 1.6 MB an image: a batch of 12 leaves the last cache.
  const CompiledModel large = Compile(Classifier(12, 160));
  EXPECT_EQ(large.report.images, 12);
  const CompiledModel asked = Compile(Classifier(12, 160), 1, BatchRun::kTogether);
  EXPECT_EQ(asked.report.images, 1);
  EXPECT_LT(12 * large.report.arena_bytes, asked.report.arena_bytes + 12 * 4096);
}

// The nominal times say the contrary of each.
TEST_F(CompileModelTest, ABatchRunsAsItWasMeasured) {
  class Measured final : public TraceSource {
   public:
    explicit Measured(BatchRun run) : run_(run) {}
    absl::StatusOr<KnownBatch> FindBatch(const std::vector<ModelKernel>& together,
                                         const ir::Target&) override {
      EXPECT_FALSE(together.empty());
      ++asked;
      return KnownBatch{run_, "so it was measured"};
    }
    absl::StatusOr<FoundTrace> Find(const ir::Workload&, const std::string&,
                                    const ir::Target&) override {
      return FoundTrace{.rung = "default"};
    }
    int asked = 0;

   private:
    const BatchRun run_;
  };
  measure::BuilderClient builder(RealBuilder(1), clock_);
  const auto compile = [&](const Graph& graph, Measured& measured, BatchRun batch) {
    const auto model =
        CompileModel(graph, {.target = "cpu:avx2,threads=2", .batch = batch}, builder, measured);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? model->report : CompileReport();
  };
  Measured each(BatchRun::kEach), together(BatchRun::kTogether);
  EXPECT_EQ(compile(Classifier(8, 9), each, BatchRun::kAuto).images, 8);
  const CompileReport report = compile(Classifier(12, 160), together, BatchRun::kAuto);
  EXPECT_EQ(report.images, 1);
  EXPECT_TRUE(report.batch_judged);
  EXPECT_EQ(report.batch_why, "so it was measured");
  // Who says how it runs, or has no batch, asks nobody.
  EXPECT_FALSE(compile(Classifier(8, 9), each, BatchRun::kTogether).batch_judged);
  EXPECT_EQ(compile(Classifier(1, 9), each, BatchRun::kAuto).batch_why, "");
  EXPECT_EQ(each.asked, 1);
}

TEST_F(CompileModelTest, ABatchWhoseImagesMeetSaysWhatIsInTheWay) {
  GraphMaker maker(5);
  const ValueId x = maker.Input("x", {4, 8});
  const Graph graph = maker.Finish({maker.Node("Softmax", {{"axis", int64_t{0}}}, {x})});
  ExpectComputesTheSame(graph);
  const absl::Status status = TryCompile(graph, BatchRun::kEach).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("node Softmax"));
}

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
  EXPECT_EQ(parsed->plan.outputs.at(0).name, "y0");
  ASSERT_EQ(parsed->info.kernels.size(), parsed->plan.kernels.size());
  for (size_t k = 0; k < parsed->info.kernels.size(); ++k) {
    const runtime::PackageKernel& kernel = parsed->info.kernels[k];
    EXPECT_EQ(kernel.rung, "default");
    EXPECT_EQ(kernel.name, model.report.kernels[k].name);
    EXPECT_EQ(static_cast<double>(kernel.flop()), model.report.kernels[k].cost.flop());
    EXPECT_EQ(static_cast<double>(kernel.bytes), model.report.kernels[k].cost.bytes);
  }
  EXPECT_EQ(model.report.kernels.size(), parsed->plan.kernels.size());
  EXPECT_LE(model.report.lower_bound_bytes, model.report.arena_bytes);
  EXPECT_LE(model.report.arena_bytes, model.report.sum_bytes);
}

TEST_F(CompileModelTest, TheSameModelGivesTheSameBytes) {
  const std::string first = Bytes(Compile(Perceptron(), 1));
  EXPECT_EQ(Bytes(Compile(Perceptron(), 2)), first);
}

TEST_F(CompileModelTest, EqualLayersShareOneKernel) {
  GraphMaker maker(6);
  ValueId h = maker.Input("x", {4, 32});
  for (int layer = 0; layer < 3; ++layer) {
    h = maker.Node("MatMul", {}, {h, maker.Weights({32, 32})});
    h = maker.Unary("tanh", h);
  }
  const Graph graph = maker.Finish({h});
  const CompiledModel model = Compile(graph);
  ASSERT_EQ(model.report.kernels.size(), 1u);
  EXPECT_EQ(model.report.kernels[0].count, 3);
  EXPECT_EQ(model.package.plan.steps.size(), 3u);
  ExpectComputesTheSame(graph);
}

TEST_F(CompileModelTest, OutputsMayBeInputsConstantsAndViewsOfEachOther) {
  GraphMaker maker(7);
  const ValueId x = maker.Input("x", {4, 8});
  const ValueId e = maker.Unary("exp", x);
  const ValueId view = maker.Node("Reshape", {{"shape", std::vector<int64_t>{2, 16}}}, {e});
  const ValueId sum = maker.Node(
      "Reduce", {{"fn", "sum"}, {"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}},
      {view});
  const ValueId part = maker.Node("Slice",
                                  {{"starts", std::vector<int64_t>{1, 0}},
                                   {"steps", std::vector<int64_t>{1, 1}},
                                   {"sizes", std::vector<int64_t>{2, 8}}},
                                  {e});
  ExpectComputesTheSame(maker.Finish({e, x, maker.Weights({3}), view, sum, part}));
}

// Chains of matrix products: element-wise nodes would join their readers' groups, and products of
// one operand would be merged.
class ConcatTest : public CompileModelTest {
 protected:
  static ValueId Dense(GraphMaker& maker, ValueId x, int64_t in, int64_t out) {
    return maker.Node("MatMul", {}, {x, maker.Weights({in, out})});
  }
};

TEST_F(ConcatTest, OperandsAreWrittenInPlace) {
  GraphMaker maker(8);
  const ValueId x = maker.Input("x", {6, 8});
  const ValueId a = Dense(maker, x, 8, 16);
  const ValueId b = Dense(maker, a, 16, 5);
  const ValueId c = Dense(maker, b, 5, 3);
  const ValueId all = maker.Concat(1, {a, b, c});
  const Graph graph = maker.Finish({Dense(maker, all, 24, 4)});
  const CompiledModel model = Compile(graph);
  EXPECT_EQ(model.package.plan.steps.size(), 4u);  // the products, no copy
  EXPECT_EQ(model.report.sum_bytes, 6 * 24 * 4);   // one tensor for all three: 576 = 9 * 64 bytes
  ExpectComputesTheSame(graph);
}

TEST_F(ConcatTest, PartsInOnePieceNeedNoOtherKernel) {
  GraphMaker maker(9);
  const ValueId x = maker.Input("x", {2, 32});
  const ValueId a = Dense(maker, x, 32, 32);
  const ValueId b = Dense(maker, a, 32, 32);
  const Graph graph = maker.Finish({maker.Concat(0, {a, b})});
  const CompiledModel model = Compile(graph);
  EXPECT_EQ(model.package.plan.steps.size(), 2u);
  ExpectComputesTheSame(graph);
}

TEST_F(ConcatTest, OperandsThatOthersNeedWholeAreCopied) {
  GraphMaker maker(10);
  const ValueId x = maker.Input("x", {4, 8});
  const ValueId a = Dense(maker, x, 8, 8);
  const ValueId out = Dense(maker, x, 8, 8);
  const ValueId constant = maker.Weights({4, 8});
  const ValueId all = maker.Concat(1, {x, a, constant, out, a});
  const Graph graph = maker.Finish(
      {out, all, maker.Node("Reshape", {{"shape", std::vector<int64_t>{160}}}, {all})});
  ExpectComputesTheSame(graph);
}

TEST_F(ConcatTest, DenseBlocksLieInOneTensor) {
  GraphMaker maker(11);
  ValueId x = maker.Input("x", {4, 16});
  std::vector<ValueId> features = {Dense(maker, x, 16, 16)};
  ValueId all = features[0];
  for (int64_t layer = 1; layer < 5; ++layer) {
    features.push_back(Dense(maker, all, 16 * layer, 16));
    all = maker.Concat(1, features);
  }
  const Graph graph = maker.Finish({Dense(maker, all, 80, 3)});
  const CompiledModel model = Compile(graph);
  EXPECT_EQ(model.package.plan.steps.size(), 6u);
  EXPECT_EQ(model.report.sum_bytes, 4 * 80 * 4);
  ExpectComputesTheSame(graph);
}

TEST_F(ConcatTest, ConcatsOfConcatsLieInTheLast) {
  GraphMaker maker(12);
  const ValueId x = maker.Input("x", {2, 4, 8});
  const ValueId a = Dense(maker, x, 8, 8);
  const ValueId b = Dense(maker, a, 8, 8);
  const ValueId rows = maker.Concat(1, {a, b});
  const ValueId more = Dense(maker, rows, 8, 8);
  const Graph graph = maker.Finish(
      {maker.Concat(2, {more, rows}), maker.Node("Softmax", {{"axis", int64_t{2}}}, {rows})});
  const CompiledModel model = Compile(graph);
  EXPECT_EQ(model.package.plan.steps.size(), 4u);
  EXPECT_EQ(model.report.sum_bytes, 0);  // everything lies in the outputs
  ExpectComputesTheSame(graph);
}

TEST_F(CompileModelTest, AnUnknownTargetIsNamed) {
  measure::BuilderClient builder(RealBuilder(1), clock_);
  DefaultTraceSource traces;
  const auto model = CompileModel(Perceptron(), {.target = "cpu:mmx"}, builder, traces);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(StatusMessage(model.status()), ::testing::HasSubstr("mmx"));
}

TEST_F(CompileModelTest, LooksUpEveryKernelAndLetsGoBeforeItBuilds) {
  class CountedTraces final : public TraceSource {
   public:
    absl::StatusOr<FoundTrace> Find(const ir::Workload&, const std::string&,
                                    const ir::Target&) override {
      ++found;
      late |= ended;
      return FoundTrace{.trace = "parallel(s9.i0)", .rung = "exact"};  // building fails
    }
    void EndLookUps() override { ended = true; }
    int found = 0;
    bool ended = false, late = false;
  };
  measure::BuilderClient builder(RealBuilder(1), clock_);
  CountedTraces traces;
  EXPECT_FALSE(CompileModel(Perceptron(), {.target = "cpu:avx2"}, builder, traces).ok());
  EXPECT_GT(traces.found, 0);
  EXPECT_TRUE(traces.ended);
  EXPECT_FALSE(traces.late);
}

TEST_F(CompileModelTest, AKernelHasNoMoreThreadsThanTheLogSays) {
  class FewThreads final : public TraceSource {
   public:
    explicit FewThreads(int threads) : threads_(threads) {}
    absl::StatusOr<FoundTrace> Find(const ir::Workload&, const std::string&,
                                    const ir::Target&) override {
      return FoundTrace{.rung = "exact", .threads = threads_};
    }

   private:
    const int threads_;
  };
  GraphMaker maker(6);
  const ValueId x = maker.Input("x", {64, 256});
  const Graph graph = maker.Finish({maker.Node("MatMul", {}, {x, maker.Weights({256, 256})})});
  measure::BuilderClient builder(RealBuilder(1), clock_);
  for (const int threads : {0, 1, 2, 9}) {
    FewThreads traces(threads);
    const auto model = CompileModel(graph, {.target = "cpu:avx2,threads=4"}, builder, traces);
    ASSERT_TRUE(model.ok()) << model.status();
    int32_t most = 0;
    for (const ir::PlanStep& step : model->package.plan.steps) most = std::max(most, step.threads);
    EXPECT_EQ(most, threads == 0 ? 4 : std::min(threads, 4));
  }
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
