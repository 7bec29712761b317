#include "runtime/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "base/core/cpu.h"
#include "base/core/random.h"
#include "tests/runtime/others_threads.h"
#include "tests/runtime/sluggish.h"

namespace hone::runtime {
namespace {

using ir::HoneCall;
using testing::BusyThreads;
using testing::CallOnThreads;
using testing::Sluggish;

/// Moves when a test's iterations do.
class StepClock final : public MonotonicClock {
 public:
  int64_t NowNs() const override { return now_ns_.load(); }
  void SleepNs(int64_t ns) const override { now_ns_.fetch_add(ns); }

 private:
  mutable std::atomic<int64_t> now_ns_{1'000'000'000};
};

/// Keeps all threads but the caller's from claiming anything.
class Closed final : public LaneObserver {
 public:
  ~Closed() override { Open(); }
  void At(Point, int slot) override {
    if (slot != 0) open_.wait(false);
  }
  void Open() {
    open_.store(true);
    open_.notify_all();
  }

 private:
  std::atomic<bool> open_{false};
};

/// What the parts of a sweep were; each iteration takes so long by that clock.
struct Parts {
  const MonotonicClock* clock = nullptr;
  int64_t iteration_ns = 0;
  std::mutex mutex;
  std::vector<std::pair<int64_t, int64_t>> ranges;

