#include "search/part_screening.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "base/core/random.h"
#include "base/versions.h"
#include "db/memory_database.h"
#include "search/tuning_session.h"
#include "tests/search/small_session.h"

namespace hone::search {
namespace {

/// Candidates of falling speed; a part says of each `says(whole)`.
void AddBoth(PartScreening& parts, int n, int sketch, const std::function<double(double)>& says) {
  for (int i = 0; i < n; ++i) {
    const double whole_ns = 1e6 * (1 + 0.1 * i);
    parts.Add(sketch, says(whole_ns), whole_ns);
  }
}

TEST(PartScreeningTest, ARatioIsTheMedianOfTheSketchsOwnAndElseOfAll) {
  PartScreening parts;
  EXPECT_EQ(parts.RatioOf(0), 1);
  AddBoth(parts, 2, 0, [](double whole) { return whole / 2; });
  EXPECT_EQ(parts.RatioOf(0), 1) << "two are too few";
  AddBoth(parts, 3, 1, [](double whole) { return whole / 1.25; });
  EXPECT_DOUBLE_EQ(parts.RatioOf(1), 1.25);
  EXPECT_DOUBLE_EQ(parts.RatioOf(0), 1.25) << "of all five";
  AddBoth(parts, 1, 0, [](double whole) { return whole / 2; });
  EXPECT_DOUBLE_EQ(parts.RatioOf(0), 2);
  EXPECT_EQ(parts.both(), 6);
}

TEST(PartScreeningTest, TheCorrelationIsKendallsOverClearPairs) {
  PartScreening parts;
  AddBoth(parts, 4, 0, [](double whole) { return whole; });
  EXPECT_FALSE(parts.RankCorrelation()) << "six pairs are too few";
  AddBoth(parts, 4, 0, [](double whole) { return whole; });
  // 8 candidates, 4 pairs of equals: 24 pairs that say something.
  EXPECT_EQ(parts.RankCorrelation(), 1);
  parts = {};
  for (int i = 0; i < 7; ++i) {
    const double whole_ns = 1e6 * (1 + 0.1 * i);
    // The last two change places: one pair of 21.
    const int said = i < 5 ? i : 11 - i;
    parts.Add(0, 1e6 * (1 + 0.1 * said), whole_ns);
  }
  EXPECT_DOUBLE_EQ(parts.RankCorrelation().value(), (20.0 - 1) / 21);
}

TEST(PartScreeningTest, DifferencesThatNoiseMakesDoNotCount) {
  PartScreening parts;
  Random random(7);
  for (int i = 0; i < 40; ++i) {
    parts.Add(0, 1e6 * (1 + 0.04 * random.Uniform()), 1e6 * (1 + 0.04 * random.Uniform()));
  }
  EXPECT_FALSE(parts.RankCorrelation());
  EXPECT_EQ(parts.part_ns(), PartScreening::kFirstPartNs);
}

TEST(PartScreeningTest, WherePartsRankOtherwiseTheyGrowAndInTheEndTheWholeIsScreened) {
  PartScreening parts;
  const auto contrary = [](double whole) { return 1e13 / whole; };
  for (int64_t ns = PartScreening::kFirstPartNs; ns <= PartScreening::kMostPartNs; ns *= 2) {
    EXPECT_EQ(parts.part_ns(), ns);
    EXPECT_TRUE(parts.WantsBoth(1000));
    AddBoth(parts, static_cast<int>(PartScreening::kLeastBoth), 0, contrary);
  }
  EXPECT_EQ(parts.part_ns(), 0);
  EXPECT_FALSE(parts.WantsBoth(1000));
  // A part that ranks well stays as it is.
  parts = {};
  AddBoth(parts, 100, 0, [](double whole) { return 0.7 * whole; });
  EXPECT_EQ(parts.part_ns(), PartScreening::kFirstPartNs);
}

class PartSessionTest : public ::testing::Test {
 protected:
  std::unique_ptr<TuningSession> Run(FakeMeasurer& measurer, int64_t trials) {
    auto session = std::make_unique<TuningSession>(log_, measurer, clock_, clock_, Options(trials));
    EXPECT_TRUE(session->Start(TwoTasks()).ok());
    EXPECT_TRUE(session->Run(nullptr).ok());
    return session;
  }

