#include "runtime/lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/core/random.h"

namespace hone::runtime {
namespace {

/// Lets one thread go at a time, and another one at each point where they may be stopped; a seed
/// says which. Some are stopped for long.
class SeededScheduler final : public LaneObserver {
 public:
  SeededScheduler(uint64_t seed, int threads)
      : random_(seed), live_(static_cast<size_t>(threads), true) {
    for (int i = 0; i < threads; ++i) weights_.push_back(1 + random_.Below(random_.Below(20) + 1));
  }

  void At(Point, int) override { Stop(); }

  /// Hands over to whom the seed picks; returns when it is this thread's turn again.
  void Stop() {
    std::unique_lock<std::mutex> lock(mutex_);
    const size_t self = turn_;
    PickNext();
    changed_.wait(lock, [&] { return turn_ == self; });
  }

  void Begin(size_t self) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == self; });
  }

  void End(size_t self) {
    const std::lock_guard<std::mutex> lock(mutex_);
    live_[self] = false;
    PickNext();
  }

 private:
  void PickNext() {
    if (random_.Chance(0.1)) weights_[random_.Below(weights_.size())] = 1 + random_.Below(20);
    uint64_t sum = 0;
    for (size_t i = 0; i < live_.size(); ++i) sum += live_[i] ? weights_[i] : 0;
    if (sum == 0) return;
    uint64_t at = random_.Below(sum);
    for (size_t i = 0; i < live_.size(); ++i) {
      if (!live_[i]) continue;
      turn_ = i;
      if (at < weights_[i]) break;
      at -= weights_[i];
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Random random_;
  size_t turn_ = 0;
  std::vector<uint64_t> weights_;
  std::vector<bool> live_;
};

/// What the parts of one job saw. Only one thread goes at a time.
struct JobLog {
  SeededScheduler* scheduler = nullptr;
  std::vector<int> done;
  std::vector<int> in_slot;
  bool open = false;

  static void Part(void* context, int part, int slot) {
    JobLog& log = *static_cast<JobLog*>(context);
    EXPECT_TRUE(log.open) << "a part of a job that is over";
    EXPECT_EQ(++log.in_slot[static_cast<size_t>(slot)], 1) << "two threads in slot " << slot;
    log.scheduler->Stop();
    ++log.done[static_cast<size_t>(part)];
    --log.in_slot[static_cast<size_t>(slot)];
  }
};

constexpr int kWorkers = 4, kJobs = 12;

// Worker k sits on seat k; the last shares the first one's seat, as after threads were lent anew.
void WorkUntil(const bool& over, SeededScheduler& scheduler, Lane& lane, size_t worker) {
  scheduler.Begin(worker);
  const int seat = static_cast<int>(worker) % (std::min(lane.slots(), kWorkers) - 1) + 1;
  while (!over) {
    const uint64_t ticket = lane.ticket();
    scheduler.Stop();  // for as long as it takes for this to be a ticket of long ago
    if (ticket != 0) lane.WorkOn(ticket, seat);
  }
  scheduler.End(worker);
}

TEST(Lane, NoPartIsLostOrDoneTwiceWhereverThreadsStop) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    SeededScheduler scheduler(seed, kWorkers + 1);
    // From Lane::kFan slots on the owner looks at sums, from its square on at sums of sums.
    const int most = seed % 10 == 0 ? 70 : seed % 3 == 0 ? 20 : 4;
    // Some lanes have had so many jobs that their numbers come round, or that words are renewed.
    const uint64_t before = seed % 4 == 1   ? (uint64_t{1} << 43) - 5
                            : seed % 4 == 3 ? (uint64_t{1} << 42) - 5
                                            : 0;
    Lane lane(most, &scheduler, before);
    bool over = false;
    std::vector<std::thread> workers;
    for (size_t worker = 1; worker <= kWorkers; ++worker) {
      workers.emplace_back(WorkUntil, std::cref(over), std::ref(scheduler), std::ref(lane), worker);
    }
    scheduler.Begin(0);
    Random random(seed);
    std::vector<JobLog> logs(kJobs);
    for (JobLog& log : logs) {
      const int slots = static_cast<int>(random.Between(2, most));
      const int parts = static_cast<int>(random.Between(1, 3));
      log = {.scheduler = &scheduler,
             .done = std::vector<int>(static_cast<size_t>(slots * parts)),
             .in_slot = std::vector<int>(static_cast<size_t>(most)),
             .open = true};
      const uint64_t ticket = lane.Open({.part = &JobLog::Part,
                                         .context = &log,
                                         .slots = slots,
                                         .parts = parts,
                                         .fixed = slots <= kWorkers && random.Chance(0.2)});
      lane.WorkOn(ticket, 0);
      for (int i = 0; lane.FirstUndone(ticket) >= 0; ++i) {
        ASSERT_LT(i, 100'000) << "the job does not end";
        scheduler.Stop();
      }
      log.open = false;
      EXPECT_THAT(log.done, ::testing::Each(1));
    }
    over = true;
    scheduler.End(0);
    for (std::thread& worker : workers) worker.join();
  }
}