  static int32_t Phase(const HoneCall* call) {
    Parts& self = *static_cast<Parts*>(call->buffers[0]);
    const std::lock_guard<std::mutex> lock(self.mutex);
    self.ranges.emplace_back(call->begin, call->end);
    self.clock->SleepNs((call->end - call->begin) * self.iteration_ns);
    return 0;
  }
};

void RunPhase(Sweep& sweep, Crew& crew, ir::PhaseFunction phase, void* const* buffers,
              int64_t extent) {
  static const Scratch scratch;
  const Sweep::Link link = {phase, buffers};
  const Sweep::Failure failure =
      sweep.Run({.links = {&link, 1}, .extent = extent, .threads = 64, .scratch = &scratch}, crew);
  EXPECT_TRUE(failure.ok());
}

/// The parts of a second run, when the first has shown what iterations take: each iteration is in
/// one of them.
std::vector<std::pair<int64_t, int64_t>> SecondRun(int threads, int64_t extent,
                                                   int64_t iteration_ns) {
  const StepClock clock;
  Closed closed;
  auto crew = Crew::Create({.threads = threads, .clock = &clock, .observer = &closed});
  EXPECT_TRUE(crew.ok());
  Sweep sweep;
  Parts parts{.clock = &clock, .iteration_ns = iteration_ns};
  void* const buffers[] = {&parts};
  RunPhase(sweep, **crew, &Parts::Phase, buffers, extent);
  const auto slots = static_cast<size_t>(std::min<int64_t>(threads, extent));
  const bool is_cut = slots > 1 && extent / threads >= 8;
  EXPECT_EQ(parts.ranges.size(), is_cut ? 8 * slots : slots) << "what it takes is not known";
  parts.ranges.clear();
  RunPhase(sweep, **crew, &Parts::Phase, buffers, extent);
  closed.Open();
  std::ranges::sort(parts.ranges);
  int64_t at = 0;
  for (const auto& [begin, end] : parts.ranges) {
    EXPECT_EQ(begin, at);
    at = end;
  }
  EXPECT_EQ(at, extent);
  return parts.ranges;
}

TEST(Sweep, PartsTakeFiftyMicrosecondsAtMostWhereTheExtentAllows) {
  struct Case {
    int threads;
    int64_t extent, iteration_ns;
  };
  for (const auto& [threads, extent, iteration_ns] :
       {Case{2, 1000, 1'000}, Case{2, 100'000, 1'000}, Case{3, 7'777, 1'700}, Case{2, 20, 40'000},
        Case{8, 1'000'000, 300}, Case{2, 10, 400'000}}) {
    int64_t longest_ns = 0;
    const auto parts = SecondRun(threads, extent, iteration_ns);
    for (const auto& [begin, end] : parts)
      longest_ns = std::max(longest_ns, (end - begin) * iteration_ns);
    EXPECT_LE(longest_ns, std::max<int64_t>(50'000, iteration_ns))
        << extent << " iterations of " << iteration_ns << " ns on " << threads << " threads";
    EXPECT_LE(parts.size(), static_cast<size_t>(threads) * Lane::kMaxParts);
  }
}

TEST(Sweep, ShortWorkIsTheCallersAlone) {
  EXPECT_THAT(SecondRun(2, 70, 10), ::testing::ElementsAre(std::pair(0, 70)));
  EXPECT_EQ(SecondRun(2, 90, 10).size(), 2U);
}

// Each becomes ten times as fast: a plan of 61 phases, of which every 61st used to be measured.
TEST(Sweep, EachOfManyIsMeasuredAgain) {
  const StepClock clock;
  Closed closed;
  auto crew = Crew::Create({.threads = 2, .clock = &clock, .observer = &closed});
  ASSERT_TRUE(crew.ok());
  constexpr size_t kSweeps = 61, kExtent = 100;
  std::vector<Sweep> sweeps(kSweeps);
  Parts parts{.clock = &clock, .iteration_ns = 10'000};
  void* const buffers[] = {&parts};
  std::vector<size_t> cuts(kSweeps);
  const auto run = [&] {
    for (size_t i = 0; i < kSweeps; ++i) {
      parts.ranges.clear();
      RunPhase(sweeps[i], **crew, &Parts::Phase, buffers, kExtent);
      cuts[i] = parts.ranges.size();
    }
  };
  for (int runs = 0; runs < 2; ++runs) run();
  EXPECT_THAT(cuts, ::testing::Each(40U));
  parts.iteration_ns = 1'000;
  for (int runs = 0; runs < 1000; ++runs) run();
  closed.Open();
  EXPECT_THAT(cuts, ::testing::Each(4U));
}

/// Rows of sums, each from the row and its neighbours, as a compiler cuts them.
struct Sums {
  static constexpr int64_t kRows = 96, kColumns = 600;

  static int32_t Phase(const HoneCall* call) {
    const auto* x = static_cast<const float*>(call->buffers[0]);
    auto* y = static_cast<float*>(call->buffers[1]);
    for (int64_t row = call->begin; row < call->end; ++row) {
      float sum = 0;
      for (int64_t other = row - 1; other <= row + 1; ++other) {
        const float* from = x + (other + kRows) % kRows * kColumns;
        for (int64_t j = 0; j < kColumns; ++j) sum += 0.37F * from[j];
      }
      for (int64_t j = 0; j < kColumns; ++j)
        y[row * kColumns + j] = x[row * kColumns + j] - 0.001F * sum;
    }
    return 0;
  }

  /// `runs` phases one after the other, each of what the one before gave.
  static std::vector<float> Run(Crew& crew, int runs) {
    Random random(5);
    std::vector<float> x(kRows * kColumns), y(x.size());
    for (float& value : x) value = static_cast<float>(random.Between(-1000, 1000)) * 1e-3F;
    Sweep sweep;
    for (int run = 0; run < runs; ++run) {
      void* const buffers[] = {x.data(), y.data()};
      crew.Begin();
      RunPhase(sweep, crew, &Phase, buffers, kRows);
      crew.End();
      std::swap(x, y);
    }
    return x;
  }
};

TEST(Sweep, GivesTheSameBytesOnAnyThreadsBesideAnyLoad) {
  constexpr int kRuns = 12;
  const auto alone = Crew::Create({.threads = 1});
  ASSERT_TRUE(alone.ok());
  const std::vector<float> expected = Sums::Run(**alone, kRuns);
  for (const int busy : {0, 1, 3}) {
    const BusyThreads load(busy);
    for (int threads = 1; threads <= 8; ++threads) {
      Sluggish sluggish;
      const auto own = Crew::Create({.threads = threads}),
                 stopped = Crew::Create({.threads = threads, .observer = &sluggish});
      ASSERT_TRUE(own.ok() && stopped.ok());
      Crew lent({.parallel_for = &CallOnThreads}, threads);
      for (Crew* crew : {own->get(), stopped->get(), &lent}) {
        EXPECT_EQ(Sums::Run(*crew, kRuns), expected)
            << threads << " threads beside " << busy << " busy ones";
      }
    }
  }
}

// What belongs to the caller's threads.

struct Counted {
  std::atomic<int> calls{0};
  Executor executor() {
    return {.parallel_for =
                [](void* self, int32_t n, void (*body)(void*, int32_t), void* context) {
                  static_cast<Counted*>(self)->calls.fetch_add(1);
                  for (int32_t i = n; i-- > 0;) body(context, i);
                },
            .self = this};
  }
};

TEST(Sweep, WhatAnExecutorRunsIsCutIntoPartsToo) {
  Counted counted;
  Crew crew(counted.executor(), 2);
  const SystemMonotonicClock clock;
  Parts parts{.clock = &clock, .iteration_ns = 100'000};  // sleeps, at least so long
  void* const buffers[] = {&parts};
  Sweep sweep;
  RunPhase(sweep, crew, &Parts::Phase, buffers, 40);
  EXPECT_EQ(parts.ranges.size(), 16U);
  parts.ranges.clear();
  RunPhase(sweep, crew, &Parts::Phase, buffers, 40);
  EXPECT_EQ(parts.ranges.size(), 40U);
  EXPECT_EQ(counted.calls.load(), 2);
}

#if !defined(__SANITIZE_THREAD__)  // which makes it long
TEST(Sweep, ShortWorkDoesNotGoToAnExecutor) {
  Counted counted;
  Crew crew(counted.executor(), 2);
  Sweep sweep;
  for (int run = 0; run < 1000; ++run) {
    RunPhase(
        sweep, crew, [](const HoneCall*) { return 0; }, nullptr, 8);
  }
  EXPECT_LT(counted.calls.load(), 500);
}
#endif

}  // namespace
}  // namespace hone::runtime
