#include <map>
#include <memory>
#include <string>

#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "ir/text.h"
#include "measure/local_measurer.h"
#include "tests/test_paths.h"

namespace hone::measure {
namespace {

// The weights that a runner makes up have the zeros that the workload knows of: a kernel that
// leaves them out gives what the one that multiplies by them gives, which has no sparse algorithm
// in it.
TEST(PrunedCandidateTest, WeightsHaveTheZerosThatTheWorkloadKnowsOf) {
  const absl::StatusOr<ir::Workload> workload = ir::ParseWorkload(
      "workload 1\nx0: f32[4,96] input range(-1,1)\n"
      "x1: f32[96,40] constant panels(1,16,[20,20,20,24,24,24,25,25],18)\n"
      "s0: f32[4,40] output = sum[r0:96] (x0[i0, r0] * x1[r0, i1])\n");
  ASSERT_TRUE(workload.ok()) << workload.status();
  const SystemMonotonicClock clock;
  LocalMeasurerOptions options;
  options.builder.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder";
  options.builder.processes = 1;
  options.runner.program = hone::testing::BuildDir() + "/libexec/hone/hone-runner";
  options.device_class = "a test's";
  LocalMeasurer measurer(options, clock);
  for (const char* trace : {"s1 = algorithm(s0, panels, 16)", "s1 = algorithm(s0, bitmask, 16)",
                            "parallel(s0.i0, 1)"}) {
    measurer.Submit({.id = 1,
                     .workload = std::make_shared<ir::Workload>(*workload),
                     .target = "cpu:avx2,threads=1",
                     .trace = trace,
                     .seed = 7});
    while (measurer.num_in_flight() > 0) {
      for (const MeasureResult& result : measurer.Collect(-1))
        EXPECT_EQ(result.outcome, Outcome::kOk) << trace << ": " << result.message;
    }
  }
}

}  // namespace
}  // namespace hone::measure
