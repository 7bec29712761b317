#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/schedule/nest_check.h"

// What lets rows stand in the lanes of vectors: permute and round; what each does to the loop nest,
// and Traces that are refused.
namespace hone::schedule {
namespace {

using ::testing::HasSubstr;

constexpr char kMap[] =
    "workload 1\n"
    "x0: f32[6,8] input range(-1,1)\n"
    "s0: f32[6,8] = x0[i0, i1] * 2.0\n"
    "s1: f32[6,8] output = s0[i0, i1] + 1.0\n";

constexpr char kBlur[] =
    "workload 1\n"
    "x0: f32[12] input range(-1,1)\n"
    "s0: f32[12] = x0[i0] * 2.0\n"
    "s1: f32[10] output = s0[i0] + s0[i0 + 1] + s0[i0 + 2]\n";

TEST(Lanes, Permute) {
  const std::string loops = Loops(kMap, "permute(s0, [i1,i0])");
  EXPECT_THAT(loops, HasSubstr("for v0 < 8:\n"));
  EXPECT_THAT(loops, HasSubstr("s0[v0 * 6 + v1] = x0[v0 + v1 * 8] * 2.0\n"));
  EXPECT_THAT(loops, HasSubstr("] = s0[v2 + v3 * 6] + 1.0\n")) << "readers follow";
  EXPECT_THAT(Loops(kMap, "permute(s1, [i1,i0])"), HasSubstr("s1 is an output"));
  EXPECT_THAT(Loops(kMap, "permute(s0, [i1,i1])"), HasSubstr("i1 stands twice"));
  EXPECT_THAT(Loops(kMap, "permute(s0, [i1])"), HasSubstr("s0 has 2 axes, not 1"));
  EXPECT_THAT(Loops(kMap, "permute(s0, [i1,i2])"), HasSubstr("s0 has no i2"));
  EXPECT_THAT(Loops(kMap, "split(s0.i0, 2)\npermute(s0, [i1,i0])"),
              HasSubstr("must come before the loops of s0 are split"));
}

TEST(Lanes, Round) {
  const std::string blocks = "split(s1.i0, 4, mask)\npartition(s1.i0.0, [-1])\n";
  const std::string at = "compute_at(s0, s1.i0.0, memory)\n";
  // Results 8 and 9 need the inputs 8 to 11; the last eight are 4 to 11.
  const std::string whole = Loops(kBlur, blocks + at + "round(s0, 0, 8)");
  EXPECT_THAT(whole, HasSubstr("for v3 < 8:\n"));
  EXPECT_THAT(whole, HasSubstr("s0#3[v3] = x0[v3 + 4] * 2.0\n"));
  EXPECT_THAT(Loops(kBlur, blocks + at), HasSubstr("for v3 < 4:\n"));
  EXPECT_THAT(Loops(kBlur, blocks + at + "round(s0, 0, 32)"), HasSubstr("for v3 < 4:\n"))
      << "there are not so many";
  EXPECT_THAT(Loops(kBlur, "round(s0, 0, 8)"), HasSubstr("s0 is computed at no loop"));
  EXPECT_THAT(Loops(kBlur, blocks + at + "round(s0, 1, 8)"), HasSubstr("no such dimension"));
  EXPECT_THAT(Loops(kBlur, blocks + at + "round(s0, 0, 65)"), HasSubstr("must lie in 1..64"));
  EXPECT_THAT(Loops(kBlur, "round(s1, 0, 8)"), HasSubstr("s1 is an output"));
}

}  // namespace
}  // namespace hone::schedule
