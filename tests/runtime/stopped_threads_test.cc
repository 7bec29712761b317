// What else may happen while a thread of a pool stands still, at each point where one may: fork,
// the process's end, memory that is refused for another thread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <immintrin.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "base/core/timed_wait.h"
#include "runtime/context.h"
#include "runtime/crew.h"
#include "runtime/fork.h"
#include "tests/runtime/asleep.h"
#include "tests/runtime/child.h"
#include "tests/runtime/test_model.h"

namespace hone::runtime::testing {
namespace {

/// Holds the first worker that gets to a point until told to let it go.
class Hold final : public LaneObserver {
 public:
  explicit Hold(Point point) : point_(point) {}
  void At(Point point, int slot) override {
    if (slot == 0 || point != point_) return;
    held_.store(true);
    held_.notify_all();
    open_.wait(false);
  }
  void Await() const { held_.wait(false); }
  void Open() {
    open_.store(true);
    open_.notify_all();
  }

 private:
  const Point point_;
  std::atomic<bool> held_{false}, open_{false};
};

/// What the pool of a HeldJob is like, and where its thread is held.
struct Held {
  LaneObserver::Point point;
  int64_t spin_ns = ThreadPool::kSpinNs;
  bool in_fork = false;  // within a part of a branch that another thread leads
};

/// A pool of two threads with a job in progress, one of whose threads is held.
class HeldJob {
 public:
  explicit HeldJob(const Held& held)
      : hold_(held.point),
        pool_(*ThreadPool::Create(
            {.threads = 2, .spin_ns = held.spin_ns, .observer = held.in_fork ? nullptr : &hold_})),
        caller_([this, held] { held.in_fork ? RunFork() : Run(); }) {
    hold_.Await();
  }
  ~HeldJob() {
    if (caller_.joinable()) EndWell();
  }

  /// Lets the thread go; whether each part was done once.
  bool EndWell() {
    hold_.Open();
    caller_.join();
    for (const std::atomic<int>& part : parts_) {
      if (part.load() != 1) return false;
    }
    return true;
  }
  /// The process ends in the midst of it.
  void LeaveCaller() { caller_.detach(); }
  const std::shared_ptr<ThreadPool>& pool() const { return pool_; }

 private:
  void Run() {
    Crew crew(pool_, 2);
    RunOn(crew);
  }
  void RunOn(Crew& crew) {
    const Work::Part part = [](void* self, int number, int slot) {
      HeldJob& job = *static_cast<HeldJob*>(self);
      job.parts_[static_cast<size_t>(number)].fetch_add(1);
      if (slot == 0) job.hold_.Await();  // until the other has come that far
    };
    crew.Run({.part = part, .context = this, .slots = 2, .parts = 3});
  }
  // Each thread leads a branch: the worker's ends at once, then it helps the caller's.
  void RunFork() {
    Crew crew(pool_, 2);
    constexpr int64_t kLongNs = 20'000'000'000;
    Fork fork(2, 2, kLongNs, &hold_);
    const Fork::Branch branch = [](void* self, int, Crew& each) {
      HeldJob& job = *static_cast<HeldJob*>(self);
      job.led_.fetch_add(1);
      while (job.led_.load() < 2) std::this_thread::yield();
      if (each.ThreadOf(0) != 0) return Status();
      while (each.width() == 1) std::this_thread::yield();
      job.RunOn(each);
      return Status();
    };
    EXPECT_TRUE(fork.Run(crew, branch, this, /*fixed=*/false).ok());
  }

