#include "runtime/fork.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <new>
#include <thread>
#include <vector>

#include "base/core/random.h"
#include "tests/runtime/sluggish.h"
#include "tests/runtime/watched_clock.h"

namespace hone::runtime {
namespace {

using testing::Sluggish;
using testing::WatchedClock;

using Body = std::function<Status(int branch, Crew& crew)>;

Status RunFork(Fork& fork, Crew& crew, const Body& body, bool fixed = false) {
  return fork.Run(
      crew,
      [](void* context, int branch, Crew& each) {
        return (*static_cast<const Body*>(context))(branch, each);
      },
      const_cast<void*>(static_cast<const void*>(&body)), fixed);
}

/// Calls function(part, thread) for each part of a job of the crew's.
template <typename Function>
void RunParts(Crew& crew, int parts, const Function& function, int64_t expected_ns = 0) {
  const auto call = [&](int number, int slot) { function(number, crew.ThreadOf(slot)); };
  const Work::Part part = [](void* context, int number, int slot) {
    (*static_cast<decltype(call)*>(context))(number, slot);
  };
  crew.Run({.part = part,
            .context = const_cast<void*>(static_cast<const void*>(&call)),
            .slots = crew.width(),
            .parts = parts},
           expected_ns);
}

/// Branches of several jobs each; counts what is done and who does it.
class Branches {
 public:
  Branches(int branches, int threads, Random& random)
      : busy_(static_cast<size_t>(threads)), done_(static_cast<size_t>(branches)) {
    for (int b = 0; b < branches; ++b) {
      jobs_.emplace_back();
      for (int64_t j = random.Between(0, 6); j > 0; --j)
        jobs_.back().push_back(static_cast<int>(random.Between(1, 4)));
    }
  }

  Status Run(int branch, Crew& crew) {
    std::vector<std::vector<int>>& done = done_[static_cast<size_t>(branch)];
    done.clear();
    for (const int parts : jobs_[static_cast<size_t>(branch)]) {
      // Plain ints: each job orders them after the one before.
      std::vector<int>& counts = done.emplace_back(static_cast<size_t>(16 * parts), 0);
      RunParts(crew, parts, [&](int part, int thread) {
        // What belongs to a thread's number is used by one thread at a time.
        EXPECT_FALSE(busy_[static_cast<size_t>(thread)].exchange(true));
        ++counts[static_cast<size_t>(part)];
        busy_[static_cast<size_t>(thread)].store(false);
      });
    }
    return {};
  }

  void ExpectAllDoneOnce() const {
    for (size_t b = 0; b < jobs_.size(); ++b) {
      ASSERT_EQ(done_[b].size(), jobs_[b].size()) << "branch " << b;
      for (size_t j = 0; j < jobs_[b].size(); ++j) {
        const std::vector<int>& counts = done_[b][j];
        const auto end = std::find(counts.begin(), counts.end(), 0);
        const auto slots = (end - counts.begin()) / jobs_[b][j];
        EXPECT_GE(slots, 1);
        EXPECT_EQ((end - counts.begin()) % jobs_[b][j], 0);
        EXPECT_TRUE(std::all_of(counts.begin(), end, [](int count) { return count == 1; }));
        EXPECT_TRUE(std::all_of(end, counts.end(), [](int count) { return count == 0; }));
      }
    }
  }

