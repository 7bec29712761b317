// Sleeping, waking, sharing and forking, with threads that stop at every point by a seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <immintrin.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "base/core/random.h"
#include "base/core/timed_wait.h"
#include "runtime/crew.h"
#include "runtime/fork.h"
#include "tests/runtime/sluggish.h"

namespace hone::runtime::testing {
namespace {

/// Ends the program, and says at which seed, where that takes so long that it hangs.
class HangGuard {
 public:
  explicit HangGuard(uint64_t seed) : thread_([this, seed] { Watch(seed); }) {}
  ~HangGuard() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void Watch(uint64_t seed) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (WaitFor(changed_, lock, 60'000'000'000, [&] { return over_; })) return;
    std::fprintf(stderr, "seed %llu hangs\n", static_cast<unsigned long long>(seed));
    std::abort();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

/// A job whose parts count themselves: plain ints, which the crew must order.
void RunJob(Crew& crew, int slots, int parts) {
  std::vector<int> done(static_cast<size_t>(slots * parts), 0);
  const Work::Part part = [](void* context, int number, int) {
    ++(*static_cast<std::vector<int>*>(context))[static_cast<size_t>(number)];
  };
  // As if it took next to nothing: who is waited for is left out for a while.
  crew.Run({.part = part, .context = &done, .slots = slots, .parts = parts}, 1'000);
  EXPECT_THAT(done, ::testing::Each(1));
}

/// One caller: jobs, jobs that are waited for, and forks, in an order of its own.
void Call(const std::shared_ptr<ThreadPool>& pool, uint64_t seed, int64_t spin_ns,
          LaneObserver& stops) {
  Random random(seed);
  const SystemMonotonicClock clock;
  const int threads = static_cast<int>(random.Between(2, pool->threads()));
  const int branches = static_cast<int>(random.Between(2, 4));
  Crew crew(pool, threads);
  Fork fork(branches, threads, spin_ns, &stops);
  for (int run = 0; run < 24; ++run) {
    if (random.Chance(0.1)) clock.SleepNs(random.Between(0, 2'500'000));
    const int parts = static_cast<int>(random.Between(1, 3));
    crew.Begin();
    if (random.Chance(0.3)) {
      struct Counted {
        int parts;
        std::vector<int> led;
      } counted{parts, std::vector<int>(static_cast<size_t>(branches), 0)};
      const Status status = fork.Run(
          crew,
          [](void* context, int branch, Crew& each) {
            auto& of = *static_cast<Counted*>(context);
            for (int job = 0; job < 3; ++job) RunJob(each, each.width(), of.parts);
            ++of.led[static_cast<size_t>(branch)];
            return Status();
          },
          &counted, /*fixed=*/false);
      EXPECT_TRUE(status.ok());
      EXPECT_THAT(counted.led, ::testing::Each(1));
    } else {
      RunJob(crew, static_cast<int>(random.Between(1, threads)), parts);
    }
    crew.End();
  }
}

TEST(SeededStops, NoPartIsLostAndNothingHangsWhereverThreadsStop) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const HangGuard guard(seed);
    Random random(seed);
    SeededStops stops(seed << 32);
    // More than five threads wake each other.
    const int threads = seed % 6 == 0 ? 9 : static_cast<int>(random.Between(2, 4));
    const int64_t spin_ns = random.Chance(0.5) ? 0 : ThreadPool::kSpinNs;
    auto pool = ThreadPool::Create({.threads = threads, .spin_ns = spin_ns, .observer = &stops});
    ASSERT_TRUE(pool.ok());
    std::thread other([&] { Call(*pool, 2 * seed + 1, spin_ns, stops); });
    Call(*pool, 2 * seed, spin_ns, stops);
    other.join();
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
}

// Between its last look at the parts and what it says to others a caller cannot be stopped by a
// test: the last part ends at every moment around that one.
TEST(SeededStops, ACallerWakesThatFallsAsleepJustAsTheLastPartEnds) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const HangGuard guard(seed);
    Random random(seed);
    auto crew = Crew::Create({.threads = 2, .spin_ns = 0});
    ASSERT_TRUE(crew.ok());
    for (int run = 0; run < 2000; ++run) {
      const int64_t pauses = random.Between(16, 160);  // the caller looks 64 times, then sleeps
      std::atomic<bool> begun{false};
      (*crew)->RunOnEach(2, [&](int slot) {
        if (slot == 0) {
          while (!begun.load()) std::this_thread::yield();
          return;
        }
        begun.store(true);
        for (int64_t i = 0; i < pauses; ++i) _mm_pause();
      });
    }
  }
}

}  // namespace
}  // namespace hone::runtime::testing
