#include "search/session.h"

#include <set>
#include <stdexcept>

#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "base/versions.h"
#include "db/memory_database.h"
#include "tests/search/fake_measurer.h"

namespace hone::search {
namespace {

struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

SessionOptions Options(int64_t trials) {
  SessionOptions o;
  o.request = "{\"model\":\"m\"}";
  o.versions = "{}";
  o.seed = 3;
  o.trials = trials;
  o.seconds = 0;
  o.target = TestTarget();
  o.device = {"class", "fingerprint"};
  o.builder_version = "1+22.1";
  return o;
}

class SessionTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  FakeClock& wall_clock_ = clock_;
  db::MemoryDatabase log_;
};

TEST_F(SessionTest, EveryAttemptIsInTheLogOnceAndTheBudgetHolds) {
  FakeMeasurer measurer(1, {});
  Session session(log_, measurer, clock_, wall_clock_, Options(30));
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  EXPECT_EQ(session.reason(), StopReason::kTrials);
  auto stats = log_.Stats();
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->attempts, 30);
  EXPECT_TRUE(session.verdicts()[0].compared || session.verdicts()[1].compared);
  for (int i = 0; i < session.tuner().num_tasks(); ++i) {
    auto best = log_.BestRecord({{session.tuner().task(i).hash, TestTarget().text, "class",
                                  ir::AccuracyClass::kDefault, kMeasurementPolicyVersion},
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
  Session session(log_, measurer, clock_, wall_clock_, Options(40));
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
  Session session(log_, measurer, clock_, wall_clock_, Options(60));
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  EXPECT_EQ(session.tuner().attempts(), 60);
  EXPECT_EQ(session.tuner().answered(), 60);
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
    Session session(log_, measurer, clock_, wall_clock_, Options(50));
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
    Session session(log_, measurer, clock_, wall_clock_, Options(30));
    ASSERT_TRUE(session.Start(TwoTasks()).ok());
    ASSERT_TRUE(session.Run(nullptr).ok());
  }
  Session next(log_, measurer, clock_, wall_clock_, Options(10));
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

TEST(IntervalTest, HoldsTheMedianAndIsNarrowForManySamples) {
  std::vector<int64_t> samples;
  for (int i = 0; i < 101; ++i) samples.push_back(1000 + i);
  const MedianInterval m = IntervalOf(samples);
  EXPECT_EQ(m.median, 1050);
  EXPECT_LT(m.low, m.median);
  EXPECT_GT(m.high, m.median);
  EXPECT_LE(m.high - m.low, 24);
  const MedianInterval one = IntervalOf({5});
  EXPECT_EQ(one.low, 5);
  EXPECT_EQ(one.high, 5);
}

}  // namespace
}  // namespace hone::search
