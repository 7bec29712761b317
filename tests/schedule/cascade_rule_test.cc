#include <fmt/format.h>

#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/kind_sketches.h"
#include "schedule/space.h"
#include "schedule/trace_query.h"
#include "tests/schedule/nest_check.h"

// Chains of layers in bands: they equal the interpreter, they keep nothing between the layers but
// what a band needs, and what is no such chain is left alone.
namespace hone::schedule {
namespace {

const char* const kTargets[] = {"cpu:avx2,threads=2", "cpu:avx512,threads=2"};

/// expand, depthwise with its padding, project; with what was read added where nothing changes.
std::string Residual(int64_t n, int64_t size, int64_t in, int64_t wide, int64_t out,
                     int64_t stride) {
  const int64_t to = (size - 1) / stride + 1;
  return fmt::format(
      "workload 1\nx0: f32[{0},{1},{1},{2}] input range(-1,1)\nx1: f32[{3},{2}] constant\n"
      "x2: f32[{3}] constant\nx3: f32[{3},3,3] constant\nx4: f32[{3}] constant\n"
      "x5: f32[{4},{3}] constant\nx6: f32[{4}] constant\n"
      "s0: f32[{0},{1},{1},{3}] = sum[r0:{2}] (x0[i0, i1, i2, r0] * x1[i3, r0])\n"
      "s1: f32[{0},{1},{1},{3}] = min(max(s0[i0, i1, i2, i3] + x2[i3], 0.0), 6.0)\n"
      "s2: f32[{0},{6},{6},{3}] = select(i1 >= 1 & i1 < {1} + 1 & i2 >= 1 & i2 < {1} + 1, "
      "s1[i0, i1 - 1, i2 - 1, i3], 0.0)\n"
      "s3: f32[{0},{5},{5},{3}] = sum[r0:3,r1:3] (s2[i0, i1 * {7} + r0, i2 * {7} + r1, i3] * "
      "x3[i3, r0, r1])\n"
      "s4: f32[{0},{5},{5},{3}] = min(max(s3[i0, i1, i2, i3] + x4[i3], 0.0), 6.0)\n"
      "s5: f32[{0},{5},{5},{4}] = sum[r0:{3}] (s4[i0, i1, i2, r0] * x5[i3, r0])\n"
      "s6: f32[{0},{5},{5},{4}] output = s5[i0, i1, i2, i3] + x6[i3]{8}\n",
      n, size, in, wide, out, to, size + 2, stride,
      in == out && stride == 1 ? " + x0[i0, i1, i2, i3]" : "");
}

/// Two 3×3 convolutions, each with its padding and ReLU.
std::string Convolutions(int64_t size, int64_t in, int64_t between, int64_t out) {
  return fmt::format(
      "workload 1\nx0: f32[1,{0},{0},{1}] input range(-1,1)\nx1: f32[{2},{1},3,3] constant\n"
      "x2: f32[{3},{2},3,3] constant\n"
      "s0: f32[1,{4},{4},{1}] = select(i1 >= 1 & i1 < {0} + 1 & i2 >= 1 & i2 < {0} + 1, "
      "x0[i0, i1 - 1, i2 - 1, i3], 0.0)\n"
      "s1: f32[1,{0},{0},{2}] = sum[r0:3,r1:3,r2:{1}] (s0[i0, i1 + r0, i2 + r1, r2] * "
      "x1[i3, r2, r0, r1])\n"
      "s2: f32[1,{0},{0},{2}] = max(s1[i0, i1, i2, i3], 0.0)\n"
      "s3: f32[1,{4},{4},{2}] = select(i1 >= 1 & i1 < {0} + 1 & i2 >= 1 & i2 < {0} + 1, "
      "s2[i0, i1 - 1, i2 - 1, i3], 0.0)\n"
      "s4: f32[1,{0},{0},{3}] = sum[r0:3,r1:3,r2:{2}] (s3[i0, i1 + r0, i2 + r1, r2] * "
      "x2[i3, r2, r0, r1])\n"
      "s5: f32[1,{0},{0},{3}] output = max(s4[i0, i1, i2, i3], 0.0)\n",
      size, in, between, out, size + 2);
}

/// A convolution and the 2×2 maximum of it.
std::string Pooled(int64_t size, int64_t in, int64_t out) {
  return fmt::format(
      "workload 1\nx0: f32[1,{0},{0},{1}] input range(-1,1)\nx1: f32[{2},{1}] constant\n"
      "s0: f32[1,{0},{0},{2}] = sum[r0:{1}] (x0[i0, i1, i2, r0] * x1[i3, r0])\n"
      "s1: f32[1,{0},{0},{2}] = max(s0[i0, i1, i2, i3], 0.0)\n"
      "s2: f32[1,{3},{3},{2}] output = max[r0:2,r1:2] (s1[i0, i1 * 2 + r0, i2 * 2 + r1, i3])\n",
      size, in, out, size / 2);
}

/// The two products of a feed-forward.
std::string FeedForward(int64_t tokens, int64_t width, int64_t hidden) {
  return fmt::format(
      "workload 1\nx0: f32[{0},{1}] input range(-1,1)\nx1: f32[{1},{2}] constant\n"
      "x2: f32[{2},{1}] constant\n"
      "s0: f32[{0},{2}] = sum[r0:{1}] (x0[i0, r0] * x1[r0, i1])\n"
      "s1: f32[{0},{2}] = max(s0[i0, i1], 0.0)\n"
      "s2: f32[{0},{1}] = sum[r0:{2}] (s1[i0, r0] * x2[r0, i1])\n"
      "s3: f32[{0},{1}] output = s2[i0, i1] + x0[i0, i1]\n",
      tokens, width, hidden);
}

std::vector<std::string> Chains() {
  return {Residual(1, 12, 8, 40, 8, 1), Residual(1, 14, 8, 24, 20, 2),
          Residual(2, 9, 5, 16, 7, 2),  Residual(1, 15, 16, 33, 16, 1),
          Convolutions(12, 5, 16, 24),  Pooled(12, 8, 40),
          FeedForward(24, 32, 64)};
}

std::vector<uint64_t> PointsOf(const Space& space) {
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < space.product(); ++id) {
    if (space.PointOf(id).sketch.rule != &CascadeSketches()) break;  // its Sketches come first
    ids.push_back(id);
  }
  return ids;
}

TEST(CascadeRule, PointsEqualTheInterpreterAndAreReadAgain) {
  constexpr uint64_t kSeed = 1501;
  constexpr int kPointsOfAChain = 12;
  std::cout << "seed " << kSeed << "\n";
  Random random(kSeed);
  int spaces_with_choice = 0;
  for (const std::string& text : Chains()) {
    const ir::Workload workload = WorkloadOf(text);
    std::vector<ir::InterpretedTensor> expected;
    for (const char* target : kTargets) {
      const Space space(workload, TargetOf(target), ir::AccuracyClass::kDefault);
      const std::vector<uint64_t> ids = PointsOf(space);
      ASSERT_FALSE(ids.empty()) << text;
      if (ids.size() >= 4) ++spaces_with_choice;
      for (int k = 0; k < kPointsOfAChain / 2; ++k) {
        const uint64_t id = k == 0 ? space.DefaultId() : ids[random.Below(ids.size())];
        const Space::Point point = space.PointOf(id);
        SCOPED_TRACE(space.ValuesText(id) + " for " + target + " of\n" + text);
        if (!space.Admits(id)) continue;
        const auto trace = space.TraceOf(id);
        ASSERT_TRUE(trace.ok()) << trace.status();
        const auto read = point.sketch.rule->Read(point.sketch, *trace);
        ASSERT_TRUE(read.ok()) << read.status();
        EXPECT_EQ(*read, point.values);
        const CheckResult result = CheckTrace(
            workload, *trace, {.target = target, .compile = k % 3 == 0, .expected = &expected});
        ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n" << ToText(*trace);
      }
    }
  }
  EXPECT_GE(spaces_with_choice, 12) << "of 14; where one vector holds all channels there is little";
}

TEST(CascadeRule, IsTheDefaultOfChainsAndKeepsOnlyABandBetweenTheLayers) {
  const ir::Target target = TargetOf("cpu:avx512,threads=2");
  for (const std::string& text : Chains()) {
    const ir::Workload workload = WorkloadOf(text);
    const double work = SketchesOfKinds().Of(target).WorkInBands(workload, target);
    EXPECT_TRUE(work >= 1 && work <= 1.4) << work << " of\n" << text;
    const auto trace = DefaultTrace(workload, target);
    ASSERT_TRUE(trace.ok()) << trace.status();
    const auto lowered = LowerTrace(workload, *trace, target, {}, "k");
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(lowered->nest.phases.size(), 1U) << "no layer is a phase of its own: " << text;
    EXPECT_TRUE(lowered->artifact.workspace.empty()) << text;
  }
}

TEST(CascadeRule, NamesEveryLayersTileAndTheRowsOfABand) {
  const Space space(WorkloadOf(Residual(1, 56, 24, 144, 24, 1)), TargetOf("cpu:avx512,threads=2"),
                    ir::AccuracyClass::kDefault);
  const Space::Point point = space.PointOf(space.DefaultId());
  EXPECT_EQ(point.sketch.name, "cascade");
  EXPECT_EQ(point.sketch.Columns(),
            (std::vector<std::string>{"band_rows", "rows0", "vectors0", "rows1", "vectors1",
                                      "rows2", "vectors2"}));
  EXPECT_EQ(56 % point.values[0], 0);
}

TEST(CascadeRule, LeavesWhatIsNoChainAlone) {
  const ir::Target target = TargetOf("cpu:avx512,threads=2");
  const std::string ends[] = {
      // Softmax of a product: the rows are whole before anything reads them.
      "workload 1\nx0: f32[16,32] input range(-1,1)\nx1: f32[32,48] constant\n"
      "s0: f32[16,48] = sum[r0:32] (x0[i0, r0] * x1[r0, i1])\n"
      "s1: f32[16] = max[r0:48] (s0[i0, r0])\ns2: f32[16,48] output = s0[i0, i1] - s1[i0]\n",
      // A product of what all rows make: every band would need all of them.
      "workload 1\nx0: f32[32,24] input range(-1,1)\nx1: f32[24,16] constant\n"
      "x2: f32[8,32] input range(-1,1)\n"
      "s0: f32[32,16] = sum[r0:24] (x0[i0, r0] * x1[r0, i1])\n"
      "s1: f32[8,16] output = sum[r0:32] (x2[i0, r0] * s0[r0, i1])\n",
      // One layer.
      "workload 1\nx0: f32[32,24] input range(-1,1)\nx1: f32[24,16] constant\n"
      "s0: f32[32,16] output = sum[r0:24] (x0[i0, r0] * x1[r0, i1])\n"};
  for (const std::string& text : ends) {
    const ir::Workload workload = WorkloadOf(text);
    EXPECT_EQ(SketchesOfKinds().Of(target).WorkInBands(workload, target), 0) << text;
    for (const Sketch& sketch :
         SketchesOfKinds().Of(target).Sketches(workload, target, ir::AccuracyClass::kDefault))
      EXPECT_NE(sketch.rule, &CascadeSketches()) << text;
  }
}

}  // namespace
}  // namespace hone::schedule