  Hold hold_;
  const std::shared_ptr<ThreadPool> pool_;
  std::array<std::atomic<int>, 6> parts_{};
  std::atomic<int> led_{0};
  std::thread caller_;
};

/// Each point, with threads that spin or not, in a job or in a fork.
std::vector<Held> AllHeld() {
  std::vector<Held> all;
  for (const auto point : {LaneObserver::Point::kBeforeClaim, LaneObserver::Point::kAfterClaim,
                           LaneObserver::Point::kAfterPart}) {
    all.push_back({.point = point});
    all.push_back({.point = point, .spin_ns = 0});
    all.push_back({.point = point, .in_fork = true});
    all.push_back({.point = point, .spin_ns = 0, .in_fork = true});
  }
  return all;
}

std::unique_ptr<Context> NewContext(const Context::Options& options) {
  static const std::string bytes = MakeTestPackage("cpu:avx2,threads=3");
  const auto executable =
      Executable::OpenMemory(std::as_bytes(std::span(bytes.data(), bytes.size())), {});
  if (!executable.ok()) return nullptr;
  auto context = Context::Create(*executable, options);
  return context.ok() ? *std::move(context) : nullptr;
}

bool RunsWell(Context& context) {
  const TestInputs inputs = MakeInputs(8);
  TestOutputs outputs = EmptyOutputs();
  TestBuffers<InputBuffer, OutputBuffer> buffers(inputs, outputs);
  return context.Run(buffers.in, buffers.out).ok() && outputs == Expected(inputs);
}

#if !defined(__SANITIZE_THREAD__)  // which takes a child's threads for those of its parent
TEST(StoppedThreads, AChildRunsWhatWasLoadedBeforeAndTheParentGoesOn) {
  for (const Held& held : AllHeld()) {
    HeldJob job(held);
    const auto context = NewContext({.threads = 2, .pool = job.pool()});
    ASSERT_NE(context, nullptr);
    EXPECT_EQ(InChild([&] {
                if (!RunsWell(*context)) return 1;
                const auto another = NewContext({.threads = 2});
                return another != nullptr && RunsWell(*another) && RunsWell(*context) ? 7 : 2;
              }),
              7);
    EXPECT_TRUE(job.EndWell());
    EXPECT_TRUE(RunsWell(*context));
  }
}
#endif

TEST(StoppedThreads, TheProcessMayEnd) {
  for (const Held& held : AllHeld()) {
    EXPECT_EQ(InChild([&] {
                HeldJob job(held);
                job.LeaveCaller();
                std::exit(7);
                return 1;
              }),
              7);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(StoppedThreads, MemoryForAnotherMayBeRefused) {
  for (const Held& held : AllHeld()) {
    EXPECT_EQ(InChild([&] {
                HeldJob job(held);
                const auto context = NewContext({.threads = 2, .pool = job.pool()});
                int64_t pages = 0;
                std::ifstream("/proc/self/statm") >> pages;
                rlimit limit{};
                if (::getrlimit(RLIMIT_AS, &limit) != 0) return 1;
                const rlimit before = limit;
                limit.rlim_cur =
                    static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE)) + (rlim_t{64} << 20);
                if (::setrlimit(RLIMIT_AS, &limit) != 0) return 2;
                if (job.pool()->Grow(512).code() != StatusCode::kResourceExhausted) return 3;
                if (!job.EndWell() || !RunsWell(*context)) return 4;
                if (::setrlimit(RLIMIT_AS, &before) != 0) return 5;
                return RunsWell(*context) ? 7 : 6;
              }),
              7);
  }
}
#endif

/// Holds the thread on seat 1 as it wakes the caller, between its word and the wake itself: ten
/// seconds at most.
class HoldWake final : public LaneObserver {
 public:
  void At(Point point, int slot) override {
    if (slot == 0 && point == Point::kBeforeSleep) ++callers_visits_;
    if (slot != 1 || point != Point::kBeforeWake || ++visits_ != 2) return;
    std::unique_lock<std::mutex> lock(mutex_);
    held_.store(true);
    was_let_go_ = WaitFor(changed_, lock, 10'000'000'000, [&] { return open_; });
  }
  /// By another of the pool's threads: the caller, which has no other wait, sleeps.
  void AwaitCallersSleep(pid_t caller) const {
    while (callers_visits_.load() < 2 || !IsAsleep(caller)) std::this_thread::yield();
  }
  void AwaitHeld() const {
    while (!held_.load()) std::this_thread::yield();
  }
  void Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool was_let_go() const { return was_let_go_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> callers_visits_{0}, visits_{0};
  std::atomic<bool> held_{false};
  bool open_ = false, was_let_go_ = false;
};

TEST(StoppedThreads, TheCallerIsWokenByAnotherThanTheOneThatStopsAsItWakesIt) {
  HoldWake hold;
  {
    const auto crew = Crew::Create({.threads = 3, .spin_ns = 0, .observer = &hold});
    ASSERT_TRUE(crew.ok());
    const pid_t caller = ::gettid();
    (*crew)->RunOnEach(3, [&](int slot) {
      if (slot == 1) hold.AwaitCallersSleep(caller);
      if (slot == 2) hold.AwaitHeld();
    });
    hold.Open();
  }
  EXPECT_TRUE(hold.was_let_go()) << "the caller slept until that thread went on";
}

TEST(StoppedThreads, ContextsOfOnePoolShareOneInAChildToo) {
  auto pool = ThreadPool::Create({.threads = 3});
  ASSERT_TRUE(pool.ok());
  const auto a = NewContext({.threads = 3, .pool = *pool}),
             b = NewContext({.threads = 3, .pool = *pool});
  EXPECT_EQ(InChild([&] {
              if (!RunsWell(*a) || !RunsWell(*b)) return 1;
              return ThreadsOfThisProcess() == 3 ? 7 : 2;
            }),
            7);
}

TEST(StoppedThreads, ThreadsOfAChildSpinForAsLong) {
  auto pool = ThreadPool::Create({.threads = 2, .spin_ns = 1'000'000'000});
  ASSERT_TRUE(pool.ok());
  const auto context = NewContext({.threads = 2, .pool = *pool});
  EXPECT_EQ(InChild([&] {
              if (!RunsWell(*context)) return 1;
              const auto used_us = [] {
                rusage used{};
                ::getrusage(RUSAGE_SELF, &used);
                return 1'000'000 * (used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                       used.ru_utime.tv_usec + used.ru_stime.tv_usec;
              };
              const int64_t before_us = used_us();
              const SystemMonotonicClock clock;
              for (int i = 0; i < 40 && used_us() - before_us < 5'000; ++i)
                clock.SleepNs(20'000'000);
              return used_us() - before_us >= 5'000 ? 7 : 2;
            }),
            7);
}

// Not of a thread that is stopped, but of threads of others: what they round like is theirs.
TEST(Executor, ItsThreadsMayRoundAsTheyLike) {
  constexpr unsigned kOdd = 0x1f80 | 0x6000 | 0x8040;  // towards zero, denormals flushed
  std::atomic<int> changed{0};
  const Executor executor{
      .parallel_for =
          [](void* self, int32_t n, void (*body)(void*, int32_t), void* context) {
            for (int32_t i = 0; i < n; ++i) {
              std::thread([=] {
                _mm_setcsr(kOdd);
                body(context, i);
                if ((_mm_getcsr() & 0xffc0) != kOdd)
                  static_cast<std::atomic<int>*>(self)->fetch_add(1);
              }).join();
            }
          },
      .self = &changed};
  const auto context = NewContext({.threads = 3, .executor = executor}),
             alone = NewContext({.threads = 1});
  TestInputs inputs = MakeInputs(1);
  for (float& x : inputs.x) x = x / 3 + 1e-40F;
  TestOutputs lent = EmptyOutputs(), expected = EmptyOutputs();
  for (const auto& [runs, outputs] : {std::pair(context.get(), &lent), {alone.get(), &expected}}) {
    TestBuffers<InputBuffer, OutputBuffer> buffers(inputs, *outputs);
    ASSERT_TRUE(runs->Run(buffers.in, buffers.out).ok());
  }
  EXPECT_EQ(lent, expected);
  EXPECT_EQ(changed.load(), 0);
}

}  // namespace
}  // namespace hone::runtime::testing
