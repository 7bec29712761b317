#include <atomic>
#include <map>
#include <memory>
#include <set>

#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "db/memory_database.h"
#include "search/shared_tuner.h"
#include "search/tuning_session.h"
#include "tests/search/small_session.h"

// Sessions that are members of one search, from their first event to their last.
namespace hone::search {
namespace {

constexpr Hash128 kFirst{1, 1}, kSecond{2, 2};

class SharedSessionTest : public ::testing::Test {
 protected:
  SessionOptions Options(SharedTuners& tuners, const Hash128& id, int64_t trials) {
    SessionOptions o = search::Options(trials);
    o.id = id;
    o.request = "{\"farm_session\":\"" + id.ToHex() + "\"}";
    o.join = [this, &tuners] {
      return tuners.Get(log_,
                        {.text = kSearch, .versions = "{}", .seed = 3, .target = TestTarget()});
    };
    return o;
  }
  /// Every (workload, trace) measured, over all sessions; each once.
  void ExpectNothingTwice(int64_t attempts) {
    std::set<std::pair<std::string, std::string>> met;
    int64_t count = 0;
    ASSERT_TRUE(
        log_.ScanAttempts({},
                          [&](const db::Attempt& a) {
                            ++count;
                            EXPECT_TRUE(met.insert({a.key.workload.ToHex(), a.trace}).second);
                            return absl::OkStatus();
                          })
            .ok());
    EXPECT_EQ(count, attempts);
  }

