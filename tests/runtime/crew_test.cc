#include "runtime/crew.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <immintrin.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <tuple>
#include <vector>

#include "base/core/clock.h"
#include "base/core/cpu.h"
#include "base/core/random.h"
#include "runtime/spin_budget.h"
#include "tests/runtime/asleep.h"
#include "tests/runtime/sluggish.h"
#include "tests/runtime/watched_clock.h"

namespace hone::runtime {
namespace {

using testing::AwaitSleep;
using testing::Sluggish;
using testing::WatchedClock;

std::unique_ptr<Crew> NewCrew(const ThreadPool::Options& options) {
  auto crew = Crew::Create(options);
  EXPECT_TRUE(crew.ok()) << crew.status().ToString();
  return *std::move(crew);
}

/// Calls function(part, slot) for each part.
template <typename Function>
void RunParts(Crew& crew, int slots, int parts, const Function& function, int64_t expected_ns = 0) {
  const Work::Part part = [](void* context, int number, int slot) {
    (*static_cast<const Function*>(context))(number, slot);
  };
  crew.Run({.part = part,
            .context = const_cast<void*>(static_cast<const void*>(&function)),
            .slots = slots,
            .parts = parts},
           expected_ns);
}

TEST(Crew, EachThreadRunsOnceAndResultsAreVisible) {
  const auto crew = NewCrew({.threads = 4});
  std::vector<int> counts(4, 0);  // plain ints: the crew itself must order the accesses
  for (int run = 0; run < 2000; ++run) {
    const int n = 1 + run % 4;
    crew->RunOnEach(n, [&](int slot) { ++counts[static_cast<size_t>(slot)]; });
  }
  EXPECT_THAT(counts, ::testing::ElementsAre(2000, 1500, 1000, 500));
}

TEST(Crew, SleepingThreadsWake) {
  const auto crew = NewCrew({.threads = 3});
  const SystemMonotonicClock clock;
  int sum[3] = {};
  for (int run = 0; run < 20; ++run) {
    clock.SleepNs(2'000'000);  // longer than any spinning
    crew->RunOnEach(3, [&](int slot) { ++sum[slot]; });
  }
  EXPECT_THAT(sum, ::testing::Each(20));
}

// Each that wakes wakes some others.
TEST(Crew, ManySleepingThreadsWake) {
  constexpr int kThreads = 27;
  const auto crew = NewCrew({.threads = kThreads, .spin_ns = 0});
  const SystemMonotonicClock clock;
  std::vector<int> sum(kThreads, 0);
  for (int run = 1; run <= 20; ++run) {
    clock.SleepNs(1'000'000);
    const int n = run % 2 == 0 ? kThreads : 6;
    crew->RunOnEach(n, [&](int slot) { ++sum[static_cast<size_t>(slot)]; });
  }
  for (int slot = 0; slot < kThreads; ++slot) {
    EXPECT_EQ(sum[static_cast<size_t>(slot)], slot < 6 ? 20 : 10) << slot;
  }
}

TEST(SpinBudget, IsLessWhereSpinningDidNotPay) {
  SpinBudget budget(48'000);
  for (const int64_t ns : {48'000, 24'000, 12'000, 6'000, 3'000, 3'000}) {
    EXPECT_EQ(budget.ns(), ns);
    budget.Learn(false);
  }
  for (const int64_t ns : {6'000, 12'000, 24'000, 48'000, 48'000}) {
    budget.Learn(true);
    EXPECT_EQ(budget.ns(), ns);
  }
}

TEST(SpinBudget, IsTheLeastWhereAQuotaEndsWithinAThread) {
  constexpr int64_t kMostNs = 48'000, kLeastNs = 3'000;
  for (const auto& [threads, cpus, ns] : {std::tuple{2, 0.0, kMostNs},
                                          {2, 1.5, kLeastNs},
                                          {2, 2.0, kMostNs},
                                          {2, 2.5, kMostNs},
                                          {1, 1.0, kMostNs},
                                          {1, 0.5, kLeastNs},
                                          {4, 2.0, kLeastNs}}) {
    EXPECT_EQ(SpinWithin(kMostNs, threads, cpus), ns) << threads << " threads on " << cpus;
    SpinBudget budget(kMostNs);
    for (int wait = 0; wait < 9; ++wait) budget.Learn(false);
    EXPECT_EQ(budget.ns(), kLeastNs);
  }
}

TEST(Crew, CallerSleepsForASlowThread) {
  const auto crew = NewCrew({.threads = 2});
  const SystemMonotonicClock clock;
  bool finished = false;
  crew->RunOnEach(2, [&](int slot) {
    if (slot == 0) return;
    clock.SleepNs(20'000'000);
    finished = true;
  });
  EXPECT_TRUE(finished);
}

TEST(Crew, EveryPartIsDoneOnceWhateverThreadsDo) {
  constexpr uint64_t kSeed = 29;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  const SystemMonotonicClock clock;
  for (const int64_t spin_ns : {int64_t{0}, ThreadPool::kSpinNs}) {
    Sluggish sluggish;
    const auto crew = NewCrew({.threads = 5, .spin_ns = spin_ns, .observer = &sluggish});
    for (int run = 0; run < 1500; ++run) {
      const int slots = static_cast<int>(random.Between(1, 5));
      const int parts = static_cast<int>(random.Between(1, 4));
      if (random.Chance(0.01)) clock.SleepNs(200'000);
      std::vector<int> seen(static_cast<size_t>(slots * parts), 0);
      std::vector<int> scratch(5, 0);
      RunParts(*crew, slots, parts, [&](int part, int slot) {
        ++scratch[static_cast<size_t>(slot)];
        ++seen[static_cast<size_t>(part)];
      });
      ASSERT_THAT(seen, ::testing::Each(1)) << "run " << run;
      ASSERT_EQ(std::accumulate(scratch.begin(), scratch.end(), 0), slots * parts);
    }
  }
}

/// Holds threads up before they claim, until told to let them go.
class Gate final : public LaneObserver {
 public:
  void At(Point point, int slot) override {
    if (slot == 0 || point != Point::kBeforeClaim) return;
    held_.fetch_add(1);
    held_.notify_all();
    open_.wait(false);
  }
  void AwaitOne() const { held_.wait(0); }
  void Open() {
    open_.store(true);
    open_.notify_all();
  }

 private:
  std::atomic<int> held_{0};
  std::atomic<bool> open_{false};
};

TEST(Crew, NobodyWaitsForAThreadThatHasNotBegun) {
  Gate gate;
  const auto crew = NewCrew({.threads = 2, .observer = &gate});
  int sum = 0;
  for (int run = 0; run < 100; ++run) {
    RunParts(*crew, 2, 3, [&](int, int slot) {
      EXPECT_EQ(slot, 0);
      ++sum;
    });
  }
  EXPECT_EQ(sum, 600);
  gate.AwaitOne();
  gate.Open();
  crew->RunOnEach(2, [&](int) {});
}

/// The caller waits so long for the other thread, with its part of a job that was expected to take
/// so long.
void LetWait(Crew& crew, const WatchedClock& clock, int64_t wait_ns, int64_t expected_ns) {
  crew.RunOnEach(2, [](int) {});  // it is awake now
  std::atomic<bool> begun{false};
  RunParts(
      crew, 2, 1,
      [&](int, int slot) {
        if (slot == 0) {
          while (!begun.load()) std::this_thread::yield();
          return;
        }
        const int looks = clock.looks();
        begun.store(true);
        clock.AwaitLooks(looks, 3);  // the caller has waited for a while
        clock.SleepNs(wait_ns);
      },
      expected_ns);
}

TEST(Crew, AThreadThatIsWaitedForTwiceIsLeftOutForAWhile) {
  const WatchedClock clock;
  const auto crew = NewCrew({.threads = 2, .clock = &clock});
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(crew->width(), 2);
    LetWait(*crew, clock, 1'000'000, 10'000);
  }
  EXPECT_EQ(crew->width(), 1);
  clock.SleepNs(49'000'000);
  crew->Begin();
  EXPECT_EQ(crew->width(), 1);
  crew->End();
  clock.SleepNs(2'000'000);
  crew->Begin();
  EXPECT_EQ(crew->width(), 2);
  crew->End();
  crew->RunOnEach(2, [](int) {});
}

TEST(Crew, NobodyIsLeftOutForWaitsThatAreRareOrShort) {
  const WatchedClock clock;
  const auto crew = NewCrew({.threads = 2, .clock = &clock});
  for (int run = 0; run < 5; ++run) {
    LetWait(*crew, clock, 1'000'000, 10'000);
    EXPECT_EQ(crew->width(), 2) << "10 ms and more between two";
    clock.SleepNs(10'500'000);
  }
  for (int run = 0; run < 5; ++run) {
    LetWait(*crew, clock, 1'000'000, 1'100'000);
    EXPECT_EQ(crew->width(), 2) << "no longer than the work itself";
    LetWait(*crew, clock, 90'000, 10'000);
    EXPECT_EQ(crew->width(), 2) << "no time slice of another program";
  }
}

// Thread 1 stops in a part of what thread 2 leads, while the caller waits for thread 2's part.
TEST(Crew, OneStopIsOneForAllWhoWait) {
  const WatchedClock clock;
  const auto crew = NewCrew({.threads = 3, .clock = &clock});
  for (const int width : {3, 2}) {
    crew->RunOnEach(3, [](int) {});  // all are awake now
    std::unique_ptr<WatchedClock> leaders;
    std::unique_ptr<Crew> led;
    std::atomic<int> begun{0};
    std::atomic<bool> stopped{false};
    const auto await = [](const auto& is_so) {
      while (!is_so()) std::this_thread::yield();
    };
    const auto part_of_led = [&](int, int slot) {
      if (slot == 0) await([&] { return stopped.load(); });
      if (led->ThreadOf(slot) != 1 || stopped.load()) return;
      const int callers_looks = clock.looks(), leaders_looks = leaders->looks();
      stopped.store(true);
      clock.AwaitLooks(callers_looks, 3);
      leaders->AwaitLooks(leaders_looks, 3);
      for (const WatchedClock* moved : {&clock, static_cast<const WatchedClock*>(leaders.get())}) {
        moved->SleepNs(1'000'000);
        moved->AwaitSeen();  // who waits has looked for the last time whom it waits for
      }
    };
    const auto part = [&](int, int slot) {
      if (slot == 2) {
        leaders = std::make_unique<WatchedClock>();
        leaders->SleepNs(clock.NowNs() - leaders->NowNs());
        led = std::make_unique<Crew>(3, ThreadPool::kSpinNs, nullptr, *leaders);
        led->SetWhole(crew.get());
        led->SetLeader(2);
      }
      begun.fetch_add(1);
      await([&] { return begun.load() == 3; });
      if (slot == 1) await([&] { return led->Help(1, nullptr) > 0; });
      if (slot == 2) RunParts(*led, 3, 1, part_of_led, 10'000);
    };
    RunParts(*crew, 3, 1, part, 10'000);
    EXPECT_EQ(crew->width(), width);
  }
}

/// Each look of the caller's takes a microsecond.
class LookedAtClock final : public MonotonicClock {
 public:
  int64_t NowNs() const override {
    return std::this_thread::get_id() == caller_ ? now_ns_.fetch_add(1000) : now_ns_.load();
  }
  void SleepNs(int64_t) const override {}

 private:
  const std::thread::id caller_ = std::this_thread::get_id();
  mutable std::atomic<int64_t> now_ns_{1'000'000'000};
};

TEST(Crew, CallerSpinsNoLongerThanAPartTakes) {
  const LookedAtClock clock;
  const SystemMonotonicClock real;
  const auto crew = NewCrew({.threads = 2, .clock = &clock});
  constexpr int kParts = 100;
  std::atomic<bool> begun{false};
  int64_t waited_ns = 0;
  RunParts(
      *crew, 2, kParts,
      [&](int, int slot) {
        if (slot == 0 || begun.exchange(true)) {
          while (!begun.load()) std::this_thread::yield();
          return;
        }
        // Until the caller sleeps: its clock stands still. That may take its parts first.
        const int64_t begin_ns = clock.NowNs();
        for (int64_t before_ns = begin_ns; waited_ns == 0 || clock.NowNs() != before_ns;) {
          before_ns = clock.NowNs();
          real.SleepNs(20'000'000);
          waited_ns = clock.NowNs() - begin_ns;
        }
      },
      /*expected_ns=*/kParts * 40'000);
  EXPECT_LT(waited_ns, 2 * (ThreadPool::kSpinNs + 40'000));
}

std::atomic<int> yields{0};
std::atomic<int64_t> stops{0};

TEST(Crew, AThreadThatWasStoppedWithinAPartGivesWayBetweenPartsUnlessTheCallerIsStoppedToo) {
  const WatchedClock clock;
  const auto crew = NewCrew({.threads = 2,
                             .clock = &clock,
                             .yield = [] { yields.fetch_add(1); },
                             .stops = [] { return stops.load(); }});
  clock.SleepNs(int64_t{1} << 50);  // long after what this thread saw in other tests
  const auto work = [&] {
    // It is awake after the first. It may give way after its part of that, when the caller has
    // gone on already; with its part of the second it is past that, and the clock stands still.
    for (int run = 0; run < 2; ++run) crew->RunOnEach(2, [](int) {});
    yields.store(0);
    std::atomic<int> done{0};
    RunParts(*crew, 2, 20, [&](int part, int slot) {
      if (slot == 0) {
        while (done.load() < 20) std::this_thread::yield();
        return;
      }
      if (part < 20) return;  // the caller's
      clock.SleepNs(300'000);
      done.fetch_add(1);
    });
    crew->RunOnEach(2, [](int) {});  // it has ended its parts, and what follows them
    return yields.load();
  };
  EXPECT_EQ(work(), 0);
  LetWait(*crew, clock, 1'000'000, 10'000);
  EXPECT_EQ(work(), 5) << "each millisecond, parts being 0.3";
  EXPECT_EQ(crew->width(), 2);
  clock.SleepNs(1'000'000'000);
  EXPECT_EQ(work(), 0);
  stops += 100;  // since that wait
  LetWait(*crew, clock, 1'000'000, 10'000);
  EXPECT_EQ(work(), 0) << "all share their cores";
}

void AskLater(Crew& crew, const MonotonicClock& clock) {
  clock.SleepNs(100'000);
  crew.Begin();
}

TEST(Crew, RunningCrewsShareTheThreadsEvenly) {
  auto pool = ThreadPool::Create({.threads = 5});
  ASSERT_TRUE(pool.ok());
  Crew a(*pool, 5), b(*pool, 5), c(*pool, 1);
  const SystemMonotonicClock clock;
  const auto rest = [&] { clock.SleepNs(3'000'000); };
  rest();
  a.Begin();
  for (int i = 0; i < 20; ++i) AskLater(a, clock);
  EXPECT_EQ(a.width(), 5);
  b.Begin();
  EXPECT_EQ(a.width() + b.width(), 5);
  EXPECT_GE(std::min(a.width(), b.width()), 2);
  c.Begin();
  for (int i = 0; i < 20; ++i) AskLater(a, clock);
  EXPECT_EQ(a.width(), 2);
  EXPECT_EQ(b.width(), 2);
  EXPECT_EQ(c.width(), 1);
  b.End();
  c.End();
  rest();
  for (int i = 0; i < 20; ++i) AskLater(a, clock);
  EXPECT_EQ(a.width(), 5);
}

TEST(Crew, OneThreadThatRunsTwoInTurnsHasAllThreadsForEach) {
  auto pool = ThreadPool::Create({.threads = 3});
  ASSERT_TRUE(pool.ok());
  Crew a(*pool, 3), b(*pool, 3);
  const SystemMonotonicClock clock;
  clock.SleepNs(3'000'000);  // neither counts as running because it is new
  for (int turn = 0; turn < 10; ++turn) {
    for (Crew* crew : {&a, &b}) {
      crew->Begin();
      EXPECT_EQ(crew->width(), 3) << turn;
      crew->End();
    }
  }
}

TEST(Crew, CrewsOfOnePoolRunAtTheSameTime) {
  Sluggish sluggish;
  auto pool = ThreadPool::Create({.threads = 3, .observer = &sluggish});
  ASSERT_TRUE(pool.ok());
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(4, 0);
  for (size_t caller = 0; caller < sums.size(); ++caller) {
    callers.emplace_back([&, caller] {
      for (int made = 0; made < 4; ++made) {  // a lane is used by one crew after another
        Crew crew(*pool, 3);
        for (int run = 0; run < 100; ++run) {
          crew.Begin();
          std::vector<int64_t> parts(6);
          RunParts(crew, 3, 2, [&](int part, int) { parts[static_cast<size_t>(part)] += 1; });
          crew.End();
          EXPECT_THAT(parts, ::testing::Each(1));
          sums[caller] += std::accumulate(parts.begin(), parts.end(), int64_t{0});
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(sums, ::testing::Each(2400));
}

// A thread that spins when its pool ends has no lane to look at any more.
TEST(Crew, APoolEndsAtEveryMomentOfItsThreadsSpinning) {
  for (int pauses = 0; pauses < 1200; ++pauses) {
    const auto crew = NewCrew({.threads = 2});
    crew->RunOnEach(2, [](int) {});
    for (int i = 0; i < pauses % 24; ++i) _mm_pause();
  }
}

TEST(Crew, PinnedThreadsStayOnTheirCpu) {
  const std::vector<int> cpus = AllowedCpus();
  const auto crew = NewCrew({.threads = 3, .cpus = cpus});
  std::vector<int> cpu(3, -1);
  crew->RunOnEach(3, [&](int slot) { cpu[static_cast<size_t>(slot)] = ::sched_getcpu(); });
  EXPECT_EQ(cpu[1], cpus[1 % cpus.size()]);
  EXPECT_EQ(cpu[2], cpus[2 % cpus.size()]);
}

/// The CPUs that a thread may run on.
cpu_set_t CpusOf(pid_t thread) {
  cpu_set_t set;
  EXPECT_EQ(::sched_getaffinity(thread, sizeof(set), &set), 0);
  return set;
}

TEST(Crew, AThreadIsWokenAwayFromTheCpuOfWhoWakesIt) {
  const std::vector<int> cpus = AllowedCpus();
  if (cpus.size() < 2) GTEST_SKIP() << "one CPU";
  const cpu_set_t all = CpusOf(0);
  const auto crew = NewCrew({.threads = 2, .spin_ns = 0});
  std::atomic<pid_t> worker{0};
  std::atomic<int> cpu{-1};
  const auto run = [&] {
    crew->RunOnEach(2, [&](int slot) {
      if (slot == 0) return;
      worker.store(::gettid());
      cpu.store(::sched_getcpu());
    });
    ASSERT_TRUE(AwaitSleep(worker));
  };
  run();
  int away = 0;
  for (int round = 0; round < 10; ++round) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpus[static_cast<size_t>(round) % cpus.size()], &one);
    ASSERT_EQ(::sched_setaffinity(worker, sizeof(one), &one), 0);
    run();
    ASSERT_EQ(::sched_setaffinity(worker, sizeof(all), &all), 0);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
    run();
    away += !CPU_ISSET(cpu.load(), &one);
    const cpu_set_t after = CpusOf(worker);
    EXPECT_TRUE(CPU_EQUAL(&after, &all)) << "it may not run everywhere again";
    ASSERT_EQ(::sched_setaffinity(0, sizeof(all), &all), 0);
  }
  // Between its end of sleep and its look at the CPU the scheduler may move it.
  EXPECT_GE(away, 8) << "beside the caller";
}

TEST(Crew, RefusesCpusThatAreNotAllowedAndOddSizes) {
  EXPECT_EQ(Crew::Create({.threads = 2, .cpus = {8191}}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Crew::Create({.threads = 0}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Crew::Create({.threads = 1025}).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hone::runtime
