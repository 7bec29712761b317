#include "search/illegal_sketch.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/search/fake_measurer.h"

namespace hone::search {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The product's Space with a Sketch of the convolution beside it, which does not fit it.
std::shared_ptr<const schedule::Space> WithWrongSketch(const std::vector<TuningTask>& tasks) {
  const auto sketches = [](const TuningTask& task) {
    return schedule::Space(*task.workload, TestTarget(), ir::AccuracyClass::kDefault).sketches();
  };
  std::vector<schedule::Sketch> both = sketches(tasks[0]);
  for (const schedule::Sketch& s : sketches(tasks[1])) {
    if (s.name == "winograd2/three_phases") both.push_back(s);
  }
  return std::make_shared<schedule::Space>(*tasks[0].workload, TestTarget(), std::move(both));
}

TEST(IllegalSketchTest, TellsSketchNumberAndWhy) {
  std::vector<TuningTask> tasks = TwoTasks();
  tasks[0].space = WithWrongSketch(tasks);
  Tuner tuner(std::move(tasks), TestTarget(), {});
  EXPECT_THAT(IllegalSketches(tuner), IsEmpty());
  TaskSearch& search = tuner.search(0);
  const uint64_t last = search.space().product() - 1;
  for (const uint64_t id : {last, last - 1, uint64_t{0}}) {
    search.MarkProposed(id, Proposer::kRandom);
    search.Report(id, id == 0 ? measure::Outcome::kOk : measure::Outcome::kIllegal, 1000);
  }
  const std::vector<IllegalSketch> all = IllegalSketches(tuner);
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(all[0].task, 0);
  EXPECT_EQ(all[0].sketch, "winograd2/three_phases");
  EXPECT_EQ(all[0].count, 2);
  EXPECT_THAT(all[0].why, HasSubstr("no 3x3 stride-1 convolution"));
}

}  // namespace
}  // namespace hone::search
