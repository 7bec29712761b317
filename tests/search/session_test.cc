#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "base/versions.h"
#include "db/memory_database.h"
#include "search/tuning_session.h"
#include "tests/search/small_session.h"

namespace hone::search {
namespace {

class SessionTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  FakeClock& wall_clock_ = clock_;
  db::MemoryDatabase log_;
};

TEST_F(SessionTest, EveryAttemptIsInTheLogOnceAndTheBudgetHolds) {
  FakeMeasurer measurer(1, {});
  TuningSession session(log_, measurer, clock_, wall_clock_, Options(30));
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  EXPECT_EQ(session.reason(), StopReason::kTrials);
  auto stats = log_.Stats();
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->attempts, 30);
  EXPECT_TRUE(session.verdicts()[0].compared || session.verdicts()[1].compared);
  for (int i = 0; i < session.tuner().num_tasks(); ++i) {
    auto best = log_.BestRecord({{session.tuner().task(i).hash, TestTarget().text, "class",
                                  ir::AccuracyClass::kDefault, kCpuVersions.measurement_policy},
                                 "1+22.1"});
    ASSERT_TRUE(best.ok());
    ASSERT_TRUE(best->has_value());
    if (session.verdicts()[static_cast<size_t>(i)].compared) {
      EXPECT_EQ((*best)->rigor, db::Rigor::kVerified);
    }
    EXPECT_LE((*best)->record.median_ns, session.tuner().search(i).default_ns() + 2);
  }
}

TEST_F(SessionTest, FailuresAreOutcomesAndCostOnlyThemselves) {
  FakeMeasurer measurer(2, {.fail = 0.4});
  TuningSession session(log_, measurer, clock_, wall_clock_, Options(40));
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  auto stats = log_.Stats();
  ASSERT_TRUE(stats.ok());
  const int64_t wrong = stats->by_outcome[static_cast<size_t>(measure::Outcome::kWrongAnswer)];
  EXPECT_GT(wrong, 4);
  EXPECT_EQ(wrong + stats->by_outcome[0], 40);
}

TEST_F(SessionTest, LateReorderedAndLostResultsEndAllTheSame) {
  FakeMeasurer measurer(5, {.lose = 0.1, .fail = 0.1, .reorder = true, .delay = 4});
  TuningSession session(log_, measurer, clock_, wall_clock_, Options(60));
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  // A lost one is nobody's fault and gives its trial back.
  const int64_t lost = session.failures().at(measure::Outcome::kWorkerLost);
  EXPECT_GT(lost, 0);
  EXPECT_EQ(session.tuner().charged(Tuner::kAlone), 60);
  // But one that is lost three times stays paid.
  EXPECT_GT(session.tuner().attempts(), 60);
  EXPECT_LE(session.tuner().attempts(), 60 + lost);
  EXPECT_EQ(session.tuner().answered(), session.tuner().attempts());
}

// Killed after so many answers, again and again; afterwards nothing was measured twice but what was
// under way at a kill, and the budget counts across the restarts.
TEST_F(SessionTest, ARestartGoesOnWhereTheLogStands) {
  std::multiset<std::string> measured;
  int kills = 0;
  for (;; ++kills) {
    FakeMeasurer measurer(9, {});
    int left = 7;
    if (kills < 5) {
      measurer.on_answer = [&left] {
        if (--left == 0) throw Killed();
      };
    }
    TuningSession session(log_, measurer, clock_, wall_clock_, Options(50));
    ASSERT_TRUE(session.Start(TwoTasks()).ok());
    EXPECT_EQ(session.resumed(), kills > 0);
    bool killed = false;
    try {
      ASSERT_TRUE(session.Run(nullptr).ok());
    } catch (const Killed&) {
      killed = true;
    }
    if (!killed) {
      EXPECT_EQ(session.tuner().attempts(), 50);
      break;
    }
  }
  EXPECT_EQ(kills, 5);
  std::set<std::pair<std::string, std::string>> attempts;
  int64_t count = 0;
  ASSERT_TRUE(
      log_.ScanAttempts({},
                        [&](const db::Attempt& a) {
                          ++count;
                          EXPECT_TRUE(attempts.insert({a.key.workload.ToHex(), a.trace}).second)
                              << "measured twice";
                          return absl::OkStatus();
                        })
          .ok());
  EXPECT_EQ(count, 50);
}

