#include "worker/build_bench.h"

#include <atomic>
#include <future>
#include <string>

#include "gtest/gtest.h"

#include "tests/measure/gemm_candidate.h"
#include "tests/test_paths.h"

// Build leases that are taken back while they are built.
namespace hone::worker {
namespace {

DeskJob Job(int64_t number) {
  DeskJob job{.number = number, .kind = proto::LeaseKind::kBuild, .wanted = {0}};
  job.job = {.workload = measure::kGemm,
             .target = "cpu:avx2,threads=1",
             .traces = {measure::kPacked},
             .seed = 7};
  return job;
}

TEST(BuildBenchTest, ALeaseThatIsGivenUpFreesItsBuilder) {
  measure::BuilderOptions options;
  options.program = hone::testing::BuildDir() + "/libexec/hone/hone-builder";
  options.test_hooks = true;
  options.job_timeout_ns = 120'000'000'000;
  std::promise<void> begun;
  std::promise<int64_t> built;
  std::atomic<int> ends = 0;
  const auto hook = [&](const measure::MeasureInput& input) -> std::string {
    if (input.id != 1) return "";
    begun.set_value();
    return "hang";
  };
  const SystemMonotonicClock clock;
  BuildBench bench(options, hook, clock,
                   {.built =
                        [&](int64_t number, const std::vector<HeldArtifact>&, int64_t) {
                          ++ends;
                          built.set_value(number);
                        },
                    .finished = [&](int64_t, const proto::WorkResult&) { ++ends; },
                    .busy = [](int64_t) {}});
  const int64_t start_ns = clock.NowNs();
  bench.Add(Job(1));
  bench.Add(Job(2));
  begun.get_future().get();
  bench.Cancel(1);
  EXPECT_EQ(built.get_future().get(), 2) << "the one builder has time for it";
  EXPECT_LT(clock.NowNs() - start_ns, 60'000'000'000) << "a job's limit is 120 s";
  EXPECT_EQ(ends, 1) << "nobody waits for the other";
}

}  // namespace
}  // namespace hone::worker