TEST(Lane, OneThreadAloneDoesAllPartsAndLateOnesFindNone) {
  Lane lane(3);
  std::vector<int> done(6);
  const Work::Part count = [](void* context, int part, int) {
    ++(*static_cast<std::vector<int>*>(context))[static_cast<size_t>(part)];
  };
  const uint64_t first = lane.Open({.part = count, .context = &done, .slots = 3, .parts = 2});
  EXPECT_EQ(lane.FirstUndone(first), 0);
  EXPECT_EQ(lane.WorkOn(first, 0), 6);
  EXPECT_EQ(lane.FirstUndone(first), -1);
  EXPECT_EQ(lane.WorkOn(first, 1), 0);
  const uint64_t second = lane.Open({.part = count, .context = &done, .slots = 2});
  EXPECT_EQ(lane.WorkOn(first, 1), 0) << "a ticket of a job that is over";
  EXPECT_EQ(lane.WorkOn(second, 2), 0) << "the job has no slot 2";
  EXPECT_EQ(lane.WorkOn(second, 1), 1) << "slot 0 is the owner's";
  EXPECT_EQ(lane.WorkOn(second, 0), 1);
  EXPECT_THAT(done, ::testing::ElementsAre(2, 2, 1, 1, 1, 1));
}

TEST(Lane, TheOwnerSeesTheLastPartOfManySlots) {
  Lane lane(600);
  const Work::Part nothing = [](void*, int, int) {};
  for (const int slots : {9, 64, 65, 600, 8, 513}) {
    for (const int parts : {1, 2}) {
      const uint64_t ticket = lane.Open(
          {.part = nothing, .context = nullptr, .slots = slots, .parts = parts, .fixed = true});
      for (int slot = slots - 1; slot >= 0; --slot) {
        const bool is_counted = slot > 0 || parts > 1;
        if (is_counted) {
          EXPECT_GE(lane.FirstUndone(ticket), 0) << slot;
        }
        EXPECT_EQ(lane.WorkOn(ticket, slot), parts);
      }
      EXPECT_EQ(lane.FirstUndone(ticket), -1) << slots << " slots";
    }
  }
}

TEST(Lane, ASlotThatWasLeftAloneForLongIsTakenAgain) {
  Lane lane(3, nullptr, (uint64_t{1} << 40) - 2);
  const Work::Part nothing = [](void*, int, int) {};
  for (const int slots : {3, 2, 2, 3}) {
    const uint64_t ticket =
        lane.Open({.part = nothing, .context = nullptr, .slots = slots, .parts = Lane::kMaxParts});
    EXPECT_EQ(lane.WorkOn(ticket, 0), slots * Lane::kMaxParts);
    EXPECT_EQ(lane.FirstUndone(ticket), -1);
    EXPECT_EQ(lane.WorkOn(ticket, slots - 1), 0) << "it comes late";
  }
}

TEST(Lane, FixedSharesAreLeftToTheirThreads) {
  Lane lane(2);
  std::vector<int> by(2, -1);
  const Work::Part note = [](void* context, int part, int slot) {
    (*static_cast<std::vector<int>*>(context))[static_cast<size_t>(part)] = slot;
  };
  const uint64_t ticket = lane.Open({.part = note, .context = &by, .slots = 2, .fixed = true});
  EXPECT_EQ(lane.WorkOn(ticket, 0), 1);
  EXPECT_EQ(lane.FirstUndone(ticket), 1);
  EXPECT_EQ(lane.WorkOn(ticket, 1), 1);
  EXPECT_EQ(lane.FirstUndone(ticket), -1);
  EXPECT_THAT(by, ::testing::ElementsAre(0, 1));
}

}  // namespace
}  // namespace hone::runtime
