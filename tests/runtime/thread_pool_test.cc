#include "runtime/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "base/core/clock.h"
#include "base/core/cpu.h"
#include "base/core/random.h"

namespace hone::runtime {
namespace {

std::unique_ptr<ThreadPool> NewPool(const ThreadPool::Options& options) {
  auto pool = ThreadPool::Create(options);
  EXPECT_TRUE(pool.ok()) << pool.status().ToString();
  return *std::move(pool);
}

TEST(ThreadPool, EachThreadRunsOnceAndResultsAreVisible) {
  const auto pool = NewPool({.threads = 4});
  std::vector<int> counts(4, 0);  // plain ints: the pool itself must order the accesses
  for (int run = 0; run < 2000; ++run) {
    const int n = 1 + run % 4;
    pool->Run(n, [&](int thread) { ++counts[static_cast<size_t>(thread)]; });
  }
  EXPECT_THAT(counts, ::testing::ElementsAre(2000, 1500, 1000, 500));
}

TEST(ThreadPool, SleepingWorkersWake) {
  const auto pool = NewPool({.threads = 3});
  const SystemMonotonicClock clock;
  int sum[3] = {};
  for (int run = 0; run < 20; ++run) {
    clock.SleepNs(2'000'000);  // longer than any spinning
    pool->Run(3, [&](int thread) { ++sum[thread]; });
  }
  EXPECT_THAT(sum, ::testing::Each(20));
}

TEST(ThreadPool, CallerSleepsForASlowWorker) {
  const auto pool = NewPool({.threads = 2});
  const SystemMonotonicClock clock;
  bool finished = false;
  pool->Run(2, [&](int thread) {
    if (thread == 0) return;
    clock.SleepNs(20'000'000);
    finished = true;
  });
  EXPECT_TRUE(finished);
}

TEST(ThreadPool, DifferentWidthsInAnyOrder) {
  constexpr uint64_t kSeed = 29;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  const auto pool = NewPool({.threads = 6});
  const SystemMonotonicClock clock;
  for (int run = 0; run < 500; ++run) {
    const int n = static_cast<int>(random.Between(1, 6));
    if (random.Chance(0.02)) clock.SleepNs(1'000'000);
    std::vector<int> seen(6, 0);
    pool->Run(n, [&](int thread) { ++seen[static_cast<size_t>(thread)]; });
    EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), n);
  }
}

TEST(ThreadPool, ConcurrentCallersTakeTurns) {
  const auto pool = NewPool({.threads = 2});
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(4, 0);
  for (size_t caller = 0; caller < sums.size(); ++caller) {
    callers.emplace_back([&, caller] {
      for (int run = 0; run < 300; ++run) {
        int64_t parts[2] = {};
        pool->Run(2, [&](int thread) { parts[thread] = 1; });
        sums[caller] += parts[0] + parts[1];
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(sums, ::testing::Each(600));
}

TEST(ThreadPool, PinnedWorkersStayOnTheirCpu) {
  const std::vector<int> cpus = AllowedCpus();
  const auto pool = NewPool({.threads = 3, .cpus = cpus});
  std::vector<int> cpu(3, -1);
  pool->Run(3, [&](int thread) { cpu[static_cast<size_t>(thread)] = ::sched_getcpu(); });
  EXPECT_EQ(cpu[1], cpus[1 % cpus.size()]);
  EXPECT_EQ(cpu[2], cpus[2 % cpus.size()]);
}

TEST(ThreadPool, RefusesCpusThatAreNotAllowedAndOddSizes) {
  EXPECT_EQ(ThreadPool::Create({.threads = 2, .cpus = {8191}}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(ThreadPool::Create({.threads = 0}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ThreadPool::Create({.threads = 1025}).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hone::runtime
