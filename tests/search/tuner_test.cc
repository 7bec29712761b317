#include "search/tuner.h"

#include <map>
#include <set>
#include <utility>

#include "gtest/gtest.h"

#include "tests/search/fake_measurer.h"

namespace hone::search {
namespace {

/// Proposes and answers n attempts; gives the events in order.
std::vector<SearchEvent> Steps(Tuner& tuner, int n) {
  std::vector<SearchEvent> events;
  while (n > 0) {
    std::vector<Tuner::Proposal> batch = tuner.Propose(std::min(n, 5));
    if (batch.empty()) break;
    for (const auto& p : batch) events.emplace_back(Tuner::EventOf(p));
    for (const auto& p : batch) {
      const double ns = LandscapeNs(p.trace);
      events.emplace_back(ResultEvent{p.attempt, measure::Outcome::kOk, ns, 0.01});
      EXPECT_TRUE(tuner.Result(p.attempt, measure::Outcome::kOk, ns, 0.01));
      --n;
    }
  }
  return events;
}

TEST(TunerTest, TheFirstCandidateOfEachTaskIsItsDefault) {
  Tuner tuner(TwoTasks(), TestTarget(), {.seed = 1});
  std::set<int> seen;
  for (const auto& p : tuner.Propose(2)) {
    EXPECT_EQ(p.proposer, Proposer::kDefault);
    EXPECT_EQ(p.id, tuner.search(p.task).space().DefaultId());
    seen.insert(p.task);
  }
  EXPECT_EQ(seen.size(), 2u);
}

TEST(TunerTest, NoCandidateTwiceAndTheBudgetHolds) {
  Tuner tuner(TwoTasks(), TestTarget(), {.seed = 1, .trials = 40});
  std::set<std::pair<int, uint64_t>> seen;
  for (;;) {
    std::vector<Tuner::Proposal> batch = tuner.Propose(7);
    if (batch.empty()) break;
    for (const auto& p : batch) {
      EXPECT_TRUE(seen.insert({p.task, p.id}).second);
      EXPECT_FALSE(p.trace.empty());
      tuner.Result(p.attempt, measure::Outcome::kOk, LandscapeNs(p.trace), 0.01);
    }
  }
  EXPECT_EQ(seen.size(), 40u);
  EXPECT_EQ(tuner.reason(), StopReason::kTrials);
}

TEST(TunerTest, ASmallSpaceIsMeasuredToItsEnd) {
  Tuner tuner(TwoTasks(), TestTarget(), {.seed = 2});
  Steps(tuner, 1 << 20);
  // The other task is given up when nothing is expected of it.
  EXPECT_EQ(tuner.reason(), StopReason::kNothingExpected);
  ASSERT_TRUE(tuner.search(0).exhausted()) << tuner.search(0).trials();
  EXPECT_TRUE(tuner.search(1).settled());
  double best = 1e30;
  const schedule::Space& space = tuner.search(0).space();
  for (uint64_t id = 0; id < space.product(); ++id) {
    if (!space.Admits(id)) continue;
    auto trace = space.TraceOf(id);
    ASSERT_TRUE(trace.ok()) << trace.status();
    best = std::min(best, LandscapeNs(schedule::ToText(*trace)));
  }
  EXPECT_EQ(tuner.search(0).best_ns(), best);
}

TEST(TunerTest, TheOtherWayIsSearchedButCountsNothing) {
  std::vector<TuningTask> tasks = TwoTasks();
  tasks[1].other_count = std::exchange(tasks[1].count, 0);
  Tuner tuner(tasks, TestTarget(), {.seed = 1});
  Steps(tuner, 60);
  EXPECT_GT(tuner.search(1).trials(), 8) << "more than a batch";
  EXPECT_EQ(tuner.TotalNs(true), tasks[0].count * tuner.search(0).best_ns());
  tasks[1].other_count += 1;
  EXPECT_NE(Tuner(tasks, TestTarget(), {.seed = 1}).Fingerprint(), tuner.Fingerprint());
}

TEST(TunerTest, AReplayedTunerProposesWhatTheFirstOneWould) {
  for (uint64_t seed : {1, 2, 3, 4, 5}) {
    Tuner first(TwoTasks(), TestTarget(), {.seed = seed});
    const auto events = Steps(first, 30);
    Tuner second(TwoTasks(), TestTarget(), {.seed = seed});
    for (const SearchEvent& event : events) ASSERT_TRUE(second.Replay(event).ok());
    EXPECT_EQ(second.attempts(), first.attempts());
    const auto a = first.Propose(12), b = second.Propose(12);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(Tuner::EventOf(a[i]), Tuner::EventOf(b[i])) << "seed " << seed;
    }
  }
}

TEST(TunerTest, ProposalsWithoutAnAnswerAreOpenAfterAReplay) {
  Tuner first(TwoTasks(), TestTarget(), {.seed = 1});
  std::vector<Tuner::Proposal> batch = first.Propose(4);
  Tuner second(TwoTasks(), TestTarget(), {.seed = 1});
  for (const auto& p : batch) ASSERT_TRUE(second.Replay(Tuner::EventOf(p)).ok());
  ASSERT_TRUE(second.Replay(ResultEvent{batch[1].attempt, measure::Outcome::kOk, 5, 1}).ok());
  std::vector<Tuner::Proposal> open = second.Open();
  ASSERT_EQ(open.size(), batch.size() - 1);
  for (const auto& p : open) EXPECT_NE(p.attempt, batch[1].attempt);
}

TEST(TunerTest, ASecondResultOfAnAttemptIsIgnored) {
  Tuner tuner(TwoTasks(), TestTarget(), {.seed = 1});
  const auto p = tuner.Propose(1).front();
  EXPECT_TRUE(tuner.Result(p.attempt, measure::Outcome::kOk, 100, 1));
  EXPECT_FALSE(tuner.Result(p.attempt, measure::Outcome::kOk, 1, 1));
  EXPECT_EQ(tuner.search(p.task).best_ns(), 100);
}

TEST(TunerTest, AFailureIsNoLatencyAndALostCandidateComesBack) {
  Tuner tuner(TwoTasks(), TestTarget(), {.seed = 1});
  const auto p = tuner.Propose(1).front();
  tuner.Result(p.attempt, measure::Outcome::kWorkerLost, 0, 1);
  EXPECT_EQ(tuner.search(p.task).trials(), 0);
  bool again = false;
  for (const auto& q : tuner.Propose(4)) again |= q.task == p.task && q.id == p.id;
  EXPECT_TRUE(again);
  const auto r = tuner.Propose(1).front();
  tuner.Result(r.attempt, measure::Outcome::kWrongAnswer, 0, 1);
  EXPECT_FALSE(tuner.search(r.task).best().has_value());
}

TEST(TunerTest, WhatInfrastructureLosesCostsNothingHoweverOften) {
  Tuner tuner({TwoTasks()[0]}, TestTarget(), {.seed = 1, .trials = 2});
  Tuner replayed({TwoTasks()[0]}, TestTarget(), {.seed = 1, .trials = 2});
  uint64_t lost = 0;
  for (int loss = 1; loss <= 3; ++loss) {
    SCOPED_TRACE(loss);
    const auto p = tuner.Propose(1).front();
    if (loss == 1) lost = p.id;
    ASSERT_EQ(p.id, lost);
    EXPECT_EQ(tuner.charged(Tuner::kAlone), 1);
    tuner.Result(p.attempt, measure::Outcome::kWorkerLost, 0, 1);
    EXPECT_EQ(tuner.charged(Tuner::kAlone), 0);
    ASSERT_TRUE(replayed.Replay(Tuner::EventOf(p)).ok());
    ASSERT_TRUE(replayed.Replay(ResultEvent{p.attempt, measure::Outcome::kWorkerLost, 0, 1}).ok());
  }
  for (Tuner* t : {&tuner, &replayed}) {
    int64_t trials = 0;
    for (auto batch = t->Propose(5); !batch.empty(); batch = t->Propose(5)) {
      for (const auto& p : batch) {
        EXPECT_NE(p.id, lost) << "three times is enough";
        t->Result(p.attempt, measure::Outcome::kOk, 1000, 1);
        ++trials;
      }
    }
    EXPECT_EQ(trials, 2) << "the whole budget";
    EXPECT_EQ(t->reason(), StopReason::kTrials);
  }
}

// What one product has found is tried early on another of the same form.
TEST(TunerTest, SiblingsShareWhatTheyFound) {
  std::vector<TuningTask> tasks = {TwoTasks()[0], TallerProduct()};
  Tuner tuner(std::move(tasks), TestTarget(), {.seed = 1});
  Steps(tuner, 40);
  int transplants = 0;
  for (int i = 0; i < 2; ++i) {
    const auto& counts = tuner.search(i).counts();
    if (counts.count(Proposer::kTransplant) != 0)
      transplants += counts.at(Proposer::kTransplant).candidates;
  }
  EXPECT_GE(transplants, 1);
}

// Sixty tasks, results late: the first hundred or so candidates reach every one of them.
TEST(TunerTest, NoTaskStarvesWhileResultsAreUnderWay) {
  std::vector<TuningTask> tasks;
  for (int i = 0; i < 60; ++i) {
    tasks.push_back(i % 2 == 0 ? TwoTasks()[0] : TallerProduct());
    tasks.back().hash.high = static_cast<uint64_t>(i);
    tasks.back().flop = 1e6 * (1 + i);
  }
  Tuner tuner(std::move(tasks), TestTarget(), {.seed = 1});
  std::vector<Tuner::Proposal> waiting;
  std::map<int, int> met;
  for (int step = 0; step < 60; ++step) {
    for (const auto& p : tuner.Propose(8)) {
      ++met[p.task];
      waiting.push_back(p);
    }
    // 32 in flight, as on a real machine.
    while (waiting.size() > 32) {
      tuner.Result(waiting.front().attempt, measure::Outcome::kOk,
                   LandscapeNs(waiting.front().trace), 0.05);
      waiting.erase(waiting.begin());
    }
  }
  EXPECT_EQ(met.size(), 60U);
  for (const auto& [task, n] : met) EXPECT_LE(n, 60) << "task " << task;
}

// However near its bound a heavy task is, and however much longer its candidates take: it is never
// the one that was tried least, once each has its default's time.
TEST(TunerTest, TheTaskWithTheLargestShareOfTheTimeIsNeverTheOneTriedLeast) {
  for (uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    SCOPED_TRACE(seed);
    const int heavy = static_cast<int>(seed % 3);
    std::vector<TuningTask> tasks;
    for (int i = 0; i < 3; ++i) {
      tasks.push_back(TwoTasks()[1]);
      tasks.back().hash.high = static_cast<uint64_t>(i);
      if (i == heavy) tasks.back().bound_ns = 1e9;
    }
    Tuner tuner(std::move(tasks), TestTarget(), {.seed = seed});
    for (int step = 0; step < 12 && !tuner.search(heavy).settled(); ++step) {
      for (const auto& p : tuner.Propose(step == 0 ? 3 : 16)) {
        const bool is_heavy = p.task == heavy;
        const double ns = is_heavy ? 1e9 : LandscapeNs(p.trace);
        tuner.Result(p.attempt, measure::Outcome::kOk, ns, is_heavy ? 2.0 : 0.02);
      }
      const int tried = tuner.search(heavy).trials();
      const int others =
          std::min(tuner.search((heavy + 1) % 3).trials(), tuner.search((heavy + 2) % 3).trials());
      EXPECT_GE(tried, others) << "step " << step;
    }
    EXPECT_GT(tuner.search(heavy).trials(), 16);
  }
}

TEST(TunerTest, ImportedPointsAreProposedFirstAndReplayed) {
  Tuner tuner(TwoTasks(), TestTarget(), {.seed = 1});
  const schedule::Space& space = tuner.search(0).space();
  uint64_t point = 0;
  while (point == space.DefaultId() || !space.Admits(point)) ++point;
  Tuner replayed(TwoTasks(), TestTarget(), {.seed = 1});
  EXPECT_EQ(tuner.Fingerprint(), replayed.Fingerprint());
  tuner.Import(0, point);
  ASSERT_TRUE(replayed.Replay(ImportedEvent{0, point}).ok());
  EXPECT_FALSE(replayed.Replay(ImportedEvent{7, 0}).ok());
  const auto a = tuner.Propose(12), b = replayed.Propose(12);
  ASSERT_EQ(a.size(), b.size());
  int transplants = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(Tuner::EventOf(a[i]), Tuner::EventOf(b[i]));
    transplants += a[i].proposer == Proposer::kTransplant ? 1 : 0;
  }
  EXPECT_EQ(transplants, 1);
}

TEST(TunerTest, EventsThatDoNotFitAreRefused) {
  Tuner tuner(TwoTasks(), TestTarget(), {.seed = 1});
  const uint64_t points = tuner.search(0).space().product();
  const std::vector<SearchEvent> misfits = {
      ProposedEvent{.task = 9}, ProposedEvent{.point = points},
      ImportedEvent{.task = 9}, ProposedEvent{.member = {1, 2}},
      ComparedEvent{.task = 9}, MemberEvent{.member = {1, 2}}};
  for (const SearchEvent& event : misfits)
    EXPECT_EQ(tuner.Replay(event).code(), absl::StatusCode::kDataLoss) << event.index();
}

}  // namespace
}  // namespace hone::search