 private:
  std::vector<std::vector<int>> jobs_;  // parts of each slot
  std::vector<std::atomic<bool>> busy_;
  std::vector<std::vector<std::vector<int>>> done_;
};

TEST(Fork, EveryPartOfEachBranchIsDoneOnceWhateverThreadsDo) {
  constexpr uint64_t kSeed = 31;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  for (int round = 0; round < 24; ++round) {
    const int threads = static_cast<int>(random.Between(1, 8));
    const int branches = static_cast<int>(random.Between(2, 5));
    const int64_t spin_ns = random.Chance(0.3) ? 0 : ThreadPool::kSpinNs;
    const bool fixed = random.Chance(0.2);
    Sluggish sluggish;
    auto crew = Crew::Create({.threads = threads, .spin_ns = spin_ns, .observer = &sluggish});
    ASSERT_TRUE(crew.ok());
    Fork fork(branches, threads, spin_ns, &sluggish);
    Branches counted(branches, threads, random);
    for (int run = 0; run < 60; ++run) {
      const Status status = RunFork(
          fork, **crew, [&](int branch, Crew& each) { return counted.Run(branch, each); }, fixed);
      ASSERT_TRUE(status.ok());
      counted.ExpectAllDoneOnce();
      ASSERT_FALSE(::testing::Test::HasFailure())
          << "round " << round << ", run " << run << ": " << branches << " branches on " << threads
          << " threads";
    }
  }
}

TEST(Fork, ThreadsTakeABranchEachAndTheThirdHelps) {
  auto crew = Crew::Create({.threads = 3});
  ASSERT_TRUE(crew.ok());
  constexpr int64_t kLongNs = 2'000'000'000;
  Fork fork(2, 3, kLongNs);
  std::atomic<int> led{0};
  std::atomic<bool> helped{false};
  const Body body = [&](int branch, Crew& each) {
    led.fetch_add(1);
    while (led.load() < 2) std::this_thread::yield();  // both at once
    while (branch == 0 && each.width() == 1) std::this_thread::yield();
    const int leader = each.ThreadOf(0);
    if (branch == 1) return Status();
    while (!helped.load()) {
      RunParts(each, 1, [&](int, int thread) {
        if (thread != leader) helped.store(true);
        std::this_thread::yield();
      });
    }
    return Status();
  };
  EXPECT_TRUE(RunFork(fork, **crew, body).ok());
  EXPECT_EQ(led.load(), 2);
}

TEST(Fork, TheCallerDoesAllWhereNobodyComes) {
  // An executor that makes its calls in turn, the last first.
  const Executor executor{
      .parallel_for = [](void*, int32_t n, void (*body)(void*, int32_t), void* context) {
        for (int32_t i = n - 1; i >= 0; --i) body(context, i);
      }};
  Crew crew(executor, 4);
  Fork fork(3, 4, 0);
  std::vector<int> order;
  const Body body = [&](int branch, Crew& each) {
    EXPECT_EQ(each.width(), 1);
    order.push_back(branch);
    return Status();
  };
  EXPECT_TRUE(RunFork(fork, crew, body).ok());
  EXPECT_THAT(order, ::testing::ElementsAre(0, 1, 2));
}

TEST(Fork, AllBranchesEndAndTheFirstThatFailsIsTold) {
  auto crew = Crew::Create({.threads = 2});
  ASSERT_TRUE(crew.ok());
  Fork fork(4, 2, ThreadPool::kSpinNs);
  std::atomic<int> ended{0};
  const Body body = [&](int branch, Crew&) -> Status {
    ended.fetch_add(1);
    if (branch == 3) return {StatusCode::kInternal, "the last"};
    if (branch == 1) throw std::bad_alloc();
    return {};
  };
  const Status status = RunFork(fork, **crew, body);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ended.load(), 4);
  EXPECT_TRUE(RunFork(fork, **crew, [](int, Crew&) { return Status(); }).ok());
}

/// Runs a fork of two branches on two threads, whose caller leads one. The worker leads the other
/// and then helps, if its crew lets it.
template <typename CallersBranch, typename WorkersBranch>
void LeadOneEach(Fork& fork, Crew& crew, const CallersBranch& callers,
                 const WorkersBranch& workers) {
  crew.RunOnEach(2, [](int) {});  // it is awake now
  std::atomic<int> led{0};
  const Body body = [&](int, Crew& each) {
    led.fetch_add(1);
    while (led.load() < 2) std::this_thread::yield();
    if (each.ThreadOf(0) == 0) {
      callers(each);
    } else {
      workers();
    }
    return Status();
  };
  EXPECT_TRUE(RunFork(fork, crew, body).ok());
}

/// The leader, which is the test's thread, waits for a helper's part of a job for so long.
void LetLeaderWait(Crew& crew, const WatchedClock& clock, int64_t wait_ns, int64_t expected_ns) {
  while (crew.width() == 1) std::this_thread::yield();
  std::atomic<bool> begun{false};
  RunParts(
      crew, 1,
      [&](int, int thread) {
        if (thread == 0) {
          while (!begun.load()) std::this_thread::yield();
          return;
        }
        const int looks = clock.looks();
        begun.store(true);
        clock.AwaitLooks(looks, 3);
        clock.SleepNs(wait_ns);
      },
      expected_ns);
}

constexpr int64_t kLongNs = 2'000'000'000;

TEST(Fork, AHelperThatALeaderWaitsForTwiceIsLeftOut) {
  const WatchedClock clock;
  auto crew = Crew::Create({.threads = 2, .clock = &clock});
  ASSERT_TRUE(crew.ok());
  Fork fork(2, 2, kLongNs, nullptr, clock);
  const auto let_wait = [&](int64_t wait_ns, int64_t expected_ns) {
    LeadOneEach(
        fork, **crew, [&](Crew& each) { LetLeaderWait(each, clock, wait_ns, expected_ns); }, [] {});
  };
  for (int run = 0; run < 3; ++run) let_wait(1'000'000, 1'100'000);
  EXPECT_EQ((*crew)->width(), 2) << "no longer than the work itself";
  let_wait(1'000'000, 10'000);
  EXPECT_EQ((*crew)->width(), 2) << "once";
  let_wait(1'000'000, 10'000);
  EXPECT_EQ((*crew)->width(), 1);
  clock.SleepNs(51'000'000);
  (*crew)->Begin();
  EXPECT_EQ((*crew)->width(), 2);
  (*crew)->End();
}

// What a stopped run took is not what the next is expected to take.
TEST(Fork, AThreadWhoseBranchIsWaitedForTwiceIsLeftOut) {
  const WatchedClock clock;
  auto crew = Crew::Create({.threads = 2, .clock = &clock});
  ASSERT_TRUE(crew.ok());
  Fork fork(2, 2, /*spin_ns=*/0, nullptr, clock);
  for (const int64_t wait_ns : {20'000, 1'000'000, 1'000'000}) {
    EXPECT_EQ((*crew)->width(), 2);
    LeadOneEach(
        fork, **crew, [](Crew&) {},
        [&] {
          clock.AwaitLooks(clock.looks(), 3);
          clock.SleepNs(wait_ns);
        });
  }
  EXPECT_EQ((*crew)->width(), 1);
}

std::atomic<int> yields{0};

TEST(Fork, AHelperThatWasStoppedGivesWayBetweenParts) {
  const WatchedClock clock;
  auto crew = Crew::Create({.threads = 2,
                            .clock = &clock,
                            .yield = [] { yields.fetch_add(1); },
                            .stops = [] { return int64_t{0}; }});
  ASSERT_TRUE(crew.ok());
  Fork fork(2, 2, kLongNs, nullptr, clock);
  const auto work = [&](Crew& each) {
    while (each.width() == 1) std::this_thread::yield();
    yields.store(0);
    std::atomic<int> done{0};
    RunParts(each, 20, [&](int part, int thread) {
      if (thread == 0) {
        while (done.load() < 20) std::this_thread::yield();
        return;
      }
      if (part < 20) return;  // the caller's
      clock.SleepNs(300'000);
      done.fetch_add(1);
    });
  };
  LeadOneEach(fork, **crew, work, [] {});
  EXPECT_EQ(yields.load(), 0);
  LeadOneEach(
      fork, **crew, [&](Crew& each) { LetLeaderWait(each, clock, 1'000'000, 10'000); }, [] {});
  LeadOneEach(fork, **crew, work, [] {});
  EXPECT_GE(yields.load(), 5) << "each millisecond, parts being 0.3";
}

}  // namespace
}  // namespace hone::runtime
