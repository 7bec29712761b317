#include "runtime/sleeper.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/core/clock.h"
#include "base/core/cpu.h"
#include "base/core/random.h"

namespace hone::runtime {
namespace {

cpu_set_t SetOf(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  return set;
}

TEST(TakeCpu, LeavesTheOthersAndRefusesToTakeTheLast) {
  cpu_set_t set = SetOf({1, 4, 7});
  EXPECT_TRUE(TakeCpu(4, -1, set));
  const cpu_set_t left = SetOf({1, 7});
  EXPECT_TRUE(CPU_EQUAL(&set, &left));
  set = SetOf({1, 7});
  EXPECT_FALSE(TakeCpu(4, -1, set)) << "not one of them";
  EXPECT_FALSE(TakeCpu(-1, -1, set));
  EXPECT_FALSE(TakeCpu(CPU_SETSIZE, -1, set));
  set = SetOf({4});
  EXPECT_FALSE(TakeCpu(4, -1, set));
}

TEST(TakeCpu, PutsBackWhatItTookBefore) {
  constexpr uint64_t kSeed = 5;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> cpus;
    for (int cpu = 0; cpu < 8; ++cpu) {
      if (random.Chance(0.6)) cpus.push_back(cpu);
    }
    const cpu_set_t all = SetOf(cpus);
    cpu_set_t set = all;
    int barred = -1;
    for (int wake = 0; wake < 10; ++wake) {
      const int here = static_cast<int>(random.Below(8));
      cpu_set_t next = set;
      if (!TakeCpu(here, barred, next)) continue;
      set = next;
      barred = here;
      EXPECT_EQ(CPU_COUNT(&set), CPU_COUNT(&all) - 1);
      EXPECT_FALSE(CPU_ISSET(here, &set));
    }
    if (barred >= 0) CPU_SET(barred, &set);
    EXPECT_TRUE(CPU_EQUAL(&set, &all)) << "round " << round;
  }
}

/// Holds who is about to wake from seat 1.
class HoldWaker final : public LaneObserver {
 public:
  void At(Point point, int slot) override {
    if (slot != 1 || point != Point::kBeforeWake) return;
    held.store(true);
    held.notify_all();
    open.wait(false);
  }
  std::atomic<bool> held{false}, open{false};
};

/// A thread that sleeps until told that there is work.
struct Asleep {
  std::atomic<int> work{0};
  std::atomic<pid_t> id{0};
  Sleeper sleeper;
  std::atomic<int> woken{0};
  std::thread thread;

  // With the CPU that it falls asleep on.
  void Start(int sleeps, int cpu, const cpu_set_t& all) {
    thread = std::thread([=, this] {
      const std::atomic<int> seat{2};
      sleeper.MayMove(::gettid());
      for (int done = 0; done < sleeps; ++done) {
        const cpu_set_t one = SetOf({cpu});
        ::sched_setaffinity(0, sizeof(one), &one);
        ::sched_setaffinity(0, sizeof(all), &all);
        id.store(::gettid());
        sleeper.Sleep([&] { return work.load() > done; }, seat);
        woken.store(done + 1);
        woken.notify_all();
      }
      woken.wait(sleeps);  // the test looks at its CPUs
    });
  }
  void AwaitSleep() const {
    while (!sleeper.IsAsleep()) std::this_thread::yield();
  }
  void End() {
    woken.store(-1);
    woken.notify_all();
    thread.join();
  }
};

// The waker sees a thread asleep and is stopped; another wakes the thread meanwhile.
TEST(Sleeper, AWakerThatComesLateLeavesTheThreadsCpusAlone) {
  const std::vector<int> cpus = AllowedCpus();
  if (cpus.size() < 2) GTEST_SKIP() << "one CPU";
  const cpu_set_t all = SetOf(cpus), one = SetOf({cpus[0]});
  HoldWaker hold;
  Asleep asleep;
  asleep.sleeper.Observe(&hold);
  asleep.Start(1, cpus[0], all);
  asleep.AwaitSleep();
  std::thread late([&] {
    ::sched_setaffinity(0, sizeof(one), &one);  // where the other fell asleep
    asleep.sleeper.WakeIfAsleep(1);
  });
  hold.held.wait(false);
  asleep.work.store(1);
  asleep.sleeper.WakeIfAsleep(0);
  asleep.woken.wait(0);
  hold.open.store(true);
  hold.open.notify_all();
  late.join();
  cpu_set_t after;
  ASSERT_EQ(::sched_getaffinity(asleep.id.load(), sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&after, &all));
  asleep.End();
}

/// Holds a thread that is about to fall asleep.
class HoldSleeper final : public LaneObserver {
 public:
  void At(Point point, int) override {
    if (point != Point::kBeforeSleep || held.exchange(true)) return;
    held.notify_all();
    open.wait(false);
  }
  std::atomic<bool> held{false}, open{false};
};

TEST(Sleeper, WorkThatComesJustBeforeItSleepsKeepsItAwake) {
  const std::vector<int> cpus = AllowedCpus();
  HoldSleeper hold;
  Asleep asleep;
  asleep.sleeper.Observe(&hold);
  asleep.Start(1, cpus[0], SetOf(cpus));
  hold.held.wait(false);
  asleep.work.store(1);
  asleep.sleeper.WakeIfAsleep(0);  // it is not
  hold.open.store(true);
  hold.open.notify_all();
  const SystemMonotonicClock clock;
  for (int turn = 0; turn < 10'000 && asleep.woken.load() == 0; ++turn) clock.SleepNs(1'000'000);
  EXPECT_EQ(asleep.woken.load(), 1) << "within ten seconds";
  asleep.sleeper.WakeIfAsleep(0);
  asleep.woken.wait(0);
  asleep.End();
}

TEST(Sleeper, ManyWakersAtOnceLoseNoWakeAndNoCpu) {
  constexpr int kSleeps = 300;
  const std::vector<int> cpus = AllowedCpus();
  const cpu_set_t all = SetOf(cpus);
  Asleep asleep;
  asleep.Start(kSleeps, cpus[0], all);
  std::vector<std::thread> wakers;
  for (int waker = 0; waker < 3; ++waker) {
    wakers.emplace_back([&] {
      for (int work = 0; work < kSleeps; work = asleep.woken.load()) {
        int before = work;
        asleep.work.compare_exchange_strong(before, work + 1);
        asleep.sleeper.WakeIfAsleep(0);
      }
    });
  }
  for (int woken = 0; woken < kSleeps; woken = asleep.woken.load()) asleep.woken.wait(woken);
  for (std::thread& waker : wakers) waker.join();
  cpu_set_t after;
  ASSERT_EQ(::sched_getaffinity(asleep.id.load(), sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&after, &all));
  asleep.End();
}

}  // namespace
}  // namespace hone::runtime
