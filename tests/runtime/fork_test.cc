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

namespace hone::runtime {
namespace {

using testing::Sluggish;

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
void RunParts(Crew& crew, int parts, const Function& function) {
  const auto call = [&](int number, int slot) { function(number, crew.ThreadOf(slot)); };
  const Work::Part part = [](void* context, int number, int slot) {
    (*static_cast<decltype(call)*>(context))(number, slot);
  };
  crew.Run({.part = part,
            .context = const_cast<void*>(static_cast<const void*>(&call)),
            .slots = crew.width(),
            .parts = parts});
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

}  // namespace
}  // namespace hone::runtime