  FakeClock clock_;
  db::MemoryDatabase log_;
};

// What was run on a part alone is an attempt, and says so; it is no record, no best and no winner.
TEST_F(PartSessionTest, WhatRestsOnAPartIsNoRecord) {
  FakeMeasurer measurer(1, {});
  measurer.part_says = [](const std::string&) { return 0.9; };
  const auto session = Run(measurer, 80);
  std::set<std::string> whole;
  ASSERT_TRUE(log_.ScanRecords({.session = session->id()},
                               [&](const db::RankedRecord& r) {
                                 whole.insert(r.record.trace);
                                 return absl::OkStatus();
                               })
                  .ok());
  int64_t on_part = 0, records = 0;
  std::map<Hash128, double> least_ns;  // of the whole
  ASSERT_TRUE(log_.ScanAttempts({.session = session->id()},
                                [&](const db::Attempt& a) {
                                  EXPECT_EQ(a.outcome, measure::Outcome::kOk);
                                  const bool part =
                                      a.message.find("of the work") != std::string::npos;
                                  EXPECT_EQ(part, a.record == Hash128{}) << a.message;
                                  (part ? on_part : records) += 1;
                                  double& least = least_ns[a.key.workload];
                                  if (!part && (least == 0 || LandscapeNs(a.trace) < least))
                                    least = LandscapeNs(a.trace);
                                  return absl::OkStatus();
                                })
                  .ok());
  EXPECT_EQ(on_part + records, 80);
  EXPECT_GT(on_part, 20);
  EXPECT_GT(records, 4);
  for (int i = 0; i < 2; ++i) {
    const TaskSearch& s = session->tuner().search(i);
    EXPECT_GT(s.default_ns(), 0) << "always whole";
    ASSERT_TRUE(s.best());
    const auto best = s.space().TraceOf(*s.best());
    ASSERT_TRUE(best.ok());
    EXPECT_TRUE(whole.contains(schedule::ToText(*best)));
    EXPECT_NEAR(s.best_ns(), least_ns[session->tuner().task(i).hash], 3);
    EXPECT_GE(s.parts().both(), 4);
    EXPECT_DOUBLE_EQ(s.parts().RankCorrelation().value_or(1), 1);
  }
}

// A part that is a little pessimistic about what is in truth the fastest: the finals run it whole.
TEST_F(PartSessionTest, FinalistsRunWhole) {
  FakeMeasurer all(1, {});
  TuningSession first(log_, all, clock_, clock_, Options(100'000));
  ASSERT_TRUE(first.Start({TwoTasks()[0]}).ok());
  ASSERT_TRUE(first.Run(nullptr).ok());
  const std::string fastest = first.verdicts()[0].trace;
  double second_ns = 1e9;
  for (const std::string& measured : all.measured()) {
    const std::string trace = measured.substr(32);  // behind the Workload's hash
    if (trace != fastest) second_ns = std::min(second_ns, LandscapeNs(trace));
  }
  for (const double slower : {1.02, 1.2}) {
    SCOPED_TRACE(slower);
    db::MemoryDatabase log;
    FakeMeasurer measurer(1, {});
    measurer.only_a_part = [&](const std::string& trace) { return trace == fastest; };
    measurer.part_says = [&](const std::string& trace) {
      return trace == fastest ? slower * second_ns / LandscapeNs(trace) : 1.0;
    };
    TuningSession session(log, measurer, clock_, clock_, Options(100'000));
    ASSERT_TRUE(session.Start({TwoTasks()[0]}).ok());
    ASSERT_TRUE(session.Run(nullptr).ok());
    EXPECT_EQ(session.verdicts()[0].trace == fastest, slower < 1.03);
  }
}

TEST_F(PartSessionTest, PartsThatMisleadAreGivenUp) {
  FakeMeasurer measurer(1, {});
  measurer.part_says = [](const std::string& trace) { return 4e9 / LandscapeNs(trace) / 50000; };
  const auto session = Run(measurer, 400);
  bool grown = false;
  for (int i = 0; i < 2; ++i) {
    grown |= session->tuner().search(i).parts().part_ns() != PartScreening::kFirstPartNs;
  }
  EXPECT_TRUE(grown);
}

// A killed session knows after its restart what parts have said, and goes on as the first would.
TEST_F(PartSessionTest, AReplayedTunerKnowsTheParts) {
  Tuner first(TwoTasks(), TestTarget(), {.seed = 3});
  std::vector<SearchEvent> events;
  for (int step = 0; step < 12; ++step) {
    for (const auto& p : first.Propose(5)) {
      events.emplace_back(Tuner::EventOf(p));
      const double ns = LandscapeNs(p.trace);
      const bool whole = p.attempt % 2 == 0 || p.proposer == Proposer::kDefault;
      const ResultEvent result{p.attempt, measure::Outcome::kOk, ns, 0.01,
                               0.8 * ns,  whole ? 1 : 0.1};
      events.emplace_back(result);
      first.Result(p.attempt, result.outcome, ns, 0.01, {result.part_ns, whole});
    }
  }
  Tuner second(TwoTasks(), TestTarget(), {.seed = 3});
  for (const SearchEvent& event : events) {
    const auto read = ParseEvent(StreamEvent(HashBytes("stream"), event));
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_TRUE(second.Replay(*read).ok());
  }
  for (int i = 0; i < 2; ++i) {
    const TaskSearch &a = first.search(i), &b = second.search(i);
    EXPECT_GT(a.on_part(), 0);
    EXPECT_EQ(a.on_part(), b.on_part());
    EXPECT_EQ(a.parts().both(), b.parts().both());
    EXPECT_EQ(a.parts().RankCorrelation(), b.parts().RankCorrelation());
    EXPECT_EQ(a.best(), b.best());
    EXPECT_EQ(a.Top(5), b.Top(5));
  }
  const auto a = first.Propose(12), b = second.Propose(12);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(Tuner::EventOf(a[i]), Tuner::EventOf(b[i]));
}

}  // namespace
}  // namespace hone::search
