// Models that fork, compiled to run their branches in turn and side by side.
#include <algorithm>

#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "compiler/compile_model.h"
#include "ir/target.h"
#include "tests/compiler/graph_maker.h"
#include "tests/compiler/graph_oracle.h"
#include "tests/test_paths.h"

namespace hone::compiler {
namespace {

using graph::Graph;
using graph::ValueId;

class BranchRunTest : public ::testing::Test {
 protected:
  static measure::BuilderOptions RealBuilder() {
    measure::BuilderOptions options;
    options.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder";
    return options;
  }

  static std::string Bytes(const CompiledModel& model) {
    Result<std::string> bytes = runtime::SerializePackage(model.package);
    EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
    return bytes.ok() ? *bytes : "";
  }

  SystemMonotonicClock clock_;
};

/// Towers of products that are too short for several threads, from one tensor to a Concat; then
/// once more. What the towers keep for themselves is less than the first product of all.
Graph Towers(int towers, int length) {
  GraphMaker maker(11);
  ValueId h = maker.Input("x", {1, 64});
  for (int block = 0; block < 2; ++block) {
    std::vector<ValueId> ends;
    for (int t = 0; t < towers; ++t) {
      ValueId y = h;
      for (int i = 0; i < length + t; ++i)
        y = maker.Node("MatMul", {}, {y, maker.Weights({64, 64})});
      ends.push_back(maker.Unary("tanh", y));
    }
    h = maker.Node("MatMul", {}, {maker.Concat(1, ends), maker.Weights({64 * towers, 2048})});
    h = maker.Node("MatMul", {}, {h, maker.Weights({2048, 64})});
  }
  return maker.Finish({h});
}

TEST_F(BranchRunTest, BranchesSideBySideGiveTheSameBytesOnAnyThreads) {
  const Graph graph = Towers(3, 6);
  measure::BuilderClient builder(RealBuilder(), clock_);
  DefaultTraceSource traces;
  const auto compile = [&](BranchRun branches) {
    auto model = CompileModel(graph, {.target = "cpu:avx2,threads=8", .branches = branches},
                              builder, traces);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : CompiledModel();
  };
  const CompiledModel in_turn = compile(BranchRun::kAuto), beside = compile(BranchRun::kBeside);
  EXPECT_EQ(in_turn.report.possible_forks, 2);
  EXPECT_EQ(in_turn.report.forks, 0);
  EXPECT_EQ(in_turn.report.branches_why, "they were not measured");
  EXPECT_TRUE(in_turn.package.plan.forks.empty());
  ASSERT_EQ(beside.report.forks, 2);
  EXPECT_EQ(beside.package.plan.forks[0].counts.size(), 3U);
  EXPECT_LE(static_cast<double>(beside.report.arena_bytes),
            1.1 * static_cast<double>(in_turn.report.arena_bytes));
  EXPECT_EQ(beside.code, in_turn.code);

  ir::Target target;
  std::string why;
  ASSERT_TRUE(ir::ParseTarget("cpu:avx2,threads=8", &target, &why));
  if (!ir::HostCanRun(target, &why)) GTEST_SKIP() << why;
  const auto inputs = RandomInputs(graph, 1);
  const auto expected = RunPackage(Bytes(in_turn), inputs, 1);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (int threads = 1; threads <= 8; ++threads) {
    for (const CompiledModel* model : {&in_turn, &beside}) {
      const auto actual = RunPackage(Bytes(*model), inputs, threads);
      ASSERT_TRUE(actual.ok()) << actual.status();
      EXPECT_TRUE(std::ranges::equal(actual->front()->bytes, expected->front()->bytes))
          << threads << " threads";
    }
  }
}

TEST_F(BranchRunTest, BranchesRunAsWasMeasured) {
  class Measured final : public TraceSource {
   public:
    absl::StatusOr<KnownBranches> FindBranchRun(const std::vector<ModelKernel>& kernels,
                                                const ir::Target&) override {
      EXPECT_FALSE(kernels.empty());
      ++asked;
      return KnownBranches{BranchRun::kBeside, "so it was measured"};
    }
    absl::StatusOr<FoundTrace> Find(const ir::Workload&, const std::string&,
                                    const ir::Target&) override {
      return FoundTrace{.rung = "default"};
    }
    int asked = 0;
  };
  Measured measured;
  measure::BuilderClient builder(RealBuilder(), clock_);
  const auto compile = [&](const char* target, BranchRun branches) {
    const auto model =
        CompileModel(Towers(2, 6), {.target = target, .branches = branches}, builder, measured);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? model->report : CompileReport();
  };
  const CompileReport report = compile("cpu:avx2,threads=2", BranchRun::kAuto);
  EXPECT_EQ(report.forks, 2);
  EXPECT_TRUE(report.branches_judged);
  EXPECT_EQ(report.branches_why, "so it was measured");
  // Who says how they run, or has one thread, asks nobody.
  const CompileReport by_hand = compile("cpu:avx2,threads=2", BranchRun::kInTurn);
  EXPECT_EQ(by_hand.forks, 0);
  EXPECT_FALSE(by_hand.branches_judged);
  EXPECT_EQ(compile("cpu:avx2,threads=1", BranchRun::kAuto).branches_why, "");
  EXPECT_EQ(measured.asked, 1);
}

}  // namespace
}  // namespace hone::compiler
