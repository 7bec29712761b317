#include "search/task_search.h"

#include <cmath>

#include "gtest/gtest.h"

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
    auto next = costmodel::XgboostModel::Train({search.TrainingRows()}, 1);
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

// A step along one column of a table keeps the other columns, where the table has such a row.
TEST(TaskSearchTest, NeighboursOfAPointDifferByOneValue) {
  const auto space = ConvolutionSpace();
  const auto value = [](const schedule::PlanChoice& c) {
    return std::array<int64_t, 5>{c.tile.rows, c.tile.vectors, static_cast<int64_t>(c.tile.order),
                                  c.tile.reduce_block, c.tile_rows};
  };
  int alone = 0, all = 0;
  for (uint64_t id = 0; id < space->product(); id += 7) {
    const auto from = value(space->ChoiceOf(id));
    for (const uint64_t n : space->Neighbours(id)) {
      const auto to = value(space->ChoiceOf(n));
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
