#include "worker/bench.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>

#include "gtest/gtest.h"

#include "measure/device_lock.h"

// What a worker says of the device time that a job took.
namespace hone::worker {
namespace {

constexpr char kWorkload[] =
    "workload 1\n"
    "x0: f32[8,16] input range(-1,1)\n"
    "x1: f32[16,4] constant\n"
    "s0: f32[8,4] output = sum[r0:16] (x0[i0, r0] * x1[r0, i1])\n";

class BenchTest : public ::testing::Test {
 protected:
  BenchTest() { EXPECT_NE(::mkdtemp(folder_.data()), nullptr) << folder_; }
  ~BenchTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_ = (std::filesystem::temp_directory_path() / "hone-bench-XXXXXX").string();
  SystemMonotonicClock clock_;
};

TEST_F(BenchTest, BuildingAComparisonAndWaitingForTheDeviceCostsNothing) {
  measure::LocalMeasurerOptions options;
  options.build = [this](const measure::MeasureInput&) {
    clock_.SleepNs(50'000'000);
    measure::BuiltCandidate built;
    built.error = {measure::Outcome::kBuildFailed, "a test's"};
    return built;
  };
  auto other = measure::DeviceLock::Open(folder_, "cpu:0");
  auto own = measure::DeviceLock::Open(folder_, "cpu:0");
  ASSERT_TRUE(other.ok() && own.ok());
  std::promise<proto::WorkResult> finished;
  Bench bench(options, proto::WorkerRole::kBoth, *std::move(own), clock_,
              {.started = [](const std::vector<int64_t>&) {},
               .finished = [&](int64_t, proto::WorkResult result) { finished.set_value(result); },
               .busy = [](int64_t) {}});
  other->Take();
  DeskJob job{.number = 1};
  job.job = {.kind = proto::JobKind::kCompare,
             .workload = kWorkload,
             .target = "cpu:avx2,threads=1",
             .rounds = 3};
  job.job.traces = {"", "parallel(s0.i0, 1)"};
  bench.Add(job);
  clock_.SleepNs(200'000'000);
  other->Free();
  const proto::WorkResult result = finished.get_future().get();
  ASSERT_EQ(result.compared.size(), 2u);
  EXPECT_EQ(result.compared[0].outcome, measure::Outcome::kBuildFailed);
  EXPECT_EQ(result.run_ns, 0) << "nothing ran";
}

}  // namespace
}  // namespace hone::worker
