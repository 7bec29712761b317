#include "costmodel/flat_trees.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "costmodel/xgboost_model.h"
#include "tests/costmodel/trained_model.h"

namespace hone::costmodel {
namespace {

constexpr char kTree[] =
    "0:[f3<0.5] yes=1,no=2,missing=2\n"
    "\t1:leaf=1\n"
    "\t2:[f0<2] yes=3,no=4,missing=3\n"
    "\t\t3:leaf=-0.25\n"
    "\t\t4:leaf=4\n";

FlatTrees Parsed(const std::vector<const char*>& dumps) {
  auto trees = FlatTrees::Parse(dumps, kColumns);
  EXPECT_TRUE(trees.ok()) << trees.status();
  return *std::move(trees);
}

TEST(FlatTreesTest, EachSplitSendsSmallerValuesLeftAndMissingOnesWhereItSays) {
  const FlatTrees trees = Parsed({kTree, "0:leaf=10\n"});
  EXPECT_EQ(trees.num_trees(), 2U);
  FeatureVector row(kColumns, 0);
  EXPECT_EQ(trees.PredictRow(row), 11);
  row[3] = 0.5F;
  EXPECT_EQ(trees.PredictRow(row), 9.75F);
  row[0] = 2;
  EXPECT_EQ(trees.PredictRow(row), 14);
  row[0] = std::nanf("");
  EXPECT_EQ(trees.PredictRow(row), 9.75F);
  row[3] = std::nanf("");
  EXPECT_EQ(trees.PredictRow(row), 9.75F);
}

TEST(FlatTreesTest, DumpsThatAreNoTreesAreRefused) {
  for (const char* text :
       {"", "0:[f3<0.5] yes=1,no=2,missing=2\n\t1:leaf=1\n", "0:[f99<0.5] yes=1,no=2,missing=1\n",
        "0:[f3<0.5] yes=0,no=0,missing=0\n", "0:[f-1<0.5] yes=1,no=2,missing=1\n", "nonsense",
        "0:[f3<] yes=1,no=2,missing=1\n", "1:leaf=1\n", "-1:leaf=1\n", "99999999:leaf=1\n"}) {
    EXPECT_EQ(FlatTrees::Parse(std::vector<const char*>{text}, kColumns).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

/// Rows as a Space gives them: some columns constant, some with few values, some with many.
FeatureRows Rows(Random& random, size_t n) {
  FeatureVector common(kColumns, 0);
  for (float& x : common) x = static_cast<float>(random.Uniform());
  FeatureRows rows;
  for (size_t i = 0; i < n; ++i) {
    rows.push_back(common);
    const std::span<float> row = rows[i];
    for (size_t k = 10; k < 20; ++k) row[k] = static_cast<float>(random.Below(5)) * 0.25F;
    for (size_t k = 20; k < row.size(); ++k) row[k] = static_cast<float>(random.Uniform());
  }
  return rows;
}

TrainingTask Labelled(FeatureRows rows, Random& random) {
  TrainingTask task{std::move(rows), {}};
  for (size_t i = 0; i < task.features.size(); ++i) {
    const std::span<const float> f = std::as_const(task.features)[i];
    task.labels.push_back(0.05F + 0.4F * f[12] + 0.3F * std::abs(f[25] - f[31]) +
                          0.2F * static_cast<float>(random.Uniform()));
  }
  return task;
}

class FlatPredictionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<TrainingTask> tasks;
    for (int t = 0; t < 4; ++t) tasks.push_back(Labelled(Rows(random_, 400), random_));
    auto bytes = XgboostModel::Train(tasks, 2);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    bytes_ = *std::move(bytes);
    auto model = XgboostModel::Load(bytes_);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }
  /// The very bits of XGBoost's own prediction.
  void ExpectSame(const FeatureRows& rows) const {
    const auto ours = model_->Predict(rows), theirs = XgboostModel::PredictByLibrary(bytes_, rows);
    ASSERT_TRUE(ours.ok() && theirs.ok()) << ours.status() << theirs.status();
    ASSERT_EQ(ours->size(), rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ((*ours)[i].mean, (*theirs)[i].mean) << "row " << i;
      ASSERT_EQ((*ours)[i].spread, (*theirs)[i].spread) << "row " << i;
    }
  }

  Random random_{17};
  std::string bytes_;
  std::unique_ptr<XgboostModel> model_;
};

TEST_F(FlatPredictionTest, EqualsTheLibrarysForAnyNumberOfRows) {
  for (const size_t n : {1, 7, 47, 48, 64, 65, 1000, 1024, 1025, 2500})
    ExpectSame(Rows(random_, n));
}

TEST_F(FlatPredictionTest, EqualsTheLibrarysOnValuesThatAreThresholds) {
  // Equal labels apart, every column takes the trained values themselves, whose bin borders the
  // thresholds are.
  FeatureRows rows = Rows(random_, 600);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (float& x : rows[i]) x = std::round(x * 16) / 16;
  }
  ExpectSame(rows);
}

TEST_F(FlatPredictionTest, EqualsTheLibrarysWithMissingAndEndlessValues) {
  FeatureRows rows = Rows(random_, 300);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (float& x : rows[i]) {
      if (i % 3 == 0 && random_.Chance(0.3)) x = std::nanf("");
      if (i % 3 == 1 && random_.Chance(0.1))
        x = (random_.Chance(0.5) ? 1 : -1) * std::numeric_limits<float>::max();
    }
  }
  ExpectSame(rows);
  FeatureRows whole;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (std::ranges::none_of(rows[i], [](float x) { return std::isnan(x); }))
      whole.push_back(rows[i]);
  }
  ExpectSame(whole);
}

}  // namespace
}  // namespace hone::costmodel
