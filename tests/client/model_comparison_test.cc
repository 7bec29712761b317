#include "client/model_comparison.h"

#include <limits>

#include "gtest/gtest.h"

#include "client/model_inputs.h"
#include "graph/onnx_export/zoo_layers.h"
#include "graph/onnx_import/import.h"
#include "tests/client/run_hone.h"
#include "tests/test_paths.h"

namespace hone::client {
namespace {

constexpr char kTarget[] = "cpu:avx2,threads=1";

/// The default for all kernels, but loops as they are written for those with this many axes.
class NaiveTraces final : public compiler::TraceSource {
 public:
  absl::StatusOr<compiler::FoundTrace> Find(const ir::Workload& workload, const std::string& hash,
                                            const ir::Target&) override {
    const ir::Stage& last = workload.stages.back();
    if (last.spatial.size() != 2 || !slow.empty()) return compiler::FoundTrace{.rung = "default"};
    slow = hash;
    const size_t stage = workload.stages.size() - 1;
    return compiler::FoundTrace{.trace = "parallel(s" + std::to_string(stage) + ".i0, 1)\n",
                                .rung = "exact"};
  }
  std::string slow;
};

class ModelComparisonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    graph::OnnxWriter writer("small", 1);
    std::string x = writer.Input("input", ir::DType::kF32, {4, 256});
    x = Relu(writer, "relu", Linear(writer, "first", x, 256, 512));
    Linear(writer, "second", x, 512, 64);
    writer.Output("second", ir::DType::kF32, {4, 64});
    ASSERT_TRUE(writer.Save(path_).ok());
  }

  std::unique_ptr<TimedModel> Make(compiler::TraceSource& traces) {
    auto graph = graph::ImportOnnxFile(path_, {});
    EXPECT_TRUE(graph.ok()) << graph.status();
    NamedTensors inputs;
    for (const InputSpec& spec : InputsOf(*graph))
      inputs.emplace_back(spec.name, DrawInput(spec, inputs.size(), 1));
    measure::BuilderOptions options;
    options.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder";
    measure::BuilderClient builder(options, clock_);
    auto model =
        TimedModel::Create(*std::move(graph), {kTarget, ""}, traces, builder, inputs, clock_);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  const SystemMonotonicClock clock_;
  const testing::TemporaryFolder folder_;
  const std::string path_ = folder_.Path("small.onnx");
};

TEST_F(ModelComparisonTest, AKernelThatIsSlowerInTheModelLosesAndItsDefaultDoesNot) {
  compiler::DefaultTraceSource defaults;
  NaiveTraces naive;
  const auto by_default = Make(defaults), tuned = Make(naive);
  ASSERT_TRUE(by_default && tuned);
  ASSERT_FALSE(naive.slow.empty());
  ASSERT_TRUE(RunInTurns({by_default.get(), tuned.get()}, 0.2, nullptr, clock_).ok());
  EXPECT_EQ(ChangedKernels(*by_default, *tuned), std::set<std::string>{naive.slow});
  EXPECT_EQ(LosingKernels(*by_default, *tuned), std::set<std::string>{naive.slow});
  EXPECT_TRUE(LosingKernels(*tuned, *by_default).empty());
  EXPECT_GE(by_default->samples_ns().size(), 5U);
  EXPECT_EQ(by_default->samples_ns().size(), tuned->samples_ns().size());
  EXPECT_LT(RatioOf(by_default->samples_ns(), tuned->samples_ns()).high, 1);

  // With the default put back nothing differs any more.
  NaiveTraces again;
  WithDefaults mended(again, {naive.slow});
  const auto model = Make(mended);
  ASSERT_TRUE(model);
  EXPECT_EQ(ChangedKernels(*by_default, *model).count(naive.slow), 0U);
}

TEST_F(ModelComparisonTest, MoreRoundsAddToTheSamples) {
  compiler::DefaultTraceSource defaults;
  const auto a = Make(defaults), b = Make(defaults);
  ASSERT_TRUE(a && b);
  ASSERT_TRUE(RunInTurns({a.get(), b.get()}, 0, nullptr, clock_).ok());
  ASSERT_EQ(a->samples_ns().size(), 5U);
  ASSERT_TRUE(GoOnInTurns({a.get(), b.get()}, 7, 60, nullptr, clock_).ok());
  EXPECT_EQ(a->samples_ns().size(), 12U);
  EXPECT_EQ(b->samples_ns().size(), 12U);
  ASSERT_TRUE(GoOnInTurns({a.get(), b.get()}, 7, 0, nullptr, clock_).ok());
  EXPECT_EQ(a->samples_ns().size(), 12U) << "there was no time";
  const double endless = std::numeric_limits<double>::infinity();
  ASSERT_TRUE(GoOnInTurns({a.get(), b.get()}, 3, endless, nullptr, clock_).ok());
  EXPECT_EQ(a->samples_ns().size(), 15U) << "a budget of trials has no end in time";
}

TEST_F(ModelComparisonTest, AnInterruptEndsTheTurns) {
  compiler::DefaultTraceSource defaults;
  const auto model = Make(defaults);
  ASSERT_TRUE(model);
  const std::atomic<bool> interrupted = true;
  EXPECT_EQ(RunInTurns({model.get()}, 60, &interrupted, clock_).code(),
            absl::StatusCode::kCancelled);
}

TEST(RatioTest, AnIntervalThatHoldsOneGetsFourTimesTheRounds) {
  EXPECT_TRUE(Undecided({1.01, 0.99, 1.03}, 20, 20));
  EXPECT_TRUE(Undecided({0.99, 0.98, 1.00}, 60, 20));
  EXPECT_FALSE(Undecided({1.01, 0.99, 1.03}, 80, 20));
  EXPECT_FALSE(Undecided({1.02, 1.001, 1.03}, 20, 20));
  EXPECT_FALSE(Undecided({0.98, 0.97, 0.999}, 20, 20));
}

TEST(RatioTest, PairsSamplesAndHoldsTheMedian) {
  std::vector<int64_t> a, b;
  for (int i = 0; i < 99; ++i) {
    b.push_back(1000 + 50 * (i % 7));
    a.push_back(2 * b.back() + i % 3);  // the drift is common to both
  }
  const PairedRatio ratio = RatioOf(a, b);
  EXPECT_NEAR(ratio.median, 2, 0.01);
  EXPECT_LE(ratio.low, ratio.median);
  EXPECT_GE(ratio.high, ratio.median);
  EXPECT_LT(ratio.high - ratio.low, 0.01);
}

}  // namespace
}  // namespace hone::client
