#include "tests/kinds/abacus_runner.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "ir/text.h"
#include "measure/cpu/cpu_runner.h"
#include "measure/device.h"
#include "measure/local_measurer.h"
#include "tests/kinds/abacus.h"
#include "tests/test_paths.h"

// Candidates are run on a device that is no CPU, in a process that may do what it needs.
namespace hone {
namespace {

constexpr char kProduct[] =
    "workload 1\n"
    "x0: f32[48,64] input range(-1,1)\n"
    "x1: f32[64,96] constant\n"
    "s0: f32[48,96] output = sum[r0:64] (x0[i0, r0] * x1[r0, i1])\n";

class AbacusRunnerTest : public ::testing::Test {
 protected:
  AbacusRunnerTest() {
    abacus::Register();
    const std::string programs = testing::BuildDir() + "/tests/abacus/libexec/hone/";
    options_.builder.program = programs + "hone-builder";
    options_.runner.program = programs + "hone-runner";
    options_.runner.device = "abacus:0";
    options_.device_class = "abacus-8:rods13";
  }

  static measure::MeasureInput Input(const std::string& trace) {
    const auto workload = ir::ParseWorkload(kProduct);
    EXPECT_TRUE(workload.ok()) << workload.status();
    return {.workload = std::make_shared<ir::Workload>(*workload),
            .target = "abacus:rods=8",
            .trace = trace,
            .seed = 5};
  }

  measure::MeasureResult Measured(const std::string& trace) {
    measure::LocalMeasurer measurer(options_, clock_);
    measurer.Submit(Input(trace));
    const std::vector<measure::MeasureResult> results = measurer.Collect(-1);
    return results.empty() ? measure::MeasureResult() : results.front();
  }

  // How many of two that are compared are noisy.
  static int64_t NoisyOfTwo(measure::LocalMeasurer& measurer) {
    const auto compared = measurer.Compare({Input(""), Input("split(s0.i0, 8)\n")}, 3);
    for (const measure::ComparedTrace& c : compared)
      EXPECT_EQ(c.error.outcome, measure::Outcome::kOk) << c.error.message;
    return std::ranges::count_if(compared, &measure::ComparedTrace::noisy);
  }

  const SystemMonotonicClock clock_;
  measure::LocalMeasurerOptions options_;
};

TEST_F(AbacusRunnerTest, CandidatesAreCheckedAndTimedByItsOwnClock) {
  for (const char* trace : {"", "split(s0.i0, 8)\n"}) {
    const measure::MeasureResult result = Measured(trace);
    EXPECT_EQ(result.outcome, measure::Outcome::kOk) << result.message;
    ASSERT_FALSE(result.samples_ns.empty());
    // Two times 48 x 64 x 96 operations in a hundredth of what a CPU takes; that is a clock of the
    // host's, and its CPUs may be busy.
    EXPECT_LT(*std::ranges::min_element(result.samples_ns), 100'000);
    EXPECT_EQ(result.device, "abacus-8:rods13");
  }
}

// The host's CPUs may be as busy as they like.
TEST_F(AbacusRunnerTest, OthersDisturbItWhereTheyUseItItself) {
  abacus::SetOthers(0);
  EXPECT_FALSE(Measured("").noisy);
  abacus::SetOthers(1);
  EXPECT_TRUE(Measured("").noisy);
  abacus::SetOthers(0);
  EXPECT_EQ(measure::HostCoresOf(abacus::TargetOf("abacus:rods=8")), 0);
  EXPECT_EQ(measure::HostCoresOf(abacus::TargetOf("cpu:avx2,threads=2")), 2);
}

TEST_F(AbacusRunnerTest, OthersDisturbComparisonsToo) {
  options_.before_run = [](const std::vector<int64_t>&) { abacus::SetOthers(1); };
  measure::LocalMeasurer measurer(options_, clock_);
  abacus::SetOthers(0);
  EXPECT_EQ(NoisyOfTwo(measurer), 2);
  EXPECT_EQ(measurer.paused_ns(), 0) << "it may not wait";
  abacus::SetOthers(0);
}

// For a second at most before each, however long a session may wait in all.
TEST_F(AbacusRunnerTest, ComparisonsWaitForOthersButNotForLong) {
  bool quiet = true;
  options_.max_pause_ns = 60'000'000'000;
  options_.before_run = [&](const std::vector<int64_t>&) { abacus::SetOthers(quiet ? 0 : 1); };
  measure::LocalMeasurer measurer(options_, clock_);
  int64_t paused_ns = 0;
  for (const int64_t noisy : {0, 2}) {
    quiet = noisy == 0;
    abacus::SetOthers(1);
    const int64_t start_ns = clock_.NowNs();
    EXPECT_EQ(NoisyOfTwo(measurer), noisy);
    EXPECT_LT(clock_.NowNs() - start_ns, options_.max_pause_ns / 2);
    EXPECT_GE(measurer.paused_ns() - paused_ns, 1'000'000'000);
    paused_ns = measurer.paused_ns();
  }
  abacus::SetOthers(0);
}

TEST_F(AbacusRunnerTest, WhatIsLostStaysSoUntilItsProcessIsReplaced) {
  options_.runner.device = "abacus:9";
  for (int turn = 0; turn < 2; ++turn) {
    const measure::MeasureResult lost = Measured("");
    EXPECT_EQ(lost.outcome, measure::Outcome::kWorkerLost) << lost.message;
    EXPECT_NE(lost.message.find("the abacus is lost"), std::string::npos) << lost.message;
  }
}

TEST_F(AbacusRunnerTest, ARunnerOfTheHostTakesNoneOfIt) {
  options_.runner.device = "cpu:0";
  const measure::MeasureResult refused = Measured("");
  EXPECT_EQ(refused.outcome, measure::Outcome::kBuildFailed);
  EXPECT_NE(refused.message.find("a kernel for abacus:rods=8 does not run on cpu:0"),
            std::string::npos)
      << refused.message;
}

TEST(AbacusClock, FillsNoWaitAndThatIsNoLie) {
  measure::TimeReply reply;
  reply.samples_ns = {1000, 1000};
  reply.runs = 2;
  reply.timed_ns = 2000;
  const measure::AnswerWait wait{.elapsed_ns = 400'000'000};
  EXPECT_TRUE(measure::CheckTimes(reply, {}, wait.elapsed_ns).ok());
  EXPECT_TRUE(abacus::Runner().CheckWait(reply, 0, wait).ok());
  EXPECT_EQ(measure::CpuRunner().CheckWait(reply, 0, wait).code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace hone