TEST_F(SessionTest, AFinishedSessionIsNotResumedButWarmsTheNextOne) {
  FakeMeasurer measurer(1, {});
  {
    TuningSession session(log_, measurer, clock_, wall_clock_, Options(30));
    ASSERT_TRUE(session.Start(TwoTasks()).ok());
    ASSERT_TRUE(session.Run(nullptr).ok());
  }
  TuningSession next(log_, measurer, clock_, wall_clock_, Options(10));
  ASSERT_TRUE(next.Start(TwoTasks()).ok());
  EXPECT_FALSE(next.resumed());
  ASSERT_TRUE(next.Run(nullptr).ok());
  int transplants = 0;
  for (int i = 0; i < 2; ++i) {
    auto it = next.tuner().search(i).counts().find(Proposer::kTransplant);
    if (it != next.tuner().search(i).counts().end()) transplants += it->second.candidates;
  }
  EXPECT_GE(transplants, 1);
}

// One log, one search: the time that earlier runs used counts.
TEST_F(SessionTest, TheTimeBudgetCountsAcrossRestarts) {
  SessionOptions options = Options(0);
  options.seconds = 100;
  int64_t answered = 0;
  int runs = 0;
  for (bool finished = false; !finished && runs < 20; ++runs) {
    FakeMeasurer measurer(9, {});
    int left = 6;
    measurer.on_answer = [&] {
      clock_.AdvanceNs(4'000'000'000);
      if (--left == 0) throw Killed();
    };
    TuningSession session(log_, measurer, clock_, wall_clock_, options);
    ASSERT_TRUE(session.Start(TwoTasks()).ok());
    try {
      ASSERT_TRUE(session.Run(nullptr).ok());
      finished = true;
      EXPECT_EQ(session.reason(), StopReason::kTime);
      EXPECT_GE(session.ElapsedSeconds(), 80);
      EXPECT_LE(session.ElapsedSeconds(), 110);
      answered = session.tuner().answered();
    } catch (const Killed&) {
    }
  }
  EXPECT_GE(runs, 4);
  // 4 s each; the answer of a kill was not acknowledged and its time not noted.
  EXPECT_GE(answered, 19);
  EXPECT_LE(answered, 30);
}

// Kernels that take so long that the comparisons and the whole model, at their most, would not fit.
TEST_F(SessionTest, WhatComesAfterTheSearchEndsByTheDateToo) {
  constexpr int64_t kOneSecondNs = 1'000'000'000;
  FakeMeasurer measurer(1, {});
  measurer.slow = 1e4;
  measurer.on_answer = [&] { clock_.AdvanceNs(2 * kOneSecondNs); };
  double compared_ns = 0;
  measurer.on_compare = [&](double ns) {
    compared_ns += ns;
    clock_.AdvanceNs(static_cast<int64_t>(ns));
  };
  SessionOptions options = Options(0);
  const int64_t date_ns = wall_clock_.UnixNs() + 100 * kOneSecondNs;
  options.until_unix_ns = date_ns;
  options.reserve_seconds = 10;
  bool judged = false;
  options.before_end = [&](TuningSession& s) {
    judged = true;
    EXPECT_GE(s.SecondsLeft(), 10);
    clock_.AdvanceNs(10 * kOneSecondNs);
    return absl::OkStatus();
  };
  TuningSession session(log_, measurer, clock_, wall_clock_, options);
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  EXPECT_EQ(session.reason(), StopReason::kDate);
  EXPECT_TRUE(judged);
  EXPECT_TRUE(session.verdicts()[0].compared || session.verdicts()[1].compared);
  EXPECT_GT(compared_ns, 1e9) << "nothing that could be late";
  EXPECT_LE(wall_clock_.UnixNs(), date_ns);
  EXPECT_GE(session.tuner().answered(), 35) << "most of the time is for the search";
}

// Whoever stops what runs at the date counts on another clock.
TEST_F(SessionTest, WhatTheWallClockLeavesIsToldAgainAndAgain) {
  constexpr int64_t kOneSecondNs = 1'000'000'000;
  FakeMeasurer measurer(1, {});
  SessionOptions options = Options(0);
  options.until_unix_ns = wall_clock_.UnixNs() + 40 * kOneSecondNs;
  std::vector<int64_t> told_ns;
  options.tell_seconds_left = [&](double seconds) {
    EXPECT_NEAR(1e9 * seconds, static_cast<double>(options.until_unix_ns - wall_clock_.UnixNs()),
                1e3);
    told_ns.push_back(clock_.NowNs());
  };
  int answers = 0;
  measurer.on_answer = [&] {
    clock_.AdvanceNs(kOneSecondNs / 4);
    if (++answers == 20) clock_.JumpWallNs(-10 * kOneSecondNs);
  };
  TuningSession session(log_, measurer, clock_, wall_clock_, options);
  const int64_t start_ns = clock_.NowNs();
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  EXPECT_EQ(session.reason(), StopReason::kDate);
  EXPECT_GT(clock_.NowNs() - start_ns, 40 * kOneSecondNs) << "it is stepped back";
  // Once a second of the search, and before each comparison.
  EXPECT_GE(told_ns.size(), 40u);
  EXPECT_LE(told_ns.size(), 52u);
}

// Where not even the fewest rounds fit, nothing is compared; what was measured stays.
TEST_F(SessionTest, AComparisonThatWouldEndTooLateIsNotBegun) {
  FakeMeasurer measurer(1, {});
  measurer.slow = 1e6;
  measurer.on_answer = [&] { clock_.AdvanceNs(2'000'000'000); };
  measurer.on_compare = [&](double) { FAIL() << "compared"; };
  SessionOptions options = Options(0);
  options.seconds = 60;
  TuningSession session(log_, measurer, clock_, wall_clock_, options);
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  EXPECT_EQ(session.reason(), StopReason::kTime);
  EXPECT_FALSE(session.verdicts()[0].compared);
  EXPECT_LE(session.ElapsedSeconds(), 60);
}

// Counted once, by the log and by the tasks alike, whoever measured them.
TEST_F(SessionTest, FailuresOfEarlierRunsCountToo) {
  for (int kills = 0;; ++kills) {
    FakeMeasurer measurer(static_cast<uint64_t>(20 + kills), {.lose = 0.05, .fail = 0.4});
    int left = 12;
    if (kills < 3) {
      measurer.on_answer = [&left] {
        if (--left == 0) throw Killed();
      };
    }
    TuningSession session(log_, measurer, clock_, wall_clock_, Options(60));
    ASSERT_TRUE(session.Start(TwoTasks()).ok());
    EXPECT_EQ(session.resumed(), kills > 0);
    try {
      ASSERT_TRUE(session.Run(nullptr).ok());
    } catch (const Killed&) {
      continue;
    }
    ASSERT_EQ(kills, 3);
    auto stats = log_.Stats();
    ASSERT_TRUE(stats.ok());
    std::map<measure::Outcome, int64_t> of_log, of_tasks;
    for (size_t i = 1; i < stats->by_outcome.size(); ++i) {
      if (stats->by_outcome[i] > 0) of_log[static_cast<measure::Outcome>(i)] = stats->by_outcome[i];
    }
    for (int i = 0; i < 2; ++i) {
      for (const auto& [outcome, n] : session.tuner().search(i).failures()) of_tasks[outcome] += n;
    }
    EXPECT_EQ(session.failures(), of_log);
    EXPECT_GT(of_log[measure::Outcome::kWrongAnswer], 10);
    EXPECT_EQ(of_tasks[measure::Outcome::kWrongAnswer], of_log[measure::Outcome::kWrongAnswer]);
    break;
  }
}

struct FaultCase {
  const char* name;
  FakeMeasurer::Faults faults;
};

class RestartTest : public SessionTest, public ::testing::WithParamInterface<FaultCase> {
 protected:
  /// For a task of a session that went on where others were killed.
  void ExpectTheSame(const TaskSearch& whole, const TuningSession& session, int task) {
    const TaskSearch& restarted = session.tuner().search(task);
    // Nothing that an earlier run measured is forgotten.
    double least_ns = 1e30;
    int records = 0;
    ASSERT_TRUE(log_.ScanRecords({},
                                 [&](const db::RankedRecord& r) {
                                   if (r.record.key.workload == session.tuner().task(task).hash &&
                                       r.record.rigor == db::Rigor::kScreened) {
                                     least_ns = std::min(least_ns, r.record.median_ns);
                                     ++records;
                                   }
                                   return absl::OkStatus();
                                 })
                    .ok());
    EXPECT_EQ(restarted.Top(1).empty() ? 0 : restarted.history().back(), least_ns);
    EXPECT_EQ(static_cast<size_t>(records), restarted.Top(1 << 20).size());
    // Which point comes first depends on the order of answers, and so does when a search settles:
    // one that has seen most of the Space has met one of its best.
    const double good_ns = OfTheBest(restarted.space());
    const auto most = static_cast<int>(restarted.space().admitted() * 3 / 4);
    for (const TaskSearch* search : {&whole, &restarted}) {
      if (!search->exhausted() && search->trials() < most) continue;
      EXPECT_LE(search->best_ns(), good_ns);
    }
  }

  /// What the slowest of the best 2 % takes, of the points that give a right answer.
  double OfTheBest(const schedule::Space& space) const {
    std::vector<double> all_ns;
    for (uint64_t id = 0; id < space.product(); ++id) {
      if (!space.Admits(id)) continue;
      const std::string trace = schedule::ToText(*space.TraceOf(id));
      if (static_cast<double>(HashBytes(trace).high % 1000) >= 1000 * GetParam().faults.fail)
        all_ns.push_back(LandscapeNs(trace));
    }
    std::sort(all_ns.begin(), all_ns.end());
    return all_ns.empty() ? 0 : all_ns[all_ns.size() / 50] + 1;  // the median of three samples
  }
};

INSTANTIATE_TEST_SUITE_P(
    All, RestartTest,
    ::testing::Values(FaultCase{"None", {}}, FaultCase{"LostOrFailed", {.lose = 0.1, .fail = 0.1}},
                      FaultCase{"LateAndReordered", {.reorder = true, .delay = 4}},
                      FaultCase{"All", {.lose = 0.1, .fail = 0.1, .reorder = true, .delay = 4}}),
    [](const auto& one) { return std::string(one.param.name); });

TEST_P(RestartTest, EndsAsAnUninterruptedRunDoes) {
  FakeMeasurer measurer(9, GetParam().faults);
  db::MemoryDatabase other;
  TuningSession whole(other, measurer, clock_, wall_clock_, Options(400));
  ASSERT_TRUE(whole.Start(TwoTasks()).ok());
  ASSERT_TRUE(whole.Run(nullptr).ok());
  for (int kills = 0;; ++kills) {
    FakeMeasurer again(static_cast<uint64_t>(10 + kills), GetParam().faults);
    int left = 60;
    again.on_answer = [&left] {
      if (--left == 0) throw Killed();
    };
    TuningSession session(log_, again, clock_, wall_clock_, Options(400));
    ASSERT_TRUE(session.Start(TwoTasks()).ok());
    try {
      ASSERT_TRUE(session.Run(nullptr).ok());
      EXPECT_GE(kills, 3);
      EXPECT_EQ(session.tuner().answered(), session.tuner().attempts());
      // Whether a Space is exhausted or only settled, and when, depends on the order of answers.
      const bool of_trials = whole.reason() == StopReason::kTrials;
      EXPECT_EQ(session.reason() == StopReason::kTrials, of_trials);
      if (of_trials) {
        EXPECT_EQ(session.tuner().charged(Tuner::kAlone), 400);
        EXPECT_EQ(whole.tuner().charged(Tuner::kAlone), 400);
      }
      for (int i = 0; i < 2; ++i) ExpectTheSame(whole.tuner().search(i), session, i);
      break;
    } catch (const Killed&) {
    }
  }
}

// Another model under the same name: its events mean nothing here.
TEST_F(SessionTest, AnUnfinishedSessionOfOtherTasksIsNotResumed) {
  {
    FakeMeasurer measurer(1, {});
    int left = 5;
    measurer.on_answer = [&left] {
      if (--left == 0) throw Killed();
    };
    TuningSession session(log_, measurer, clock_, wall_clock_, Options(30));
    ASSERT_TRUE(session.Start(TwoTasks()).ok());
    EXPECT_THROW((void)session.Run(nullptr), Killed);
  }
  std::vector<TuningTask> tasks = TwoTasks();
  tasks.erase(tasks.begin());
  FakeMeasurer measurer(1, {});
  TuningSession session(log_, measurer, clock_, wall_clock_, Options(30));
  ASSERT_TRUE(session.Start(std::move(tasks)).ok());
  EXPECT_FALSE(session.resumed());
  EXPECT_TRUE(session.Run(nullptr).ok());
}

TEST_F(SessionTest, RecordsOfANearWorkloadAreTransplanted) {
  {
    FakeMeasurer measurer(1, {});
    TuningSession session(log_, measurer, clock_, wall_clock_, Options(60));
    ASSERT_TRUE(session.Start(TwoTasks()).ok());
    ASSERT_TRUE(session.Run(nullptr).ok());
  }
  std::vector<TuningTask> tasks = {TallerProduct()};
  SessionOptions options = Options(8);
  options.request = "{\"model\":\"another\"}";
  FakeMeasurer measurer(1, {});
  TuningSession session(log_, measurer, clock_, wall_clock_, options);
  ASSERT_TRUE(session.Start(std::move(tasks)).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  const auto& counts = session.tuner().search(0).counts();
  ASSERT_EQ(counts.count(Proposer::kTransplant), 1U);
  EXPECT_GE(counts.at(Proposer::kTransplant).candidates, 1);
}

TEST_F(SessionTest, ASearchThatFindsNothingMoreEnds) {
  FakeMeasurer measurer(1, {});
  // The default is the best there is: every other candidate takes twice its time.
  measurer.flat = true;
  TuningSession session(log_, measurer, clock_, wall_clock_, Options(0));
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  EXPECT_TRUE(session.reason() == StopReason::kNothingExpected ||
              session.reason() == StopReason::kExhausted);
  int settled = 0;
  for (int i = 0; i < 2; ++i) {
    const TaskSearch& s = session.tuner().search(i);
    if (s.exhausted()) continue;
    ++settled;
    EXPECT_LE(s.trials(), TaskSearch::kMinStale + 40);
    EXPECT_GE(s.trials(), TaskSearch::kMinStale);
  }
  EXPECT_GE(settled, 1) << "both Spaces are too small to tell";
}

// Nobody measures any more (no builder, no runner): that ends, with the reason.
TEST_F(SessionTest, WhenNothingCanBeMeasuredItEndsWithAnError) {
  FakeMeasurer measurer(1, {.broken = true});
  TuningSession session(log_, measurer, clock_, wall_clock_, Options(0));
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  const absl::Status status = session.Run(nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_NE(std::string(status.message()).find("no runner"), std::string::npos) << status;
}

// What fills the disk may be anybody: the record ends in time, and goes on when there is room.
TEST_F(SessionTest, ADiskThatFillsEndsTheRecordWhileThereIsRoomForIt) {
  int64_t free_bytes = 1'000'000'000;
  int answers = 0;
  SessionOptions options = Options(60);
  options.free_bytes = [&] { return free_bytes; };
  FakeMeasurer measurer(9, {});
  measurer.on_answer = [&] {
    if (++answers != 12) return;
    clock_.AdvanceNs(5'000'000'000);
    free_bytes = options.least_free_bytes - 1;
  };
  bool judged = false;
  options.before_end = [&](TuningSession&) {
    judged = true;
    return absl::OkStatus();
  };
  TuningSession session(log_, measurer, clock_, wall_clock_, options);
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  EXPECT_EQ(session.reason(), StopReason::kDiskFull);
  EXPECT_FALSE(judged);
  EXPECT_LT(session.tuner().answered(), 60);
  // What was under way is in the log, and its end.
  EXPECT_EQ(session.tuner().open(), 0);
  EXPECT_EQ(log_.Stats()->attempts, session.tuner().answered());
  const auto events = log_.EventsOf(session.id());
  ASSERT_TRUE(events.ok());
  EXPECT_EQ(events->back().type, "interrupted");
  EXPECT_EQ(events->back().payload, "disk full");

  free_bytes = options.least_free_bytes;
  TuningSession next(log_, measurer, clock_, wall_clock_, options);
  ASSERT_TRUE(next.Start(TwoTasks()).ok());
  EXPECT_TRUE(next.resumed());
  ASSERT_TRUE(next.Run(nullptr).ok());
  EXPECT_EQ(next.reason(), StopReason::kTrials);
  EXPECT_EQ(next.tuner().answered(), 60);
  EXPECT_TRUE(judged);
  EXPECT_EQ(log_.EventsOf(next.id())->back().type, "finished");
}

TEST_F(SessionTest, NoisyResultsAreMarkedInTheLog) {
  FakeMeasurer measurer(1, {.noisy = true});
  TuningSession session(log_, measurer, clock_, wall_clock_, Options(10));
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  int screened = 0;
  ASSERT_TRUE(log_.ScanRecords({},
                               [&](const db::RankedRecord& r) {
                                 // The comparisons at the end were disturbed, too.
                                 EXPECT_TRUE(r.record.noisy);
                                 screened += r.record.rigor == db::Rigor::kScreened ? 1 : 0;
                                 return absl::OkStatus();
                               })
                  .ok());
  EXPECT_EQ(screened, 10);
}

}  // namespace
}  // namespace hone::search
