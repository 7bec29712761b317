#include <cstdint>
#include <string>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "schedule/cuda/grid.h"
#include "schedule/space.h"
#include "tests/schedule/nest_check.h"
#include "tests/schedule/random_workload.h"

// The schedule of a GPU that every Workload has. tests/ptx runs its code.
namespace hone::schedule {
namespace {

ir::Target Gpu() { return TargetOf("cuda:sm_80"); }

std::string DefaultText(const std::string& workload) {
  const auto trace = DefaultTrace(WorkloadOf(workload), Gpu());
  return trace.ok() ? ToText(*trace) : std::string(trace.status().message());
}

TEST(GridRule, TakesNeighboursTogetherWhereTheyDivide) {
  EXPECT_EQ(DefaultText("workload 1\nx0: f32[6,128] input range(-1,1)\n"
                        "s0: f32[6,128] output = x0[i0, i1] + 1.0\n"),
            "split(s0.i1, 4)\n"
            "s0.f0 = fuse(s0.i0, s0.i1.0)\n"
            "split(s0.f0, 256, mask)\n"
            "bind(s0.f0.0, block.x)\n"
            "bind(s0.f0.1, thread.x)\n"
            "vectorize(s0.i1.1)\n");
  EXPECT_EQ(DefaultText("workload 1\nx0: f32[512] input range(-1,1)\n"
                        "s0: f32[256] output = x0[i0 * 2] + 1.0\n"),
            "split(s0.i0, 4)\n"
            "split(s0.i0.0, 256, mask)\n"
            "bind(s0.i0.0.0, block.x)\n"
            "bind(s0.i0.0.1, thread.x)\n"
            "vectorize(s0.i0.1)\n");
  EXPECT_EQ(DefaultText("workload 1\nx0: f32[7,5] input range(-1,1)\n"
                        "s0: f32[7] output = sum[r0:5] (x0[i0, r0])\n"),
            "split(s0.i0, 256, mask)\n"
            "bind(s0.i0.0, block.x)\n"
            "bind(s0.i0.1, thread.x)\n"
            "s1 = cache_write(s0, register, at=s0.i0.1)\n");
  EXPECT_EQ(DefaultText("workload 1\nx0: f32[5] input range(-1,1)\n"
                        "s0: f32[] output = sum[r0:5] (x0[r0])\n"),
            "")
      << "one element: one thread";
}

TEST(GridRule, ReadsBackWhatItWrites) {
  Random seeds(5);
  int points = 0;
  for (int n = 0; n < 60; ++n) {
    Random random(seeds.Next());
    const RandomWorkload made = MakeWorkload(random);
    const ir::Workload workload = WorkloadOf(made.text);
    const Sketch sketch = GridSketch(workload);
    ASSERT_EQ(sketch.tables.size(), 2U);
    for (const auto& threads : sketch.tables[0].rows) {
      for (const auto& elements : sketch.tables[1].rows) {
        const Values values{threads[0], elements[0]};
        TraceWriter writer(workload);
        ASSERT_TRUE(sketch.rule->Emit(sketch, values, writer).ok()) << writer.status();
        const auto read = sketch.rule->Read(sketch, writer.trace());
        ASSERT_TRUE(read.ok()) << read.status();
        TraceWriter again(workload);
        ASSERT_TRUE(sketch.rule->Emit(sketch, *read, again).ok());
        ASSERT_EQ(ToText(again.trace()), ToText(writer.trace())) << made.text;
        const bool bound = ToText(writer.trace()).find("bind") != std::string::npos;
        if (bound) {
          ASSERT_EQ(*read, values) << made.text << "\n" << ToText(writer.trace());
        }
        ++points;
      }
    }
  }
  EXPECT_GE(points, 300);
}

}  // namespace
}  // namespace hone::schedule
