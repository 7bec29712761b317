#include "search/task_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "gtest/gtest.h"

#include "schedule/trace.h"
#include "tests/costmodel/trained_model.h"
#include "tests/search/fake_measurer.h"

namespace hone::search {
namespace {

std::shared_ptr<const schedule::Space> ConvolutionSpace() {
  return std::make_shared<const schedule::Space>(*TwoTasks()[1].workload, TestTarget(),
                                                 ir::AccuracyClass::kDefault);
}

/// Searches with `latency`, training as a session does.
template <typename Latency>
void Search(TaskSearch& search, int trials, const Latency& latency) {
  std::unique_ptr<costmodel::XgboostModel> model;
  for (int done = 0, trained = 0; done < trials;) {
    const auto batch = search.Propose(8, model.get());
    if (batch.empty()) break;
    for (const auto& p : batch) {
      search.Report(p.id, measure::Outcome::kOk, latency(p.id));
      ++done;
    }
    if (done < trained + 24) continue;
    trained = done;
    auto next = costmodel::TrainedModel({search.TrainingRows()}, 1);
    ASSERT_TRUE(next.ok()) << next.status();
    model = *std::move(next);
    search.ModelChanged();
  }
}

TEST(TaskSearchTest, RankCorrelationTellsAModelThatIsRight) {
  const auto space = ConvolutionSpace();
  const costmodel::FeatureExtractor extractor(*space);
  TaskSearch search(space, 1);
  EXPECT_FALSE(search.RankCorrelationOnRandom().has_value());
  Search(search, 240, [&](uint64_t id) { return 1e9 * extractor.AnalyticSeconds(id); });
  ASSERT_TRUE(search.RankCorrelationOnRandom().has_value());
  EXPECT_GT(*search.RankCorrelationOnRandom(), 0.8);
}

// Trees know by heart what they were trained on: judged by it, noise would be predicted well.
TEST(TaskSearchTest, RankCorrelationOfNoiseIsNotThatOfTheTrainingRows) {
  const auto space = ConvolutionSpace();
  double sum = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    TaskSearch search(space, seed);
    Search(search, 160, [&](uint64_t id) { return 1e5 * (1 + Random(seed).Fork(id).Uniform()); });
    ASSERT_TRUE(search.RankCorrelationOnRandom().has_value());
    sum += *search.RankCorrelationOnRandom();
  }
  EXPECT_LT(std::abs(sum / 4), 0.45);
}

TEST(TaskSearchTest, FinalistsAreTheFastestWholeThoseThatAPartCallsAsFastAndTheDefault) {
  TaskSearch search(ConvolutionSpace(), 1);
  EXPECT_TRUE(search.Finalists(3).empty());
  const auto batch = search.Propose(12, nullptr);
  ASSERT_EQ(batch.size(), 12U);
  ASSERT_EQ(batch[0].id, search.space().DefaultId());
  for (size_t k = 0; k < batch.size(); ++k) {
    // The later the faster; but for every third only a part was run.
    const double ns = 1e6 - 1e3 * static_cast<double>(k);
    search.Report(batch[k].id, measure::Outcome::kOk, ns, {ns / 2, k % 3 != 2});
    EXPECT_EQ(search.TrialOf(batch[k].id), static_cast<int>(k) + 1);
  }
  const std::vector<uint64_t> expected = {batch[0].id, batch[10].id, batch[9].id,
                                          batch[7].id, batch[11].id, batch[8].id};
  EXPECT_EQ(search.Finalists(3), expected);
  EXPECT_EQ(search.TrialOf(search.Propose(1, nullptr).front().id), 0) << "it has no result yet";
}

TEST(TaskSearchTest, TrainingRowsAreBoundedAndHaveTheBest) {
  TaskSearch search(ConvolutionSpace(), 1);
  Search(search, 200, [](uint64_t id) { return 1e5 * (1 + Random(3).Fork(id).Uniform()); });
  const int all = search.trials();
  ASSERT_GT(all, 100);
  EXPECT_EQ(static_cast<int>(search.TrainingRows().labels.size()), all);
  const costmodel::TrainingTask few = search.TrainingRows(40);
  EXPECT_LE(few.labels.size(), 40U);
  EXPECT_GE(few.labels.size(), 38U);
  EXPECT_EQ(few.features.size(), few.labels.size());
  // Labels are throughputs relative to the best: the best half of 40 is there.
  std::vector<float> every = search.TrainingRows().labels, kept = few.labels;
  std::ranges::sort(every, std::greater<>());
  std::ranges::sort(kept, std::greater<>());
  EXPECT_TRUE(std::equal(every.begin(), every.begin() + 20, kept.begin()));
  // And the others are of every part of it, not the next best alone.
  EXPECT_LT(kept.back(), every[static_cast<size_t>(all) / 2]);
}

// Replayed, a search knows what was proposed before it knows its points.
TEST(TaskSearchTest, AReplayedSearchThatIsExhaustedSaysSoWhenAsked) {
  TaskSearch first(ConvolutionSpace(), 1), again(ConvolutionSpace(), 1);
  for (;;) {
    const auto batch = first.Propose(64, nullptr);
    if (batch.empty()) break;
    for (const auto& p : batch) again.MarkProposed(p.id, p.proposer);
  }
  EXPECT_TRUE(first.exhausted());
  EXPECT_FALSE(again.exhausted());
  EXPECT_TRUE(again.Propose(8, nullptr).empty());
  EXPECT_TRUE(again.exhausted());
}

// Different decisions may mean the same schedule.
TEST(TaskSearchTest, EachTraceIsProposedOnceAlsoWhereAnEarlierRunProposedSome) {
  const auto space = std::make_shared<const schedule::Space>(*TwoTasks()[0].workload, TestTarget(),
                                                             ir::AccuracyClass::kDefault);
  std::set<std::string> all;
  int points = 0;
  for (uint64_t id = 0; id < space->product(); ++id) {
    const auto trace = space->TraceOf(id);
    if (!space->Admits(id) || !trace.ok()) continue;
    ++points;
    all.insert(schedule::ToText(*trace));
  }
  ASSERT_LT(static_cast<int>(all.size()), points) << "no two points of this Space are equal";
  TaskSearch first(space, 1), again(space, 1);
  std::set<std::string> proposed;
  for (const auto& p : first.Propose(10, nullptr)) {
    EXPECT_TRUE(proposed.insert(p.trace).second) << p.id;
    EXPECT_EQ(p.trace, schedule::ToText(space->TraceOf(p.id).value()));
    again.MarkProposed(p.id, p.proposer);
  }
  for (;;) {
    const auto expected = first.Propose(6, nullptr), found = again.Propose(6, nullptr);
    ASSERT_EQ(expected.size(), found.size());
    if (found.empty()) break;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(expected[i].id, found[i].id);
      EXPECT_TRUE(proposed.insert(found[i].trace).second) << found[i].id;
    }
  }
  EXPECT_EQ(proposed, all);
}

