#include "schedule/cuda/maps.h"

#include <iostream>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/launch.h"
#include "schedule/cuda/grid.h"
#include "schedule/space.h"
#include "tests/ptx/run_ptx.h"
#include "tests/schedule/nest_check.h"
#include "tests/schedule/random_workload.h"

// Maps whose threads take several groups of elements, in the loop interpreter and as PTX.
namespace hone::ptx {
namespace {

using schedule::Agreement;

std::string Map(int64_t rows, int64_t columns) {
  return fmt::format(
      "workload 1\nx0: f32[{0},{1}] input range(-3,3)\nx1: f32[{1}] constant\n"
      "s0: f32[{0},{1}] output = max(x0[i0, i1] * x1[i1], 0.0) + 1.0\n",
      rows, columns);
}

TEST(MapsTest, GroupsOfRandomMaps) {
  Random seeds(23);
  for (int n = 0; n < 30; ++n) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    const auto size = [&](uint64_t most) { return 1 + static_cast<int64_t>(random.Below(most)); };
    const std::string text = Map(size(9), random.Chance(0.5) ? 4 * size(30) : size(120));
    const ir::Workload workload = schedule::WorkloadOf(text);
    schedule::TraceWriter writer(workload);
    const int64_t threads = int64_t{8} << random.Below(3), groups = int64_t{2} << random.Below(3);
    schedule::ScheduleOnGrid(writer, 0, threads, int64_t{1} << random.Below(3), groups);
    ASSERT_TRUE(writer.status().ok()) << writer.status() << "\n" << text;
    const auto result = schedule::CheckTrace(workload, writer.trace(), OnGpu("sm_80", seed));
    ASSERT_EQ(result.agreement, Agreement::kEqual)
        << "seed " << seed << ": " << result.why << "\n"
        << text << ToText(writer.trace()) << ir::ToText(result.lowered.nest);
    EXPECT_EQ(ir::LaunchOf(result.lowered.nest, result.lowered.nest.phases[0]).block_x, threads);
  }
}

TEST(MapsTest, APointOfTheSpaceIsRight) {
  const ir::Workload workload = schedule::WorkloadOf(Map(65, 256));
  const auto sketch = schedule::MapsSketch(workload);
  ASSERT_TRUE(sketch.has_value());
  schedule::TraceWriter writer(workload);
  ASSERT_TRUE(sketch->rule->Emit(*sketch, {128, 4, 4}, writer).ok()) << writer.status();
  const auto result = schedule::CheckTrace(workload, writer.trace(), OnGpu("sm_80", 1));
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << ToText(writer.trace());
}

TEST(MapsTest, ReadsBackWhatItWrites) {
  Random random(29);
  int points = 0;
  for (int n = 0; n < 20; ++n) {
    const auto rows = 1 + static_cast<int64_t>(random.Below(64));
    const ir::Workload workload =
        schedule::WorkloadOf(Map(rows, (1 << 15) / rows / 4 * 4 + (n % 2 == 0 ? 0 : 2)));
    const auto sketch = schedule::MapsSketch(workload);
    ASSERT_TRUE(sketch.has_value());
    for (const auto& threads : sketch->tables[0].rows) {
      for (const auto& elements : sketch->tables[1].rows) {
        for (const auto& groups : sketch->tables[2].rows) {
          const schedule::Values values{threads[0], elements[0], groups[0]};
          if (!sketch->rule->Refusal(*sketch, values).empty()) continue;
          schedule::TraceWriter writer(workload);
          ASSERT_TRUE(sketch->rule->Emit(*sketch, values, writer).ok()) << writer.status();
          const auto read = sketch->rule->Read(*sketch, writer.trace());
          ASSERT_TRUE(read.ok() && *read == values) << ToText(writer.trace());
          ++points;
        }
      }
    }
  }
  EXPECT_GE(points, 200);
}

TEST(MapsTest, SmallMapsHaveNone) {
  EXPECT_FALSE(schedule::MapsSketch(schedule::WorkloadOf(Map(9, 40))).has_value());
}

}  // namespace
}  // namespace hone::ptx
