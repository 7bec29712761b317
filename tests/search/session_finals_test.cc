#include <functional>
#include <map>
#include <set>

#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "base/versions.h"
#include "db/lookup.h"
#include "db/memory_database.h"
#include "ir/text.h"
#include "search/tuning_session.h"
#include "tests/search/small_session.h"

namespace hone::search {
namespace {

class SessionFinalsTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  FakeClock& wall_clock_ = clock_;
  db::MemoryDatabase log_;
};

db::RecordQuery QueryOf(const TuningSession& session, int task) {
  return {{session.tuner().task(task).hash, TestTarget().text, "class", ir::AccuracyClass::kDefault,
           kCpuVersions.measurement_policy},
          "1+22.1"};
}

/// What a look-up answers for a task, asked by a model.
db::LookupAnswer LookUp(db::Database& log, const TuningSession& session, int task,
                        const Hash128& model) {
  db::Lookup lookup(log, "1+22.1", model);
  const auto answer =
      lookup.Find(QueryOf(session, task).key, ir::ToText(*session.tuner().task(task).workload),
                  [](const db::TuningRecord&) { return absl::OkStatus(); });
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.ok() ? *answer : db::LookupAnswer{};
}

/// What a session confirms or puts back before it ends: every winner.
std::function<absl::Status(TuningSession&)> SayOfWinners(bool put_back, std::set<int>* winners) {
  return [=](TuningSession& s) {
    db::ModelVerdict verdict{.default_ns = 2000, .tuned_ns = 1000, .ratio = 2, .ratio_low = 1.9};
    std::vector<int> confirmed;
    for (int i = 0; i < s.tuner().num_tasks(); ++i) {
      if (!s.verdicts()[static_cast<size_t>(i)].replaced) continue;
      (put_back ? verdict.put_back : verdict.tuned).push_back(s.tuner().task(i).hash);
      if (!put_back) confirmed.push_back(i);
      winners->insert(i);
    }
    return s.AddVerdict(verdict, confirmed);
  };
}

const Hash128 kOtherModel = HashBytes("another model");

// The whole model says that a winner loses there: its look-ups answer with the default from then
// on, and nobody else's.
TEST_F(SessionFinalsTest, APutBackKernelIsTheDefaultInItsModelAlone) {
  FakeMeasurer measurer(1, {});
  std::set<int> put_back;
  SessionOptions options = Options(60);
  options.before_end = SayOfWinners(true, &put_back);
  TuningSession session(log_, measurer, clock_, wall_clock_, options);
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  ASSERT_FALSE(put_back.empty()) << "no task was improved; choose another landscape";
  for (const int task : put_back) {
    const db::LookupAnswer own = LookUp(log_, session, task, ModelHashOf(TwoTasks()));
    EXPECT_TRUE(own.judged);
    EXPECT_EQ(own.rung, db::Rung::kDefault);
    EXPECT_NE(own.why.find(session.id().ToHex()), std::string::npos) << own.why;
    const db::LookupAnswer other = LookUp(log_, session, task, kOtherModel);
    EXPECT_EQ(other.rung, db::Rung::kExact);
    EXPECT_EQ(other.record->record.trace, session.verdicts()[static_cast<size_t>(task)].trace);
    EXPECT_TRUE(session.verdicts()[static_cast<size_t>(task)].put_back);
    EXPECT_FALSE(session.verdicts()[static_cast<size_t>(task)].replaced);
  }
}

// It stays the fastest alone, confirmed by an earlier session; the newer verdict counts, and the
// one after that.
TEST_F(SessionFinalsTest, TheNewestVerdictOfAModelCounts) {
  FakeMeasurer measurer(1, {});
  int times = 0;
  for (const bool put_back : {false, true, false}) {
    SCOPED_TRACE(times++);
    std::set<int> winners;
    SessionOptions options = Options(60);
    options.before_end = SayOfWinners(put_back, &winners);
    TuningSession session(log_, measurer, clock_, wall_clock_, options);
    ASSERT_TRUE(session.Start(TwoTasks()).ok());
    ASSERT_TRUE(session.Run(nullptr).ok());
    ASSERT_FALSE(winners.empty()) << "no task was improved; choose another landscape";
    for (const int task : winners) {
      const db::LookupAnswer own = LookUp(log_, session, task, ModelHashOf(TwoTasks()));
      EXPECT_EQ(own.judged, put_back);
      EXPECT_EQ(own.rung, put_back ? db::Rung::kDefault : db::Rung::kExact);
      const db::LookupAnswer other = LookUp(log_, session, task, kOtherModel);
      EXPECT_EQ(other.record->rigor, db::Rigor::kConfirmed);
    }
  }
}

// Killed after the comparisons of finalists: the next run judges by what they said.
TEST_F(SessionFinalsTest, WhatAnEarlierRunComparedIsConfirmedOrPutBackByTheNext) {
  for (const bool put_back : {false, true}) {
    SCOPED_TRACE(put_back);
    db::MemoryDatabase log;
    FakeMeasurer measurer(1, {});
    std::vector<TaskVerdict> before;
    SessionOptions options = Options(60);
    options.before_end = [&](TuningSession& s) -> absl::Status {
      before = s.verdicts();
      throw Killed();
    };
    TuningSession first(log, measurer, clock_, wall_clock_, options);
    ASSERT_TRUE(first.Start(TwoTasks()).ok());
    EXPECT_THROW((void)first.Run(nullptr), Killed);
    std::set<int> winners;
    options.before_end = SayOfWinners(put_back, &winners);
    measurer.on_compare = [](double) { FAIL() << "compared again"; };
    TuningSession second(log, measurer, clock_, wall_clock_, options);
    ASSERT_TRUE(second.Start(TwoTasks()).ok());
    ASSERT_TRUE(second.resumed());
    ASSERT_TRUE(second.Run(nullptr).ok());
    ASSERT_FALSE(winners.empty()) << "no task was improved; choose another landscape";
    for (const int task : winners) {
      const TaskVerdict& v = before[static_cast<size_t>(task)];
      const db::LookupAnswer own = LookUp(log, second, task, ModelHashOf(TwoTasks()));
      EXPECT_EQ(own.judged, put_back);
      EXPECT_EQ(second.verdicts()[static_cast<size_t>(task)].put_back, put_back);
      if (put_back) continue;
      EXPECT_EQ(own.record->rigor, db::Rigor::kConfirmed);
      EXPECT_EQ(own.record->record.trace, v.trace);
    }
  }
}

// A confirmed record has the samples of the comparison, and so its noise; also after a restart.
TEST_F(SessionFinalsTest, WhatOthersDisturbedStaysNoisyWhenItIsConfirmed) {
  for (const bool noisy : {false, true}) {
    for (const bool killed : {false, true}) {
      SCOPED_TRACE(testing::Message() << noisy << ' ' << killed);
      db::MemoryDatabase log;
      FakeMeasurer measurer(1, {.noisy = noisy});
      std::set<int> winners;
      SessionOptions options = Options(60);
      if (killed) {
        options.before_end = [](TuningSession&) -> absl::Status { throw Killed(); };
        TuningSession first(log, measurer, clock_, wall_clock_, options);
        ASSERT_TRUE(first.Start(TwoTasks()).ok());
        EXPECT_THROW((void)first.Run(nullptr), Killed);
      }
      options.before_end = SayOfWinners(false, &winners);
      TuningSession session(log, measurer, clock_, wall_clock_, options);
      ASSERT_TRUE(session.Start(TwoTasks()).ok());
      ASSERT_TRUE(session.Run(nullptr).ok());
      ASSERT_FALSE(winners.empty()) << "no task was improved; choose another landscape";
      for (const int task : winners) {
        const db::LookupAnswer own = LookUp(log, session, task, ModelHashOf(TwoTasks()));
        EXPECT_EQ(own.record->record.rigor, db::Rigor::kConfirmed);
        EXPECT_EQ(own.record->record.noisy, noisy);
      }
    }
  }
}

/// With how many threads look-ups run what answers exactly for each task, and how many tasks there
/// were to choose for.
std::map<int, int> ThreadsInLog(db::Database& log, const TuningSession& session,
                                const ir::Target& target, int* short_ones) {
  std::map<int, int> count;
  for (int task = 0; task < session.tuner().num_tasks(); ++task) {
    const TaskVerdict& v = session.verdicts()[static_cast<size_t>(task)];
    *short_ones += v.compared && v.best_ns < 1e5;
    db::RecordQuery query = QueryOf(session, task);
    query.key.target = target.text;
    const auto best = log.BestRecord(query);
    EXPECT_TRUE(best.ok() && best->has_value());
    if (!best.ok() || !best->has_value()) continue;
    EXPECT_TRUE(!v.compared || (*best)->record.trace == v.trace);
    db::Lookup lookup(log, "1+22.1");
    ++count[lookup.ThreadsOf(**best).value_or(-1)];
  }
  return count;
}

// The fewest of 8 threads that are as fast; a lookup reads them beside the record, which stays as
// it is. Long kernels are not asked.
TEST_F(SessionFinalsTest, FewerThreadsAreKeptWhereTheyAreAsFast) {
  SessionOptions options = Options(60);
  std::string error;
  ASSERT_TRUE(ir::ParseTarget("cpu:avx2,threads=8", &options.target, &error)) << error;
  const auto slower = [](int threads) { return threads < 4 ? 1.5 : 0.99; };
  for (const bool chooses : {false, true}) {
    for (const double slow : {1.0, 1e4}) {
      SCOPED_TRACE(testing::Message() << chooses << ' ' << slow);
      db::MemoryDatabase log;
      FakeMeasurer measurer(1, {});
      measurer.slow = slow;
      if (chooses) measurer.with_threads = slower;
      options.choose_threads = chooses;
      TuningSession session(log, measurer, clock_, wall_clock_, options);
      ASSERT_TRUE(session.Start(TwoTasks()).ok());
      ASSERT_TRUE(session.Run(nullptr).ok());
      int asked = 0;
      const std::map<int, int> count = ThreadsInLog(log, session, options.target, &asked);
      if (chooses && slow == 1) {
        ASSERT_GT(asked, 0) << "no task is short; choose another landscape";
        EXPECT_EQ(count.at(4), asked);
      } else {
        EXPECT_EQ(count.at(8), 2);
      }
    }
  }
}

TEST_F(SessionFinalsTest, AllThreadsStayWhereTheyPay) {
  SessionOptions options = Options(60);
  std::string error;
  ASSERT_TRUE(ir::ParseTarget("cpu:avx2,threads=2", &options.target, &error)) << error;
  options.choose_threads = true;
  FakeMeasurer measurer(1, {});
  measurer.with_threads = [](int) { return 1.01; };
  TuningSession session(log_, measurer, clock_, wall_clock_, options);
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  int asked = 0;
  EXPECT_EQ(ThreadsInLog(log_, session, options.target, &asked).at(2), 2);
  EXPECT_GT(asked, 0);
}

// Beside other programs one thread looks as fast as all.
TEST_F(SessionFinalsTest, NoisyComparisonsTakeNoThreadsAway) {
  SessionOptions options = Options(60);
  std::string error;
  ASSERT_TRUE(ir::ParseTarget("cpu:avx2,threads=2", &options.target, &error)) << error;
  options.choose_threads = true;
  FakeMeasurer measurer(1, {.noisy = true});
  measurer.with_threads = [](int) { return 0.5; };
  TuningSession session(log_, measurer, clock_, wall_clock_, options);
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  int asked = 0;
  EXPECT_EQ(ThreadsInLog(log_, session, options.target, &asked).at(2), 2);
}

// A machine that was much faster for a moment screens some slow candidates as the fastest.
TEST_F(SessionFinalsTest, ScreeningsInLuckyMomentsDoNotDecide) {
  FakeMeasurer measurer(1, {});
  std::set<std::string> lucky;
  std::string fastest;
  measurer.screens = [&](const std::string& trace) {
    if (fastest.empty() || LandscapeNs(trace) < LandscapeNs(fastest)) fastest = trace;
    if (HashBytes(trace).high % 5 != 0) return 1.0;
    lucky.insert(trace);
    return 1e-3;
  };
  TuningSession session(log_, measurer, clock_, wall_clock_, Options(24));
  ASSERT_TRUE(session.Start({TwoTasks()[0]}).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  EXPECT_GT(lucky.size(), 3U) << "fewer, and three finalists are enough";
  EXPECT_LT(lucky.size(), 8U);
  EXPECT_FALSE(lucky.contains(fastest));
  EXPECT_EQ(session.verdicts()[0].trace, fastest);
}

// Without a limit in time there are 24 rounds; slow kernels have as many as one lease can hold.
TEST_F(SessionFinalsTest, ComparisonsFitTheTimeThatOneMayRun) {
  constexpr double kRunSeconds = 55;
  int fewer = 0, none = 0;
  // The default of one task takes 1 s, 2 s, ... 20 s.
  for (double slow = 1e4; slow < 3e5; slow *= 1.4) {
    SCOPED_TRACE(slow);
    db::MemoryDatabase log;
    FakeMeasurer measurer(1, {});
    measurer.slow = slow;
    double longest_ns = 0;
    measurer.on_compare = [&](double ns) { longest_ns = std::max(longest_ns, ns); };
    SessionOptions options = Options(20);
    options.run_seconds = kRunSeconds;
    TuningSession session(log, measurer, clock_, wall_clock_, options);
    ASSERT_TRUE(session.Start(TwoTasks()).ok());
    ASSERT_TRUE(session.Run(nullptr).ok());
    EXPECT_LT(longest_ns, 1e9 * kRunSeconds);
    for (const TaskVerdict& v : session.verdicts()) {
      none += !v.compared;
      fewer += v.compared && v.default_samples.size() < 24;
      EXPECT_TRUE(!v.compared || v.default_samples.size() >= 5);
    }
  }
  EXPECT_GE(fewer, 5);
  EXPECT_GE(none, 1) << "the slowest were meant to be too slow";
}

}  // namespace
}  // namespace hone::search
