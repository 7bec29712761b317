#include "server/web/session_story.h"

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "search/search_event.h"
#include "server/web/failures.h"

namespace hone::server::web {
namespace {

proto::SessionSpec TwoTasks() {
  proto::SessionSpec spec;
  spec.tasks.push_back({.workload = "a", .name = "conv", .count = 2});
  spec.tasks.push_back({.workload = "b", .name = "gemm", .count = 1});
  return spec;
}

class Teller {
 public:
  explicit Teller(const proto::SessionSpec& spec) : story(spec) {}
  void Say(const std::string& type, const std::string& payload) {
    db::Event event{.type = type, .payload = payload, .sequence = ++sequence_};
    story.Take(event);
  }
  void At(double seconds) { Say("elapsed", fmt::format("{:.3f}", seconds)); }
  // In the words of the search itself: what it writes must be what is read here.
  void Measured(int task, search::Proposer proposer, measure::Outcome outcome, double ns) {
    ++attempt_;
    const search::ProposedEvent proposed{
        .attempt = attempt_, .task = task, .proposer = proposer, .member = {}};
    Say("proposed", proposed.Text());
    Say("result", search::ResultEvent{attempt_, outcome, ns, 0.1}.Text());
  }
  SessionStory story;

 private:
  int64_t sequence_ = 100, attempt_ = 0;
};

TEST(SessionStory, SumsTasksIntoACurveThatFalls) {
  Teller t(TwoTasks());
  using enum search::Proposer;
  t.At(1);
  t.Measured(0, kDefault, measure::Outcome::kOk, 100);
  t.At(2);
  t.Measured(1, kDefault, measure::Outcome::kOk, 300);
  t.At(4);
  t.Measured(0, kModel, measure::Outcome::kOk, 80);
  t.Measured(0, kModel, measure::Outcome::kOk, 90);
  t.At(5);
  t.Measured(1, kRandom, measure::Outcome::kRunCrashed, 0);
  const std::vector<SessionStory::Point>& curve = t.story.curve();
  ASSERT_EQ(curve.size(), 2u);
  // The second task's default counts from the start.
  EXPECT_EQ(curve[0].seconds, 1);
  EXPECT_EQ(curve[0].ns, 2 * 100 + 300);
  EXPECT_EQ(curve[1].seconds, 4);
  EXPECT_EQ(curve[1].ns, 2 * 80 + 300);
  EXPECT_EQ(t.story.TotalNs(false), 500);
  EXPECT_EQ(t.story.TotalNs(true), 460);
  EXPECT_EQ(t.story.answered(), 5);
  EXPECT_EQ(t.story.failed(), 1);
  EXPECT_EQ(t.story.tasks()[1].failed, 1);
  EXPECT_EQ(t.story.sequence(), 114);
}

TEST(SessionStory, AVerdictCorrectsWhatTheSearchBelieved) {
  Teller t(TwoTasks());
  t.Measured(0, search::Proposer::kDefault, measure::Outcome::kOk, 100);
  t.Measured(0, search::Proposer::kModel, measure::Outcome::kOk, 60);
  t.Say("verdict", "0 lost 95 97");
  EXPECT_TRUE(t.story.tasks()[0].compared);
  EXPECT_FALSE(t.story.tasks()[0].replaced);
  EXPECT_EQ(t.story.tasks()[0].best_ns, 95) << "the default stays";
  t.Say("verdict", "0 won 95 70");
  EXPECT_TRUE(t.story.tasks()[0].replaced);
  EXPECT_EQ(t.story.TotalNs(true), 140);
  // The comparison ran at another time: the curve keeps what the search measured, and never rises.
  ASSERT_EQ(t.story.curve().size(), 1u);
  EXPECT_EQ(t.story.curve().back().ns, 2 * 60);
  EXPECT_EQ(t.story.SearchedDefaultNs(), 2 * 100);
}

TEST(SessionStory, TrialsAreTheNewestAndTheFastestOfEachTask) {
  Teller t(TwoTasks());
  using enum search::Proposer;
  t.At(1);
  t.Measured(0, kDefault, measure::Outcome::kOk, 10);  // number 1, the fastest for ever
  t.At(2);
  for (size_t i = 0; i < SessionStory::kNewest; ++i) {
    t.Measured(1, kModel, measure::Outcome::kOk, 500 - static_cast<double>(i));
  }
  t.Measured(1, kRandom, measure::Outcome::kRunCrashed, 0);
  const std::vector<SessionStory::Trial> trials = t.story.Trials();
  ASSERT_EQ(trials.size(), SessionStory::kNewest + 1);
  EXPECT_EQ(trials.front().outcome, measure::Outcome::kRunCrashed);
  EXPECT_EQ(trials.front().proposer, "random");
  EXPECT_EQ(trials.front().ns, 0);
  EXPECT_EQ(trials[1].ns, 441);
  EXPECT_EQ(trials[1].seconds, 2);
  EXPECT_EQ(trials.back().attempt, 1);
  EXPECT_EQ(trials.back().task, 0);
  EXPECT_EQ(trials.back().proposer, "default");
  for (size_t i = 1; i < trials.size(); ++i) EXPECT_LT(trials[i].attempt, trials[i - 1].attempt);
}

// A member of a shared search is told what the others have found.
TEST(SessionStory, WhatOthersFoundCountsAndWhatNobodyDidIsMissing) {
  Teller t(TwoTasks());
  t.At(1);
  t.Measured(0, search::Proposer::kModel, measure::Outcome::kOk, 60);
  EXPECT_EQ(t.story.TotalNs(false), 0) << "its default is not known";
  EXPECT_EQ(t.story.TotalNs(true), 120);
  EXPECT_EQ(t.story.measured_tasks(), 1);
  t.Say("found", "0 100 50");
  t.Say("found", "1 0 300");
  EXPECT_EQ(t.story.measured_tasks(), 2);
  EXPECT_EQ(t.story.TotalNs(true), 2 * 50 + 300);
  EXPECT_EQ(t.story.TotalNs(false), 0) << "the second one's is not known";
  t.At(2);
  t.Say("found", "1 400 250");
  EXPECT_EQ(t.story.TotalNs(false), 2 * 100 + 400);
  EXPECT_EQ(t.story.curve().back().ns, 2 * 50 + 250);
  EXPECT_EQ(t.story.tasks()[1].trials, 0);
  EXPECT_EQ(t.story.answered(), 1);
  t.Measured(0, search::Proposer::kModel, measure::Outcome::kOk, 55);
  EXPECT_EQ(t.story.tasks()[0].best_ns, 50);
}

TEST(SessionStory, NonsenseIsPassedOver) {
  Teller t(TwoTasks());
  for (const char* type :
       {"proposed", "result", "verdict", "found", "elapsed", "model", "join", "?"}) {
    for (const char* payload :
         {"", "x", "1", "1 2 3 4 5", "-1 -1 -1 -1", "0 won nan nan", "9999999999999999999 7 ok",
          "1 ok inf 0", "0 1 inf", "0 nan 1", "2 1 1", "\xff\xfe"}) {
      t.Say(type, payload);
    }
  }
  for (const SessionStory::Point& p : t.story.curve()) EXPECT_TRUE(p.ns > 0 && p.ns < 1e30);
}

TEST(SessionStory, ALongCurveStaysSmallAndKeepsItsEnds) {
  Teller t(TwoTasks());
  t.Measured(1, search::Proposer::kDefault, measure::Outcome::kOk, 1e6);
  for (int i = 1; i < 20'000; ++i) {
    t.At(i);
    t.Measured(1, search::Proposer::kModel, measure::Outcome::kOk, 1e6 - i);
  }
  const auto& curve = t.story.curve();
  EXPECT_LE(curve.size(), SessionStory::kMostPoints);
  EXPECT_EQ(curve.front().ns, 1e6);
  EXPECT_EQ(curve.back().ns, 1e6 - 19'999);
  for (size_t i = 1; i < curve.size(); ++i) EXPECT_LT(curve[i].ns, curve[i - 1].ns);
}

TEST(SessionStory, TimeLeftIsThatOfTheNearestLimit) {
  proto::SessionSpec spec = TwoTasks();
  Teller t(spec);
  EXPECT_EQ(t.story.SecondsLeft(spec, 0), std::nullopt);
  spec.seconds = 100;
  t.At(40);
  EXPECT_EQ(t.story.SecondsLeft(spec, 0), 60);
  t.Measured(0, search::Proposer::kDefault, measure::Outcome::kOk, 1);
  t.Measured(0, search::Proposer::kModel, measure::Outcome::kOk, 1);
  spec.trials = 3;
  EXPECT_EQ(t.story.SecondsLeft(spec, 0), 20) << "one more at twenty seconds each";
  spec.until_unix_ms = 10'000;
  EXPECT_EQ(t.story.SecondsLeft(spec, 5'000), 5);
  EXPECT_EQ(t.story.SecondsLeft(spec, 15'000), 0);
}

TEST(Failures, AreGatheredByCauseWithoutTheirNumbers) {
  EXPECT_EQ(CauseOf("fault at 0x7ffe12 in k2d after 17 ms\nmore"), "fault at # in k2d after # ms");
  EXPECT_EQ(CauseOf(""), "no reason was given");
  EXPECT_LE(CauseOf(std::string(10'000, 'x')).size(), 200u);
  Failures failures;
  for (int i = 0; i < 9; ++i) {
    failures.Add({.id = {0, static_cast<uint64_t>(i)},
                  .trace = "t",
                  .outcome = db::Outcome::kRunCrashed,
                  .message = "signal " + std::to_string(i)});
  }
  failures.Add({.outcome = db::Outcome::kWrongAnswer, .message = "signal 3"});
  const std::vector<FailureCause> causes = failures.ByCount();
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_EQ(causes[0].cause, "signal #");
  EXPECT_EQ(causes[0].count, 9);
  ASSERT_EQ(causes[0].examples.size(), Failures::kMostExamples);
  EXPECT_EQ(causes[0].examples[0].id.low, 8u) << "the newest first";
}

TEST(Failures, StayBounded) {
  Failures failures;
  for (int i = 0; i < 1000; ++i) {
    failures.Add(
        {.outcome = db::Outcome::kBuildFailed,
         .message = std::string(static_cast<size_t>(i % 150), 'a' + static_cast<char>(i % 26))});
  }
  EXPECT_LE(failures.ByCount().size(), Failures::kMostCauses + 1);
  int64_t all = 0;
  for (const FailureCause& cause : failures.ByCount()) all += cause.count;
  EXPECT_EQ(all, 1000);
}

}  // namespace
}  // namespace hone::server::web
