#include <functional>
#include <set>

#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "base/versions.h"
#include "db/memory_database.h"
#include "search/session.h"
#include "tests/search/small_session.h"

namespace hone::search {
namespace {

class SessionFinalsTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  FakeClock& wall_clock_ = clock_;
  db::MemoryDatabase log_;
};

// The whole model says that a winner loses there: look-up answers with the default from then on.
TEST_F(SessionFinalsTest, APutBackKernelIsLookedUpAsItsDefault) {
  FakeMeasurer measurer(1, {});
  SessionOptions options = Options(60);
  int put_back = -1;
  options.before_end = [&](Session& s) {
    for (int i = 0; i < s.tuner().num_tasks() && put_back < 0; ++i) {
      if (s.verdicts()[static_cast<size_t>(i)].replaced) put_back = i;
    }
    return s.AddConfirmations({{put_back, true}});
  };
  Session session(log_, measurer, clock_, wall_clock_, options);
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  ASSERT_GE(put_back, 0) << "no task was improved; choose another landscape";
  const TaskSearch& search = session.tuner().search(put_back);
  const auto best =
      log_.BestRecord({{session.tuner().task(put_back).hash, TestTarget().text, "class",
                        ir::AccuracyClass::kDefault, kMeasurementPolicyVersion},
                       "1+22.1"});
  ASSERT_TRUE(best.ok() && best->has_value());
  EXPECT_EQ((*best)->rigor, db::Rigor::kConfirmed);
  EXPECT_EQ((*best)->record.trace,
            schedule::ToText(*search.space().TraceOf(search.space().DefaultId())));
  EXPECT_TRUE(session.verdicts()[static_cast<size_t>(put_back)].put_back);
}

db::RecordQuery QueryOf(const Session& session, int task) {
  return {{session.tuner().task(task).hash, TestTarget().text, "class", ir::AccuracyClass::kDefault,
           kMeasurementPolicyVersion},
          "1+22.1"};
}

std::string DefaultTraceOf(const Session& session, int task) {
  const schedule::Space& space = session.tuner().search(task).space();
  return schedule::ToText(*space.TraceOf(space.DefaultId()));
}

/// What a session confirms or puts back before it ends: every winner.
std::function<absl::Status(Session&)> SayOfWinners(bool put_back, std::set<int>* winners) {
  return [=](Session& s) {
    std::vector<Confirmation> said;
    for (int i = 0; i < s.tuner().num_tasks(); ++i) {
      if (!s.verdicts()[static_cast<size_t>(i)].replaced) continue;
      said.push_back({i, put_back});
      winners->insert(i);
    }
    return s.AddConfirmations(said);
  };
}

// It stays the fastest alone, confirmed by an earlier session; the newer word counts.
TEST_F(SessionFinalsTest, AKernelConfirmedOnceCanBePutBackLater) {
  FakeMeasurer measurer(1, {});
  std::set<int> confirmed, put_back;
  SessionOptions options = Options(60);
  options.before_end = SayOfWinners(false, &confirmed);
  Session first(log_, measurer, clock_, wall_clock_, options);
  ASSERT_TRUE(first.Start(TwoTasks()).ok());
  ASSERT_TRUE(first.Run(nullptr).ok());
  options.before_end = SayOfWinners(true, &put_back);
  Session second(log_, measurer, clock_, wall_clock_, options);
  ASSERT_TRUE(second.Start(TwoTasks()).ok());
  ASSERT_TRUE(second.Run(nullptr).ok());
  int both = 0;
  for (const int task : put_back) {
    if (confirmed.count(task) == 0) continue;
    ++both;
    const auto top = log_.TopRecords(QueryOf(second, task), 2);
    ASSERT_TRUE(top.ok());
    EXPECT_EQ(top->front().record.trace, DefaultTraceOf(second, task));
    EXPECT_LT((*top)[1].record.low_ns, top->front().record.low_ns) << "the fast one is faster";
  }
  EXPECT_GE(both, 1) << "no task was improved twice; choose another landscape";
}

// One without time for comparisons, too: the log knows how long the default takes.
TEST_F(SessionFinalsTest, PutBackHoldsForWhatThisSessionDidNotCompare) {
  FakeMeasurer measurer(1, {});
  std::set<int> confirmed;
  SessionOptions options = Options(60);
  options.before_end = SayOfWinners(false, &confirmed);
  Session first(log_, measurer, clock_, wall_clock_, options);
  ASSERT_TRUE(first.Start(TwoTasks()).ok());
  ASSERT_TRUE(first.Run(nullptr).ok());
  ASSERT_FALSE(confirmed.empty()) << "no task was improved; choose another landscape";
  const int task = *confirmed.begin();

  db::MemoryDatabase unknown;
  for (db::MemoryDatabase* log : {&log_, &unknown}) {
    SCOPED_TRACE(log == &log_ ? "measured before" : "never measured");
    options.before_end = nullptr;
    options.request = "{\"model\":\"another\"}";
    Session second(*log, measurer, clock_, wall_clock_, options);
    ASSERT_TRUE(second.Start(TwoTasks()).ok());
    ASSERT_FALSE(second.verdicts()[static_cast<size_t>(task)].compared);
    ASSERT_TRUE(second.AddConfirmations({{task, true}}).ok());
    const auto best = log->BestRecord(QueryOf(second, task));
    ASSERT_TRUE(best.ok());
    // What cannot be told to look-ups is not told to people either.
    EXPECT_EQ(second.verdicts()[static_cast<size_t>(task)].put_back, best->has_value());
    EXPECT_EQ(best->has_value(), log == &log_);
    if (!best->has_value()) continue;
    EXPECT_EQ((*best)->record.trace, DefaultTraceOf(second, task));
    EXPECT_EQ((*best)->rigor, db::Rigor::kConfirmed);
    EXPECT_EQ((*best)->record.session, second.id());
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
    options.before_end = [&](Session& s) -> absl::Status {
      before = s.verdicts();
      throw Killed();
    };
    Session first(log, measurer, clock_, wall_clock_, options);
    ASSERT_TRUE(first.Start(TwoTasks()).ok());
    EXPECT_THROW((void)first.Run(nullptr), Killed);
    std::set<int> winners;
    options.before_end = SayOfWinners(put_back, &winners);
    measurer.on_compare = [](double) { FAIL() << "compared again"; };
    Session second(log, measurer, clock_, wall_clock_, options);
    ASSERT_TRUE(second.Start(TwoTasks()).ok());
    ASSERT_TRUE(second.resumed());
    ASSERT_TRUE(second.Run(nullptr).ok());
    ASSERT_FALSE(winners.empty()) << "no task was improved; choose another landscape";
    for (const int task : winners) {
      const TaskVerdict& v = before[static_cast<size_t>(task)];
      const auto best = log.BestRecord(QueryOf(second, task));
      ASSERT_TRUE(best.ok() && best->has_value());
      EXPECT_EQ((*best)->rigor, db::Rigor::kConfirmed);
      EXPECT_EQ((*best)->record.trace, put_back ? DefaultTraceOf(second, task) : v.trace);
      EXPECT_EQ(second.verdicts()[static_cast<size_t>(task)].put_back, put_back);
    }
  }
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
    Session session(log, measurer, clock_, wall_clock_, options);
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
