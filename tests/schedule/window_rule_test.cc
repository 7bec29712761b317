#include <fmt/format.h>

#include <regex>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "schedule/lower.h"
#include "tests/schedule/nest_check.h"

// What the rules for windows (depthwise and grouped convolutions, pooling, sums down columns)
// decide, and that the code of it is right.
namespace hone::schedule {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The text of the default's Trace; code and loop nest must equal the interpreter.
std::string CheckedDefault(const std::string& text, const std::string& target) {
  const ir::Workload workload = WorkloadOf(text);
  const auto trace = DefaultTrace(workload, TargetOf(target));
  if (!trace.ok()) return std::string(trace.status().message());
  const CheckResult result = CheckTrace(workload, *trace, {.target = target, .compile = true});
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n" << ToText(*trace);
  return ToText(*trace);
}

/// A convolution of four channels a group, in a layout with the channels outside.
constexpr char kGroupsOfFour[] =
    "workload 1\n"
    "x0: f32[1,32,5,40] input range(-1,1)\n"
    "x1: f32[32,4,3,3] constant\n"
    "s0: f32[1,7,42,32] = select(i1 - 1 >= 0 & i1 - 1 < 5 & (i2 - 1 >= 0 & i2 - 1 < 40), "
    "x0[0, i3, i1 - 1, i2 - 1], 0.0)\n"
    "s1: f32[1,5,40,32] = sum[r0:3,r1:3,r2:4] "
    "(s0[0, i1 + r0, i2 + r1, i3 // 4 * 4 + r2] * x1[i3, r2, r0, r1])\n"
    "s2: f32[1,32,5,40] output over [i0:1,i1:5,i2:40,i3:32] at [0, i3, i1, i2] = "
    "s1[i0, i1, i2, i3]\n";

// Vectors run along pixels, which are not the last dimension of what accumulates.
TEST(RegisterTile, LanesAreNeighboursWhicheverAxisTheyRunAlong) {
  const ir::Workload workload = WorkloadOf(
      "workload 1\n"
      "x0: f32[6,34] input range(-1,1)\n"
      "x1: f32[6,3] constant\n"
      "s0: f32[32,6] = sum[r0:3] (x0[i1, i0 + r0] * x1[i1, r0])\n"
      "s1: f32[6,32] output over [i0:32,i1:6] at [i1, i0] = abs(s0[i0, i1])\n");
  const Trace trace = TraceOf(
      "split(s1.i0, [2,8])\nsplit(s1.i1, 3)\n"
      "reorder(s1.i0.0, s1.i1.0, s1.i1.1, s1.i0.1, s1.i0.2)\n"
      "vectorize(s1.i0.2)\n"
      "compute_at(s0, s1.i1.0, register)\n"
      "split(s0.i0, 8)\nreorder(s0.r0, s0.i1, s0.i0.0, s0.i0.1)\n"
      "unroll(s0.i1)\nunroll(s0.i0.0)\nvectorize(s0.i0.1)\nunroll(s1.i1.1)\nunroll(s1.i0.1)\n");
  const CheckResult result =
      CheckTrace(workload, trace, {.target = "cpu:avx2,threads=1", .compile = true});
  ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why;
  const std::string nest = ir::ToText(result.lowered.nest);
  const std::regex accumulate("vector (v[0-9]+) < 8:\n *s0#[0-9]+\\[([^\\]]*)\\] sum=");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(nest, found, accumulate)) << nest;
  EXPECT_THAT(found[2].str(), HasSubstr(found[1].str())) << nest;
  EXPECT_THAT(found[2].str(), Not(HasSubstr(found[1].str() + " * "))) << nest;
}

TEST(WindowRule, ATileHoldsTheChannelsOfAGroup) {
  for (const char* target : {"cpu:avx2,threads=2", "cpu:avx512,threads=1"}) {
    EXPECT_THAT(CheckedDefault(kGroupsOfFour, target), HasSubstr("split(s2.i3, 4, two_sizes)"))
        << target;
  }
}

// Each step down goes to another page: so many columns at once as leave every thread a share.
TEST(WindowRule, SumsDownColumnsTakeManyVectors) {
  const auto sums = [](const std::string& columns) {
    return "workload 1\nx0: f32[40," + columns + "] input range(-1,1)\ns0: f32[" + columns +
           "] output = sum[r0:40] (x0[r0, i0])\n";
  };
  EXPECT_THAT(CheckedDefault(sums("512"), "cpu:avx512,threads=2"),
              HasSubstr("split(s0.i0, [8,16])"));
  EXPECT_THAT(CheckedDefault(sums("128"), "cpu:avx512,threads=2"),
              HasSubstr("split(s0.i0, [4,16])"));
  EXPECT_THAT(CheckedDefault(sums("128"), "cpu:avx512,threads=1"),
              HasSubstr("split(s0.i0, [8,16])"));
  for (const char* columns : {"5", "16", "40", "100", "129"}) {
    for (const char* target : {"cpu:avx2,threads=2", "cpu:avx512,threads=2"})
      EXPECT_THAT(CheckedDefault(sums(columns), target), HasSubstr("split(s0.i0, ["));
  }
}

// Pairs of value and index accumulate in registers, lanes along the result's last axis.
TEST(WindowRule, IndicesOfTheLargestAreVectors) {
  for (const char* target : {"cpu:avx2,threads=2", "cpu:avx512,threads=1"}) {
    for (const char* combiner : {"argmax", "argmin", "argmax_last", "argmin_last"}) {
      const std::string trace =
          CheckedDefault(fmt::format("workload 1\nx0: f32[1,21,33,40] input range(-1,1)\n"
                                     "s0: f32[1,33,40], s0.1: i64[1,33,40] output = {}[r0:21] "
                                     "(x0[i0, r0, i1, i2], r0)\n",
                                     combiner),
                         target);
      EXPECT_THAT(trace, HasSubstr("vectorize(s0.i2.2)"));
      EXPECT_THAT(trace, HasSubstr("= cache_write(s0, register"));
      EXPECT_THAT(trace, HasSubstr("parallel("));
    }
    // Pooling with indices; taps in the padding are below all others.
    EXPECT_THAT(CheckedDefault("workload 1\nx0: f32[1,3,12,37] input range(-1,1)\n"
                               "s0: f32[1,3,14,39] = select(i2 >= 1 & i2 < 13 & i3 >= 1 & i3 < 38, "
                               "x0[i0, i1, i2 - 1, i3 - 1], -inf)\n"
                               "s1: f32[1,3,6,19] output, s1.1: i64[1,3,6,19] output = "
                               "argmax[r0:3,r1:3] (s0[i0, i1, i2 * 2 + r0, i3 * 2 + r1], "
                               "(i1 * 12 + i2 * 2 + r0 - 1) * 37 + i3 * 2 + r1 - 1)\n",
                               target),
                HasSubstr("vectorize(s1.i3.2)"));
  }
}

}  // namespace
}  // namespace hone::schedule
