#include "measure/timing.h"

#include <vector>

#include "gtest/gtest.h"

#include "measure/cpu/cpu_runner.h"

namespace hone::measure {
namespace {

// A kernel whose run r takes times[r], the last one for ever.
struct Scripted {
  std::vector<int64_t> times_ns;
  size_t runs = 0;

  int64_t operator()() { return times_ns[std::min(runs++, times_ns.size() - 1)]; }
};

Race Raced(const TimingPolicy& policy, Scripted& kernel, int64_t last_ns = 0) {
  return RunRace(policy, last_ns, [&] { return kernel(); });
}

constexpr TimingPolicy kPolicy = {.incumbent_ns = 1'000'000, .max_total_ns = 1'000'000'000'000};

TEST(TimingTest, AHopelessKernelRunsTwice) {
  Scripted kernel{{100'000, 1'600'000}};
  const Race race = Raced(kPolicy, kernel);
  EXPECT_TRUE(race.hopeless);
  EXPECT_EQ(race.samples_ns, std::vector<int64_t>{1'600'000});
  EXPECT_EQ(kernel.runs, 2u);
}

TEST(TimingTest, WithoutIncumbentNothingIsHopelessAndAllSamplesAreTaken) {
  TimingPolicy policy = kPolicy;
  policy.incumbent_ns = 0;
  Scripted kernel{{1'600'000}};
  const Race race = Raced(policy, kernel);
  EXPECT_FALSE(race.hopeless);
  EXPECT_EQ(race.samples_ns.size(), 20u);
}

TEST(TimingTest, AClearLoserStopsAtTheLeastNumberOfSamples) {
  Scripted kernel{{1'300'000, 1'310'000, 1'290'000, 1'305'000, 1'295'000, 1'300'000}};
  EXPECT_EQ(Raced(kPolicy, kernel).samples_ns.size(), 5u);
}

TEST(TimingTest, OneThatMayStillWinGoesOn) {
  Scripted close{{1'050'000, 900'000, 1'200'000, 990'000, 1'150'000, 1'020'000}};
  EXPECT_GT(Raced(kPolicy, close).samples_ns.size(), 5u);
  Scripted winner{{800'000}};
  EXPECT_EQ(Raced(kPolicy, winner).samples_ns.size(), 20u);
}

TEST(TimingTest, TimeIsBoundedButOneSampleIsAlwaysTaken) {
  TimingPolicy policy = kPolicy;
  policy.incumbent_ns = 0;
  policy.max_total_ns = 9'000'000;
  Scripted kernel{{2'000'000}};
  EXPECT_EQ(Raced(policy, kernel).samples_ns.size(), 5u);
  Scripted slow{{50'000'000}};
  EXPECT_EQ(Raced(policy, slow).samples_ns.size(), 1u);
}

TEST(TimingTest, ShortRunsAreRepeatedWithinASample) {
  TimingPolicy policy = kPolicy;
  policy.incumbent_ns = 0;
  Scripted kernel{{1'000}};
  const Race race = Raced(policy, kernel);
  ASSERT_EQ(race.samples_ns.size(), 20u);
  EXPECT_EQ(race.samples_ns[0], 1'000);    // a mean
  EXPECT_EQ(kernel.runs, 1u + 20u * 20u);  // one warm-up, 20 us a sample
}

TEST(TimingTest, AKernelThatJustRanForLongNeedsNoWarmUp) {
  Scripted kernel{{2'600'000}};
  Raced(kPolicy, kernel, 2'600'000);
  EXPECT_EQ(kernel.runs, 1u);
}

// A first run maps memory, and a cold one takes longer: of a kernel that takes 0.7 ms the check may
// have seen 2.2 and the first run 1.3.
TEST(TimingTest, AKernelWhoseCheckAloneTookLongIsWarmedUp) {
  TimingPolicy policy = kPolicy;
  policy.max_samples = 2;
  for (const int32_t warmups : {1, 3}) {
    policy.warmups = warmups;
    Scripted kernel{{1'300'000, 700'000}};
    if (warmups == 3) kernel.times_ns.insert(kernel.times_ns.begin() + 1, {900'000, 800'000});
    EXPECT_EQ(Raced(policy, kernel, 2'200'000).samples_ns,
              (std::vector<int64_t>{700'000, 700'000}));
    EXPECT_EQ(kernel.runs, 2U + static_cast<size_t>(warmups));
  }
}

TEST(TimingTest, LowerBoundIsThatOfANotchedBoxPlot) {
  // Median 5, quartiles 3 and 7: 5 - 1.58 * 4 / sqrt(9).
  EXPECT_NEAR(MedianLowerBoundNs({9, 8, 7, 6, 5, 4, 3, 2, 1}), 5 - 1.58 * 4 / 3, 1e-9);
  EXPECT_EQ(MedianLowerBoundNs({42}), 42);
}

TEST(TimingTest, ARaceKnowsAllItsRuns) {
  TimingPolicy policy = kPolicy;
  policy.max_samples = 5;
  Scripted kernel{{1000, 2000}};
  const Race race = Raced(policy, kernel);
  EXPECT_EQ(race.runs, static_cast<int64_t>(kernel.runs));
  EXPECT_EQ(race.timed_ns, 1000 + 2000 * (race.runs - 1));
}

constexpr int64_t kMs = 1'000'000;

// Five samples of 1 ms, a warm-up.
TimeReply Honest() {
  TimeReply reply;
  reply.samples_ns.assign(5, kMs);
  reply.runs = 6;
  reply.timed_ns = 6 * kMs;
  return reply;
}

Status CheckAll(const TimeReply& reply, const TimingPolicy& policy, int64_t flushed_bytes,
                const AnswerWait& wait) {
  const Status fits = CheckTimes(reply, policy, wait.elapsed_ns);
  return fits.ok() ? CpuRunner().CheckWait(reply, flushed_bytes, wait) : fits;
}

TEST(CheckTimesTest, WhatFitsTheClockOfWhoAskedIsBelieved) {
  EXPECT_TRUE(CheckAll(Honest(), kPolicy, 0, {7 * kMs}).ok());
  EXPECT_TRUE(CheckAll(Honest(), kPolicy, 0, {50 * kMs}).ok()) << "a loaded machine";
  TimeReply small = Honest();  // many short runs, with 32 MiB flushed before each
  small.samples_ns.assign(20, 50'000);
  small.runs = 21;
  small.timed_ns = 21 * 50'000;
  EXPECT_TRUE(CheckAll(small, kPolicy, int64_t{32} << 20, {400 * kMs}).ok());
}

TEST(CheckTimesTest, MoreThanThereWasIsALie) {
  EXPECT_EQ(CheckAll(Honest(), kPolicy, 0, {5 * kMs}).code(), StatusCode::kDataLoss);
  TimeReply reply = Honest();
  reply.timed_ns = 4 * kMs;  // less than its samples
  EXPECT_EQ(CheckAll(reply, kPolicy, 0, {7 * kMs}).code(), StatusCode::kDataLoss);
  reply = Honest();
  reply.samples_ns[2] = INT64_MAX;
  EXPECT_EQ(CheckAll(reply, kPolicy, 0, {7 * kMs}).code(), StatusCode::kDataLoss);
  reply.samples_ns[2] = -5;
  EXPECT_EQ(CheckAll(reply, kPolicy, 0, {7 * kMs}).code(), StatusCode::kDataLoss);
}

TEST(CheckTimesTest, FarLessThanThereWasIsSuspicious) {
  TimeReply reply = Honest();
  for (int64_t& sample_ns : reply.samples_ns) sample_ns /= 100;
  reply.timed_ns /= 100;
  EXPECT_EQ(CheckAll(reply, kPolicy, 0, {200 * kMs}).code(), StatusCode::kUnavailable);
}

TEST(CheckTimesTest, WhatOthersHadOfTheCpusIsNoLie) {
  const TimeReply reply = Honest();
  AnswerWait wait{.elapsed_ns = 400 * kMs, .queued_ns = 380 * kMs, .ran_ns = 8 * kMs};
  EXPECT_TRUE(CheckAll(reply, kPolicy, 0, wait).ok());
  EXPECT_TRUE(CpuRunner().CameLate(reply, 0, wait)) << "what it says is noisy";
  EXPECT_FALSE(CpuRunner().CameLate(reply, 0, {.elapsed_ns = 50 * kMs}));
  // It neither ran nor waited for a CPU: a machine that stands still, or swaps.
  wait.queued_ns = 100 * kMs;
  EXPECT_EQ(CheckAll(reply, kPolicy, 0, wait).code(), StatusCode::kDeadlineExceeded);
}

TEST(CheckTimesTest, WhatItRanItselfIsNotExcusedByLoad) {
  const TimeReply reply = Honest();
  // As many threads of its own, waiting for each other, might make of it.
  const AnswerWait wait{.elapsed_ns = 400 * kMs, .queued_ns = 900 * kMs, .ran_ns = 300 * kMs};
  EXPECT_EQ(CheckAll(reply, kPolicy, 0, wait).code(), StatusCode::kUnavailable);
}

TEST(CheckTimesTest, WhatNobodyAskedForIsALie) {
  TimeReply reply = Honest();
  reply.runs = 3;  // fewer than samples
  EXPECT_EQ(CheckAll(reply, kPolicy, 0, {7 * kMs}).code(), StatusCode::kDataLoss);
  reply.runs = 1'000'000;  // to excuse a wait
  EXPECT_EQ(CheckAll(reply, kPolicy, 0, {7 * kMs}).code(), StatusCode::kDataLoss);
  reply = Honest();
  reply.samples_ns.assign(21, 1);
  EXPECT_EQ(CheckAll(reply, kPolicy, 0, {7 * kMs}).code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace hone::measure