  static constexpr char kSearch[] = "{\"farm_search\":\"s\"}";
  FakeClock clock_;
  db::MemoryDatabase log_;
};

TEST_F(SharedSessionTest, ASecondSessionJoinsTheRunningSearch) {
  SharedTuners tuners;
  FakeMeasurer first_measurer(1, {}), second_measurer(2, {});
  int answers = 0;
  first_measurer.on_answer = [&] {
    if (++answers != 15) return;
    TuningSession second(log_, second_measurer, clock_, clock_, Options(tuners, kSecond, 10));
    ASSERT_TRUE(second.Start({TwoTasks()[1], TallerProduct()}).ok());
    // It knows at once what the other has found.
    EXPECT_GT(second.tuner().search(1).trials(), 0);
    ASSERT_TRUE(second.Run(nullptr).ok());
    EXPECT_EQ(second.reason(), StopReason::kTrials);
    EXPECT_TRUE(second.verdicts()[0].compared);
    EXPECT_FALSE(second.tuner().HasMember(kSecond)) << "it has left";
  };
  TuningSession first(log_, first_measurer, clock_, clock_, Options(tuners, kFirst, 40));
  ASSERT_TRUE(first.Start(TwoTasks()).ok());
  ASSERT_TRUE(first.Run(nullptr).ok());
  EXPECT_EQ(answers, 40);
  ExpectNothingTwice(50);
  // Each session's own events have its own numbers of tasks, and only its own attempts.
  for (const auto& [id, results] : std::map<Hash128, int>{{kFirst, 40}, {kSecond, 10}}) {
    int found = 0;
    const auto events = log_.EventsOf(id).value();
    for (const db::Event& e : events) {
      found += e.type == ResultEvent::kType;
      const auto proposed = EventAs<ProposedEvent>(e);
      EXPECT_LT(proposed ? proposed->task : 0, 2);
    }
    EXPECT_EQ(found, results);
  }
  // The last member has left: who comes now begins anew, warm.
  const auto next = tuners.Get(log_, {.text = kSearch, .versions = "{}", .target = TestTarget()});
  EXPECT_TRUE((*next)->tuner.Members().empty());
  EXPECT_EQ((*next)->tuner.num_tasks(), 0);
}

TEST_F(SharedSessionTest, ADateLeavesTimeForTheComparisons) {
  SharedTuners tuners;
  FakeMeasurer measurer(1, {});
  SessionOptions options = Options(tuners, kFirst, 0);
  constexpr int64_t kOneSecondNs = 1'000'000'000;
  const int64_t start_ns = clock_.UnixNs();
  options.until_unix_ns = start_ns + 100 * kOneSecondNs;
  measurer.on_answer = [&] { clock_.AdvanceNs(2 * kOneSecondNs); };
  TuningSession session(log_, measurer, clock_, clock_, options);
  ASSERT_TRUE(session.Start(TwoTasks()).ok());
  ASSERT_TRUE(session.Run(nullptr).ok());
  EXPECT_EQ(session.reason(), StopReason::kDate);
  EXPECT_TRUE(session.verdicts()[0].compared);
  EXPECT_GE(session.tuner().answered(), 43);
}

TEST_F(SharedSessionTest, ASearchWhoseLastMemberHasLeftIsFreed) {
  SharedTuners tuners;
  FakeMeasurer measurer(1, {}), other(2, {});
  TuningSession first(log_, measurer, clock_, clock_, Options(tuners, kFirst, 10));
  TuningSession second(log_, other, clock_, clock_, Options(tuners, kSecond, 10));
  ASSERT_TRUE(first.Start(TwoTasks()).ok());
  ASSERT_TRUE(second.Start(TwoTasks()).ok());
  ASSERT_TRUE(first.Run(nullptr).ok());
  tuners.ForgetEnded();
  EXPECT_EQ(tuners.num_known(), 1u) << "the other one is still in it";
  ASSERT_TRUE(second.Run(nullptr).ok());
  tuners.ForgetEnded();
  EXPECT_EQ(tuners.num_known(), 0u);
}

TEST_F(SharedSessionTest, ARestartFindsTheMembersThatGoOn) {
  {
    SharedTuners tuners;
    FakeMeasurer measurer(1, {}), other(2, {});
    int answers = 0;
    measurer.on_answer = [&] {
      if (++answers == 12) throw Killed();
    };
    TuningSession gone(log_, other, clock_, clock_, Options(tuners, kSecond, 10));
    ASSERT_TRUE(gone.Start(TwoTasks()).ok());
    TuningSession first(log_, measurer, clock_, clock_, Options(tuners, kFirst, 40));
    ASSERT_TRUE(first.Start(TwoTasks()).ok());
    EXPECT_THROW((void)first.Run(nullptr), Killed);
  }
  SharedTuners tuners;
  tuners.GoOn({kFirst});  // the other was cancelled, and the crash came before it left
  FakeMeasurer measurer(3, {});
  TuningSession first(log_, measurer, clock_, clock_, Options(tuners, kFirst, 40));
  ASSERT_TRUE(first.Start(TwoTasks()).ok());
  EXPECT_TRUE(first.resumed());
  EXPECT_EQ(first.tuner().Members(), std::vector<Hash128>{kFirst});
  ASSERT_TRUE(first.Run(nullptr).ok());
  ExpectNothingTwice(40);
}

/// The streams of shared searches that the log has.
std::vector<Hash128> StreamsIn(db::MemoryDatabase& log, const std::string& request) {
  std::vector<Hash128> streams;
  const std::vector<db::StoredSession> sessions = log.Sessions().value();
  for (const db::StoredSession& s : sessions) {
    if (s.session.request == request) streams.push_back(s.session.id);
  }
  return streams;
}

// What begins anew (honed died while it was replayed, or its Spaces are another Hone's) has no
// account of its members.
TEST_F(SharedSessionTest, ABudgetGoesOnWhenItsSearchBeginsAnew) {
  constexpr int64_t kTrials = 20, kAnswered = 17;
  {
    SharedTuners tuners;
    FakeMeasurer measurer(1, {});
    int answers = 0;
    measurer.on_answer = [&] {
      if (++answers > kAnswered) throw Killed();
    };
    TuningSession first(log_, measurer, clock_, clock_, Options(tuners, kFirst, kTrials));
    ASSERT_TRUE(first.Start(TwoTasks()).ok());
    EXPECT_THROW((void)first.Run(nullptr), Killed);
  }
  const std::vector<Hash128> before = StreamsIn(log_, kSearch);
  ASSERT_EQ(before.size(), 1u);
  db::Batch deaths;
  for (int i = 0; i < 2; ++i) deaths.events.push_back(StreamEvent(before[0], OpeningEvent{}));
  ASSERT_TRUE(log_.Append(deaths).ok());
  // The second of these finds the charge in the stream that the first one began.
  for (const bool killed : {true, false}) {
    SharedTuners tuners;
    tuners.GoOn({kFirst});
    FakeMeasurer measurer(3, {});
    if (killed) measurer.on_answer = [] { throw Killed(); };
    TuningSession first(log_, measurer, clock_, clock_, Options(tuners, kFirst, kTrials));
    ASSERT_TRUE(first.Start(TwoTasks()).ok());
    EXPECT_GE(first.tuner().charged(kFirst), kAnswered);
    if (killed) {
      EXPECT_THROW((void)first.Run(nullptr), Killed);
      continue;
    }
    ASSERT_TRUE(first.Run(nullptr).ok());
    EXPECT_EQ(first.reason(), StopReason::kTrials);
  }
  EXPECT_EQ(StreamsIn(log_, kSearch).size(), 2u);
  int64_t attempts = 0;
  ASSERT_TRUE(log_.ScanAttempts({.session = kFirst},
                                [&](const db::Attempt&) {
                                  ++attempts;
                                  return absl::OkStatus();
                                })
                  .ok());
  EXPECT_EQ(attempts, kTrials);
}

// Its row said that it goes on when honed started; it was cancelled before anybody had opened its
// search.
TEST_F(SharedSessionTest, WhoLeavesBeforeItsSearchIsOpenedIsNoMemberOfIt) {
  {
    SharedTuners tuners;
    FakeMeasurer measurer(1, {}), other(2, {});
    int answers = 0;
    other.on_answer = [&] {
      if (++answers == 3) throw Killed();
    };
    TuningSession first(log_, measurer, clock_, clock_, Options(tuners, kFirst, 40));
    TuningSession gone(log_, other, clock_, clock_, Options(tuners, kSecond, 100));
    ASSERT_TRUE(first.Start(TwoTasks()).ok());
    ASSERT_TRUE(gone.Start(TwoTasks()).ok());
    EXPECT_THROW((void)gone.Run(nullptr), Killed);
    EXPECT_GT(first.tuner().open(), 0);
  }
  SharedTuners tuners;
  tuners.GoOn({kFirst, kSecond});
  ASSERT_TRUE(tuners.Leave(log_, kSecond).ok());
  FakeMeasurer measurer(3, {});
  TuningSession first(log_, measurer, clock_, clock_, Options(tuners, kFirst, 40));
  ASSERT_TRUE(first.Start(TwoTasks()).ok());
  EXPECT_EQ(first.tuner().Members(), std::vector<Hash128>{kFirst});
  EXPECT_EQ(first.tuner().open(), 0) << "nobody measures what it left open";
}

// A signal between the last two looks at it, or while its last batch is made.
TEST_F(SharedSessionTest, WhoHasFinishedHasLeftWheneverItIsInterrupted) {
  for (const bool before : {true, false}) {
    SCOPED_TRACE(before ? "before its end" : "at its end");
    db::MemoryDatabase log;
    std::swap(log_, log);
    SharedTuners tuners;
    std::atomic<bool> interrupted{false};
    FakeMeasurer measurer(1, {});
    SessionOptions options = Options(tuners, kFirst, 10);
    options.interrupted = &interrupted;
    if (before) {
      options.before_end = [&](TuningSession&) {
        interrupted = true;
        return absl::OkStatus();
      };
    }
    TuningSession session(log_, measurer, clock_, clock_, options);
    ASSERT_TRUE(session.Start(TwoTasks()).ok());
    ASSERT_TRUE(session
                    .Run([&](const TuningSession& s) {
                      // The last call is between the two.
                      interrupted = interrupted || s.verdicts()[0].compared;
                    })
                    .ok());
    ASSERT_TRUE(interrupted);
    const auto events = log_.EventsOf(kFirst).value();
    EXPECT_EQ(events.back().type, before ? "interrupted" : "finished");
    EXPECT_EQ(session.tuner().HasMember(kFirst), before);
  }
}

/// What a watcher of the session makes of its events.
struct Seen {
  std::map<int, double> default_ns, best_ns;
  int found = 0;
};

Seen SeenOf(const std::vector<db::Event>& events) {
  Seen seen;
  std::map<int64_t, std::pair<int, bool>> open;
  for (const db::Event& e : events) {
    const auto result = EventAs<ResultEvent>(e);
    if (const auto proposed = EventAs<ProposedEvent>(e)) {
      open[proposed->attempt] = {proposed->task, proposed->proposer == Proposer::kDefault};
    } else if (result && result->outcome == measure::Outcome::kOk) {
      const auto [of, is_default] = open.at(result->attempt);
      if (is_default) seen.default_ns[of] = result->median_ns;
      const auto [best, fresh] = seen.best_ns.try_emplace(of, result->median_ns);
      if (!fresh) best->second = std::min(best->second, result->median_ns);
    } else if (const auto found = EventAs<FoundEvent>(e)) {
      ++seen.found;
      seen.default_ns[found->task] = found->default_ns;
      seen.best_ns[found->task] = found->best_ns;
    }
  }
  return seen;
}

// Whoever joins late, or asks for little, is told how its tasks stand all the same.
TEST_F(SharedSessionTest, AMembersOwnStreamTellsWhatOthersFound) {
  SharedTuners tuners;
  FakeMeasurer first_measurer(1, {}), second_measurer(2, {});
  SessionOptions options = Options(tuners, kSecond, 30);
  std::unique_ptr<TuningSession> second;
  const auto expect_told = [&] {
    const Seen seen = SeenOf(log_.EventsOf(kSecond).value());
    for (int local = 0; local < 2; ++local) {
      // Its numbers of tasks are not the search's.
      const TaskSearch& s = second->tuner().search(1 - local);
      EXPECT_EQ(seen.default_ns.at(local), s.default_ns()) << local;
      EXPECT_EQ(seen.best_ns.at(local), s.best_ns()) << local;
    }
    return seen.found;
  };
  int answers = 0;
  first_measurer.on_answer = [&] {
    if (++answers != 15) return;
    second = std::make_unique<TuningSession>(log_, second_measurer, clock_, clock_, options);
    ASSERT_TRUE(second->Start({TwoTasks()[1], TwoTasks()[0]}).ok());
    EXPECT_EQ(expect_told(), 2) << "once each, as it joins";
  };
  TuningSession first(log_, first_measurer, clock_, clock_, Options(tuners, kFirst, 60));
  ASSERT_TRUE(first.Start(TwoTasks()).ok());
  // The second one has not begun to search.
  ASSERT_TRUE(first.Run(nullptr).ok());
  EXPECT_EQ(SeenOf(log_.EventsOf(kFirst).value()).found, 0) << "it was alone at work";
  int rounds = 0;
  ASSERT_TRUE(second
                  ->Run([&](const TuningSession& s) {
                    if (s.verdicts()[0].compared || s.verdicts()[1].compared) return;
                    ++rounds;
                    expect_told();
                  })
                  .ok());
  EXPECT_GE(rounds, 30);
  const Seen seen = SeenOf(log_.EventsOf(kSecond).value());
  EXPECT_GE(seen.found, 3);
  EXPECT_LE(seen.found, 4) << "of its own results nothing is told twice";
}

}  // namespace
}  // namespace hone::search
