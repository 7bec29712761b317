#include "costmodel/point_scores.h"

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/text.h"
#include "tests/costmodel/trained_model.h"

namespace hone::costmodel {
namespace {

// More than one block, and a last one that is not full.
constexpr size_t kPoints = 2500;

TEST(PointScoresTest, EveryNumberOfThreadsScoresAsOneRowAtATime) {
  auto workload = ir::ParseWorkload(
      "workload 1\n"
      "x0: f32[64,96] input range(-1,1)\n"
      "x1: f32[96,128] constant\n"
      "s0: f32[64,128] output = sum[r0:96] (x0[i0, r0] * x1[r0, i1])\n");
  ASSERT_TRUE(workload.ok()) << workload.status();
  ir::Target target;
  std::string error;
  ASSERT_TRUE(ir::ParseTarget("cpu:avx512,threads=2", &target, &error)) << error;
  const schedule::Space space(*workload, target, ir::AccuracyClass::kDefault);
  const FeatureExtractor extractor(space);
  Random random(5);
  std::vector<uint64_t> ids;
  TrainingTask task;
  for (size_t i = 0; i < kPoints; ++i) {
    ids.push_back(random.Below(space.product()));
    if (i % 16 != 0) continue;
    task.features.push_back(extractor.Extract(ids.back()));
    task.labels.push_back(static_cast<float>(random.Uniform()));
  }
  const auto model = TrainedModel({task}, 3);
  ASSERT_TRUE(model.ok()) << model.status();
  for (const int threads : {1, 2, 5}) {
    const auto scores = ScorePoints(extractor, **model, ids, threads);
    ASSERT_TRUE(scores.ok()) << scores.status();
    ASSERT_EQ(scores->size(), ids.size());
    for (size_t i = 0; i < ids.size(); i += 7) {
      FeatureRows row;
      row.push_back(extractor.Extract(ids[i]));
      const auto alone = (*model)->Predict(row);
      ASSERT_TRUE(alone.ok()) << alone.status();
      EXPECT_EQ((*scores)[i].mean, (*alone)[0].mean) << i << " with " << threads << " threads";
      EXPECT_EQ((*scores)[i].spread, (*alone)[0].spread) << i;
    }
  }
  const auto none = ScorePoints(extractor, **model, {}, 2);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->empty());
}

}  // namespace
}  // namespace hone::costmodel
