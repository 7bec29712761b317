// Chains of layers as one kernel each: what is joined, that it computes the same, and in how much
// memory.
#include "compiler/cascades.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "compiler/compile_model.h"
#include "ir/target.h"
#include "ir/text.h"
#include "tests/compiler/graph_maker.h"
#include "tests/compiler/graph_oracle.h"
#include "tests/test_paths.h"

namespace hone::compiler {
namespace {

using graph::Graph;
using graph::ValueId;

constexpr char kTarget[] = "cpu:avx2,threads=2";

ValueId Convolution(GraphMaker& maker, ValueId x, int64_t in, int64_t out, int64_t size,
                    int64_t stride, bool relu) {
  const bool depthwise = in == out && size == 3 && !relu;
  const int64_t pad = size / 2, groups = depthwise ? in : 1;
  ValueId y = maker.Node("Conv",
                         {{"strides", std::vector<int64_t>{stride, stride}},
                          {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                          {"dilations", std::vector<int64_t>{1, 1}},
                          {"group", groups}},
                         {x, maker.Weights({out, in / groups, size, size}), maker.Weights({out})});
  return relu || depthwise ? maker.Unary("tanh", y) : y;
}

/// Two inverted residuals; the second adds what it read. The mean keeps the layout of the network's
/// output away from them.
Graph Residuals(int64_t size, int64_t images = 1) {
  GraphMaker maker(15);
  const ValueId x = maker.Input("x", {images, 8, size, size});
  ValueId h = Convolution(maker, x, 8, 48, 1, 1, true);
  h = Convolution(maker, h, 48, 48, 3, 2, false);
  const ValueId a = Convolution(maker, h, 48, 16, 1, 1, false);
  h = Convolution(maker, a, 16, 64, 1, 1, true);
  h = Convolution(maker, h, 64, 64, 3, 1, false);
  h = Convolution(maker, h, 64, 16, 1, 1, false);
  h = maker.Node("Binary", {{"fn", std::string("add")}}, {h, a});
  return maker.Finish({maker.Node(
      "Reduce",
      {{"fn", std::string("mean")}, {"axes", std::vector<int64_t>{2, 3}}, {"keepdims", int64_t{0}}},
      {h})});
}

class CascadesTest : public ::testing::Test {
 protected:
  static measure::BuilderOptions RealBuilder() {
    measure::BuilderOptions options;
    options.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder";
    return options;
  }

  CompiledModel Compile(const Graph& graph, CascadeRun cascades, TraceSource& traces,
                        BatchRun batch = BatchRun::kAuto) {
    measure::BuilderClient builder(RealBuilder(), clock_);
    auto model = CompileModel(graph, {.target = kTarget, .batch = batch, .cascades = cascades},
                              builder, traces);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : CompiledModel();
  }
  CompiledModel Compile(const Graph& graph, CascadeRun cascades, BatchRun batch = BatchRun::kAuto) {
    DefaultTraceSource traces;
    return Compile(graph, cascades, traces, batch);
  }

  static std::string Bytes(const CompiledModel& model) {
    Result<std::string> bytes = runtime::SerializePackage(model.package);
    EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
    return bytes.ok() ? *bytes : "";
  }

  SystemMonotonicClock clock_;
};

TEST_F(CascadesTest, ChainsGiveWhatTheInterpreterGivesNodeByNode) {
  const Graph graph = Residuals(18);
  const CompiledModel model = Compile(graph, CascadeRun::kAll);
  EXPECT_EQ(model.report.cascades.joined, 2);
  EXPECT_LE(model.report.num_steps, 4) << "two chains, the input in another layout, the mean";
  const auto inputs = RandomInputs(graph, 1);
  const auto expected = RunNodeByNode(graph, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const int threads : {1, 2}) {
    const auto actual = RunPackage(Bytes(model), inputs, threads);
    ASSERT_TRUE(actual.ok()) << actual.status();
    ASSERT_EQ(actual->front()->type, expected->front()->type);
    for (int64_t i = 0; i < expected->front()->type.NumElements(); ++i) {
      const double right = expected->front()->DoubleAt(i);
      ASSERT_NEAR(actual->front()->DoubleAt(i), right, 1e-4 + 1e-4 * std::abs(right)) << i;
    }
  }
}

TEST_F(CascadesTest, WithoutAVerdictNothingIsJoinedAndPackagesAreTheSame) {
  const Graph graph = Residuals(18);
  const CompiledModel automatic = Compile(graph, CascadeRun::kAuto);
  EXPECT_EQ(automatic.report.cascades.joined, 0);
  EXPECT_EQ(Bytes(automatic), Bytes(Compile(graph, CascadeRun::kOff)));
  // These tensors fit into the last cache.
  EXPECT_EQ(Bytes(automatic), Bytes(Compile(graph, CascadeRun::kOn)));
}

TEST_F(CascadesTest, LargeTensorsAreJoinedAsWasMeasured) {
  class Measured final : public TraceSource {
   public:
    absl::StatusOr<KnownCascades> FindCascadeRun(const std::vector<ModelKernel>& apart,
                                                 const ir::Target&) override {
      kernels = apart.size();
      return KnownCascades{CascadeRun::kOn, "so it was measured"};
    }
    absl::StatusOr<FoundTrace> Find(const ir::Workload&, const std::string&,
                                    const ir::Target&) override {
      return FoundTrace{.rung = "default"};
    }
    size_t kernels = 0;
  };
  Measured measured;
  const Graph graph = Residuals(512);  // 48 MiB between the first two layers
  const CompiledModel apart = Compile(graph, CascadeRun::kAuto);
  EXPECT_EQ(apart.report.cascades.possible, 2);
  EXPECT_EQ(apart.report.cascades.joined, 0);
  EXPECT_EQ(apart.report.cascades.why, "they were not measured");
  const CompiledModel joined = Compile(graph, CascadeRun::kAuto, measured);
  EXPECT_EQ(joined.report.cascades.joined, 2);
  EXPECT_TRUE(joined.report.cascades.judged);
  EXPECT_EQ(joined.report.cascades.why, "so it was measured");
  EXPECT_EQ(measured.kernels, apart.report.kernels.size());
  EXPECT_LT(joined.report.arena_bytes, apart.report.arena_bytes / 2);
  const CompiledModel off = Compile(graph, CascadeRun::kOff, measured);
  EXPECT_EQ(Bytes(off), Bytes(apart)) << "by hand";
}

/// Times of kernels as a log has them: those whose text has `slow` take long, one that has
/// `unknown` was not measured.
class TimedKernels final : public TraceSource {
 public:
  TimedKernels(std::string slow, std::string unknown)
      : slow_(std::move(slow)), unknown_(std::move(unknown)) {}
  absl::StatusOr<double> FindNs(const ir::Workload& workload, const std::string&,
                                const ir::Target&) override {
    const std::string text = ir::ToText(workload);
    const auto has = [&](const std::string& part) {
      return !part.empty() && text.find(part) != std::string::npos;
    };
    if (has(unknown_)) return 0;
    const bool chain = workload.stages.size() > 6;
    return chain ? (has(slow_) ? 31 : 29) : 10;
  }
  absl::StatusOr<FoundTrace> Find(const ir::Workload&, const std::string&,
                                  const ir::Target&) override {
    return FoundTrace{.rung = "default"};
  }

 private:
  const std::string slow_, unknown_;
};

TEST_F(CascadesTest, AChainThatWasMeasuredToLoseStaysApart) {
  const Graph graph = Residuals(512);
  const std::string first = ",48]", second = ",64]";  // channels between the layers
  TimedKernels one(first, ""), unknown(first, "x1: f32[16,48,1,1]");
  const CompiledModel joined = Compile(graph, CascadeRun::kOn, one);
  EXPECT_EQ(joined.report.cascades.possible, 2);
  EXPECT_EQ(joined.report.cascades.joined, 1) << second << " stays";
  EXPECT_EQ(Compile(graph, CascadeRun::kOn, unknown).report.cascades.joined, 2)
      << "without the time of a layer nothing is known of its chain";
  EXPECT_EQ(Compile(graph, CascadeRun::kAll, one).report.cascades.joined, 2) << "all is all";
}

TEST_F(CascadesTest, ImagesOneAfterTheOtherAreJoinedToo) {
  const Graph graph = Residuals(12, 3);
  const CompiledModel each = Compile(graph, CascadeRun::kAll, BatchRun::kEach);
  EXPECT_EQ(each.report.images, 3);
  EXPECT_EQ(each.report.cascades.joined, 2);
  const CompiledModel together = Compile(graph, CascadeRun::kAll, BatchRun::kTogether);
  EXPECT_EQ(together.report.cascades.joined, 2);
  const auto inputs = RandomInputs(graph, 2);
  const auto expected = RunNodeByNode(graph, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const CompiledModel* model : {&each, &together}) {
    const auto actual = RunPackage(Bytes(*model), inputs);
    ASSERT_TRUE(actual.ok()) << actual.status();
    for (int64_t i = 0; i < expected->front()->type.NumElements(); ++i) {
      const double right = expected->front()->DoubleAt(i);
      ASSERT_NEAR(actual->front()->DoubleAt(i), right, 1e-4 + 1e-4 * std::abs(right)) << i;
    }
  }
}

}  // namespace
}  // namespace hone::compiler
