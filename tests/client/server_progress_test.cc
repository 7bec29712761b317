#include "client/server_progress.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/fake_clock.h"

namespace hone::client {
namespace {

using proto::SessionEvent;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kNsPerMs = 1'000'000;

/// A session of two tasks as a client with a budget of 100 candidates in a minute watches it.
class ServerProgressTest : public ::testing::Test {
 protected:
  ServerProgressTest() {
    SessionEvent state{.kind = SessionEvent::Kind::kState};
    state.info.created_ms = clock_.UnixNs() / kNsPerMs;
    progress_.Take(state);
  }
  void Measure(int64_t attempt, int task, const char* proposer, measure::Outcome outcome,
               double median_ns) {
    progress_.Take({.kind = SessionEvent::Kind::kProposed,
                    .attempt = attempt,
                    .task = task,
                    .proposer = proposer});
    progress_.Take({.kind = SessionEvent::Kind::kMeasured,
                    .attempt = attempt,
                    .outcome = outcome,
                    .median_ns = median_ns});
  }

  FakeClock clock_{0, 1'700'000'000'000 * kNsPerMs};
  ServerProgress progress_{
      {{.row = {.name = "conv", .count = 2, .bound_ns = 50'000}, .workload = "a"},
       {.row = {.name = "dense"}, .workload = "b"}},
      TuneBudget{.seconds = 60, .trials = 100}};
};

TEST_F(ServerProgressTest, ItsTableIsThatOfATuningOnThisMachine) {
  Measure(0, 0, "default", measure::Outcome::kOk, 200'000);
  Measure(1, 1, "default", measure::Outcome::kOk, 500'000);
  Measure(2, 0, "model", measure::Outcome::kOk, 100'000);
  Measure(3, 0, "random", measure::Outcome::kRunCrashed, 0);
  clock_.AdvanceNs(12'000 * kNsPerMs);
  const std::vector<std::string> lines =
      LiveTable(progress_.Rows(), progress_.State(clock_), {.columns = 80, .rows = 24});
  EXPECT_THAT(
      lines,
      ElementsAre("    best us      gain  roofline trials  kernel",
                  "      500.0    1.00 x         -      1  x1   dense",
                  "      100.0         -      50 %      3  x2   conv  (1 run_crashed)",
                  "0:12, 0:48 left  4 candidates of 100; kernels 0.900 ms by default, 0.700 ms now",
                  "failed: 1 run_crashed"));
  // Only a comparison in turns gives a ratio.
  progress_.Take({.kind = SessionEvent::Kind::kDecided,
                  .task = 0,
                  .replaced = true,
                  .default_ns = 180'000,
                  .best_ns = 100'000});
  progress_.SetBounds({25'000, 0});
  EXPECT_THAT(TaskTable(progress_.Rows(), {})[2], HasSubstr("100.0    1.80 x      25 %"));
}

TEST_F(ServerProgressTest, ASumSaysOfHowManyKernelsItIs) {
  Measure(0, 0, "default", measure::Outcome::kOk, 200'000);
  EXPECT_EQ(KernelsText(progress_.Rows()),
            "kernels 0.400 ms by default, 0.400 ms now (sum of 1 of 2 kernels)");
}

TEST_F(ServerProgressTest, NothingIsSaidOfTheTimeLeftWhereTheBudgetIsNotKnownOrAllIsOver) {
  ServerProgress watched({{.row = {.name = "task 0"}, .workload = ""}});
  EXPECT_THAT(watched.State(clock_).Line(), Not(HasSubstr("left")));
  EXPECT_THAT(watched.State(clock_).Line(), HasSubstr("nothing measured yet"));
  EXPECT_THAT(progress_.State(clock_).Line(), HasSubstr("left"));
  SessionEvent end{.kind = SessionEvent::Kind::kEnded};
  end.info.created_ms = clock_.UnixNs() / kNsPerMs;
  progress_.Take(end);
  EXPECT_THAT(progress_.State(clock_).Line(), Not(HasSubstr("left")));
}

TEST_F(ServerProgressTest, WhatWasMeasuredBeforeTheWatchCounts) {
  ServerProgress joined({{.row = {.name = "conv"}, .workload = ""}});
  SessionEvent state{.kind = SessionEvent::Kind::kState};
  state.info.created_ms = clock_.UnixNs() / kNsPerMs;
  state.info.attempts = 2;
  joined.Take(state);
  EXPECT_TRUE(joined.catching_up());
  EXPECT_THAT(joined.State(clock_).Line(), HasSubstr("2 candidates"));
  EXPECT_THAT(joined.State(clock_).Line(), Not(HasSubstr("nothing measured yet")));
  for (int64_t attempt = 0; attempt < 2; ++attempt) {
    joined.Take({.kind = SessionEvent::Kind::kProposed, .attempt = attempt, .proposer = "default"});
    joined.Take({.kind = SessionEvent::Kind::kMeasured, .attempt = attempt, .median_ns = 1e6});
  }
  EXPECT_FALSE(joined.catching_up());
  EXPECT_THAT(joined.State(clock_).Line(), HasSubstr("2 candidates; kernels 1.000 ms"));
}

// Another session of the same search measured the defaults, and one task's best.
TEST_F(ServerProgressTest, ASumSaysWhatItLacks) {
  Measure(0, 0, "model", measure::Outcome::kOk, 200'000);
  EXPECT_THAT(progress_.State(clock_).Line(),
              HasSubstr("kernels - by default, 0.400 ms now (sum of 1 of 2 kernels)"));
  EXPECT_EQ(progress_.TotalNs(false), 0);
  Measure(1, 1, "default", measure::Outcome::kOk, 500'000);
  EXPECT_THAT(progress_.State(clock_).Line(), HasSubstr("kernels - by default, 0.900 ms now"));
  EXPECT_THAT(progress_.State(clock_).Line(), Not(HasSubstr("sum of")));
  progress_.Take({.kind = SessionEvent::Kind::kDecided,
                  .task = 0,
                  .replaced = true,
                  .default_ns = 300'000,
                  .best_ns = 200'000});
  EXPECT_THAT(progress_.State(clock_).Line(),
              HasSubstr("kernels 1.100 ms by default, 0.900 ms now"));
}

TEST_F(ServerProgressTest, ItSaysWhyItWaitsUntilItEnds) {
  proto::SessionInfo row{.reason = "waiting for a device that can run it"};
  progress_.TakeRow(row);
  EXPECT_THAT(progress_.State(clock_).Line(), HasSubstr(row.reason));
  progress_.TakeRow(absl::UnavailableError("gone"));
  EXPECT_THAT(progress_.State(clock_).Line(), HasSubstr("the server does not answer"));
  progress_.TakeRow(proto::SessionInfo{});
  EXPECT_THAT(progress_.State(clock_).Line(), Not(HasSubstr("no word")));
  SessionEvent end{.kind = SessionEvent::Kind::kEnded};
  end.info.reason = "trials";
  progress_.Take(end);
  progress_.TakeRow(row);
  EXPECT_EQ(progress_.info().reason, "trials");
  EXPECT_THAT(progress_.State(clock_).Line(), Not(HasSubstr(row.reason)));
}

TEST_F(ServerProgressTest, ItsJsonSaysWhatIsKnownInNumbers) {
  Measure(0, 0, "default", measure::Outcome::kOk, 200'000);
  clock_.AdvanceNs(12'000 * kNsPerMs);
  EXPECT_EQ(progress_.Json(clock_), R"({"progress":{"text":")" + progress_.State(clock_).Line() +
                                        R"(","seconds":12.0,"budget_seconds":60.0,"candidates":1,)"
                                        R"("default_us":null,"predicted_us":null}})");
  const ServerProgress watched({});
  EXPECT_THAT(watched.Json(clock_), HasSubstr(R"("seconds":0.0,"budget_seconds":null)"));
}

TEST_F(ServerProgressTest, AVerdictReplacesWhatWasScreened) {
  Measure(0, 0, "default", measure::Outcome::kOk, 200'000);
  progress_.Take({.kind = SessionEvent::Kind::kDecided,
                  .task = 0,
                  .replaced = true,
                  .default_ns = 180'000,
                  .best_ns = 90'000});
  EXPECT_EQ(progress_.Rows()[0].best_ns, 90'000);
  EXPECT_EQ(progress_.TotalNs(false), 360'000);
  EXPECT_TRUE(progress_.tasks()[0].replaced);
}

}  // namespace
}  // namespace hone::client