TEST(TaskSearchTest, APointThatIsLostMayComeAgain) {
  TaskSearch search(ConvolutionSpace(), 1);
  const auto batch = search.Propose(8, nullptr);
  ASSERT_EQ(batch.size(), 8U);
  search.Report(batch[3].id, measure::Outcome::kWorkerLost, 0);
  bool again = false;
  for (const auto& p : search.Propose(1000, nullptr)) again |= p.trace == batch[3].trace;
  EXPECT_TRUE(again);
}

// A step along one column of a table keeps the other columns, where the table has such a row.
TEST(TaskSearchTest, NeighboursOfAPointDifferByOneValue) {
  const auto space = ConvolutionSpace();
  int alone = 0, all = 0;
  for (uint64_t id = 0; id < space->product(); id += 7) {
    const schedule::Values from = space->PointOf(id).values;
    for (const uint64_t n : space->Neighbours(id)) {
      const schedule::Values to = space->PointOf(n).values;
      int changed = 0;
      for (size_t k = 0; k < from.size(); ++k) changed += from[k] != to[k] ? 1 : 0;
      EXPECT_EQ(space->At(n).sketch, space->At(id).sketch);
      EXPECT_GE(changed, 1);
      alone += changed == 1 ? 1 : 0;
      ++all;
    }
  }
  EXPECT_GT(alone, all * 3 / 4);
}

}  // namespace
}  // namespace hone::search
