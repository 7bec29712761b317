#include "worker/bench.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "base/subprocess.h"
#include "measure/device_lock.h"
#include "measure/others_watch.h"

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

  measure::DeviceLock Lock() const {
    auto lock = measure::DeviceLock::Open(folder_, "cpu:0");
    EXPECT_TRUE(lock.ok()) << lock.status();
    return *std::move(lock);
  }

  // Compares two that cannot be built; `before` and `meanwhile` run on the calling thread.
  proto::WorkResult Compared(const std::function<void()>& before,
                             const std::function<void()>& meanwhile) {
    measure::LocalMeasurerOptions options;
    options.build = [this](const measure::MeasureInput&) {
      clock_.SleepNs(50'000'000);
      measure::BuiltCandidate built;
      built.error = {measure::Outcome::kBuildFailed, "a test's"};
      return built;
    };
    std::promise<proto::WorkResult> finished;
    Bench bench(options, proto::WorkerRole::kBoth, Lock(), clock_,
                {.started = [](const std::vector<int64_t>&) {},
                 .finished = [&](int64_t, proto::WorkResult result) { finished.set_value(result); },
                 .busy = [](int64_t) {}});
    before();
    DeskJob job{.number = 1};
    job.job = {.kind = proto::JobKind::kCompare,
               .workload = kWorkload,
               .target = "cpu:avx2,threads=1",
               .rounds = 3};
    job.job.traces = {"", "parallel(s0.i0, 1)"};
    bench.Add(job);
    meanwhile();
    return finished.get_future().get();
  }

  std::string folder_ = (std::filesystem::temp_directory_path() / "hone-bench-XXXXXX").string();
  SystemMonotonicClock clock_;
};

TEST_F(BenchTest, BuildingAComparisonAndWaitingForTheDeviceCostsNothing) {
  measure::DeviceLock other = Lock();
  const proto::WorkResult result = Compared([&] { other.Take(); },
                                            [&] {
                                              clock_.SleepNs(200'000'000);
                                              other.Free();
                                            });
  ASSERT_EQ(result.compared.size(), 2u);
  EXPECT_EQ(result.compared[0].outcome, measure::Outcome::kBuildFailed);
  EXPECT_EQ(result.run_ns, 0) << "nothing ran";
}

TEST_F(BenchTest, AComparisonBesideOtherProgramsIsNoisy) {
  // The shell's child, which is not ours, ends when the pipe is closed.
  SubprocessOptions options;
  options.argv = {"/bin/sh", "-c", "while :; do :; done & read end; kill $!"};
  options.standard_output = options.standard_error = ChildStream::kNull;
  const auto busy = Subprocess::Spawn(options);
  ASSERT_TRUE(busy.ok()) << busy.status();
  const proto::WorkResult result =
      Compared([&] { clock_.SleepNs(2 * measure::OthersWatch::kLeastNs); }, [] {});
  EXPECT_TRUE(result.noisy);
}

}  // namespace
}  // namespace hone::worker
