#include <map>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ir/text.h"
#include "measure/local_measurer.h"
#include "tests/measure/gemm_candidate.h"
#include "tests/test_paths.h"

// Candidates that are screened on a part of the work.
namespace hone::measure {
namespace {

constexpr char kLargeGemm[] =
    "workload 1\n"
    "x0: f32[480,128] input range(-1,1)\n"
    "x1: f32[128,512] constant\n"
    "s0: f32[480,512] output = sum[r0:128] (x0[i0, r0] * x1[r0, i1])\n";
constexpr char kSlow[] = "parallel(s0.i0, 2)";
// The product after a phase that copies an input.
constexpr char kTwoPhases[] =
    "s1 = pack(s0, x0, [i1/32, i0, i1%32])\n"
    "parallel(s0.i0, 2)";
constexpr int64_t kPartNs = 50'000;

class PartScreenTest : public ::testing::Test {
 protected:
  PartScreenTest() {
    absl::StatusOr<ir::Workload> gemm = ir::ParseWorkload(kLargeGemm);
    EXPECT_TRUE(gemm.ok()) << gemm.status();
    workload_ = std::make_shared<ir::Workload>(*std::move(gemm));
    const std::string programs = hone::testing::BuildDir() + "/libexec/hone/";
    options_.builder.program = programs + "hone-builder";
    options_.runner.program = programs + "hone-runner";
    options_.runner.test_hooks = true;
    options_.device_class = "a test's";
  }

  MeasureInput Input(int64_t id, const std::string& trace) const {
    return {.id = id,
            .workload = workload_,
            .target = "cpu:avx2,threads=2",
            .trace = trace,
            .seed = 7,
            .part_ns = kPartNs};
  }

  MeasureResult Measure(LocalMeasurer& measurer, const MeasureInput& input) {
    measurer.Submit(input);
    std::vector<MeasureResult> results;
    while (results.empty()) results = measurer.Collect(-1);
    return results.front();
  }

  SystemMonotonicClock clock_;
  LocalMeasurerOptions options_;
  std::shared_ptr<const ir::Workload> workload_;
};

/// Whether what the parts foretold is near what the whole took; how near, is for the search to find
/// out. Each is a single sample of two threads: a program beside can slow one of them alone.
bool SizesAgree(const MeasureResult& on_part, const MeasureResult& both) {
  const auto whole_ns = static_cast<double>(MedianNs(both.samples_ns));
  const auto agrees = [&](int64_t part_ns) {
    return static_cast<double>(part_ns) > whole_ns / 4 &&
           static_cast<double>(part_ns) < whole_ns * 4;
  };
  return agrees(on_part.part_ns) && agrees(both.part_ns);
}

TEST_F(PartScreenTest, WhatIsSlowerOnAPartIsNotRunWhole) {
  LocalMeasurer measurer(options_, clock_);
  const MeasureResult fast = Measure(measurer, Input(1, ""));
  ASSERT_EQ(fast.outcome, Outcome::kOk) << fast.message;
  EXPECT_EQ(fast.part, 1) << "there was none to lose against";
  EXPECT_GT(fast.part_ns, 0);
  for (const char* trace : {kSlow, kTwoPhases}) {
    SCOPED_TRACE(trace);
    // The incumbent was noted since this was submitted.
    MeasureInput input = Input(2, trace);
    const MeasureResult on_part = Measure(measurer, input);
    ASSERT_EQ(on_part.outcome, Outcome::kOk) << on_part.message;
    EXPECT_LT(on_part.part, 0.5);
    EXPECT_GT(on_part.part, 0);
    EXPECT_TRUE(on_part.hopeless);
    ASSERT_FALSE(on_part.samples_ns.empty());
    EXPECT_EQ(MedianNs(on_part.samples_ns), on_part.part_ns);
    input.both_ways = true;
    const MeasureResult both = Measure(measurer, input);
    ASSERT_EQ(both.outcome, Outcome::kOk) << both.message;
    EXPECT_EQ(both.part, 1);
    const MeasureInput part_alone = Input(2, trace);
    bool agree = SizesAgree(on_part, both);
    for (int again = 0; again < 2 && !agree; ++again) {
      const MeasureResult part = Measure(measurer, part_alone);
      agree = SizesAgree(part, Measure(measurer, input));
    }
    EXPECT_TRUE(agree) << on_part.part_ns << " and " << both.part_ns << " against "
                       << MedianNs(both.samples_ns);
    // Expected of the whole is what the search has learnt of such parts.
    input.both_ways = false;
    input.part_ratio = 3;
    const MeasureResult longer = Measure(measurer, input);
    EXPECT_NEAR(static_cast<double>(MedianNs(longer.samples_ns)),
                3 * static_cast<double>(longer.part_ns), 3);
  }
}

TEST_F(PartScreenTest, WhatIsFasterOnAPartIsRunWhole) {
  LocalMeasurer measurer(options_, clock_);
  MeasureInput input = Input(1, "");
  input.incumbent_ns = 1'000'000'000;
  const MeasureResult result = Measure(measurer, input);
  ASSERT_EQ(result.outcome, Outcome::kOk) << result.message;
  EXPECT_GT(result.part_ns, 0);
  EXPECT_EQ(result.part, 1);
}

TEST_F(PartScreenTest, WhereTheWholeIsShortThereIsNoPart) {
  LocalMeasurer measurer(options_, clock_);
  MeasureInput input = Input(1, "");
  input.part_ns = 10'000'000'000;
  input.incumbent_ns = 1;
  MeasureResult result = Measure(measurer, input);
  EXPECT_EQ(result.part_ns, 0);
  EXPECT_EQ(result.part, 1);
  // Nor in a final.
  input = Input(2, kSlow);
  input.kind = MeasureKind::kFinal;
  input.incumbent_ns = 1;
  result = Measure(measurer, input);
  EXPECT_EQ(result.part_ns, 0);
  EXPECT_EQ(result.part, 1);
  EXPECT_GE(result.samples_ns.size(), 2u);
}

// What goes wrong on a part is looked at on the whole, which says what it was.
TEST_F(PartScreenTest, FaultsAreFoundOnThePartToo) {
  const std::map<std::string, Outcome> ends = {{"wrong", Outcome::kWrongAnswer},
                                               {"crash", Outcome::kRunCrashed},
                                               {"overrun", Outcome::kRunCrashed}};
  for (const auto& [hook, outcome] : ends) {
    SCOPED_TRACE(hook);
    options_.run_hook = [&](const MeasureInput& input) { return input.id == 2 ? hook : ""; };
    LocalMeasurer measurer(options_, clock_);
    EXPECT_EQ(Measure(measurer, Input(1, "")).outcome, Outcome::kOk);
    MeasureInput input = Input(2, kSlow);
    input.incumbent_ns = 1;
    const MeasureResult result = Measure(measurer, input);
    EXPECT_EQ(result.outcome, outcome) << result.message;
    EXPECT_TRUE(result.samples_ns.empty());
    input.id = 3;
    EXPECT_EQ(Measure(measurer, input).outcome, Outcome::kOk) << "the next one is measured";
  }
}

}  // namespace
}  // namespace hone::measure
