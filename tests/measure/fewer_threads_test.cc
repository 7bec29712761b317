#include <memory>
#include <vector>

#include "gtest/gtest.h"

#include "ir/text.h"
#include "measure/local_measurer.h"
#include "tests/measure/gemm_candidate.h"
#include "tests/test_paths.h"

namespace hone::measure {
namespace {

// All in one process: a candidate that wants fewer threads leaves some of them idle.
TEST(FewerThreads, AreComparedWithAll) {
  const absl::StatusOr<ir::Workload> gemm = ir::ParseWorkload(kGemm);
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  LocalMeasurerOptions options;
  const std::string programs = hone::testing::BuildDir() + "/libexec/hone/";
  options.builder.program = programs + "hone-builder";
  options.runner.program = programs + "hone-runner";
  options.device_class = "a test's";
  const SystemMonotonicClock clock;
  LocalMeasurer measurer(options, clock);
  std::vector<MeasureInput> inputs(3, {.id = 1,
                                       .workload = std::make_shared<ir::Workload>(*gemm),
                                       .target = "cpu:avx2,threads=4",
                                       .trace = kPacked,
                                       .seed = 7});
  inputs[1].threads = 1;
  inputs[2].threads = 2;
  for (const ComparedTrace& compared : measurer.Compare(inputs, 3)) {
    EXPECT_EQ(compared.error.outcome, Outcome::kOk) << compared.error.message;
    EXPECT_EQ(compared.samples_ns.size(), 3u);
  }
}

}  // namespace
}  // namespace hone::measure
