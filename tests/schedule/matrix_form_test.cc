#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/schedule/nest_check.h"

// What makes a sum of products one of two matrices: flatten, im2col, epilogue; what each does to
// the loop nest, and Traces that are refused.
namespace hone::schedule {
namespace {

using ::testing::HasSubstr;

constexpr char kMap[] =
    "workload 1\n"
    "x0: f32[6,8] input range(-1,1)\n"
    "s0: f32[6,8] = x0[i0, i1] * 2.0\n"
    "s1: f32[6,8] output = s0[i0, i1] + 1.0\n";

constexpr char kWindow[] =
    "workload 1\n"
    "x0: f32[4,5,2] input range(-1,1)\n"
    "x1: f32[2,2,3] constant\n"
    "s0: f32[4,4,3] = sum[r0:2,r1:2] (x0[i0, i1 + r0, r1] * x1[r0, r1, i2])\n"
    "s1: f32[4,4,3] output = max(s0[i0, i1, i2], 0.0)\n";

TEST(MatrixForm, FlattenSpatialAxes) {
  const std::string loops = Loops(kWindow, "flatten(s0, [i0,i1])\nflatten(s1, [i0,i1])");
  EXPECT_THAT(loops, HasSubstr("for v0 < 16:\n"));
  EXPECT_THAT(loops, HasSubstr("] = max(s0[v4 * 3 + v5], 0.0)\n")) << "one axis, as stored";
  EXPECT_THAT(Loops(kWindow, "flatten(s0, [i0,i2])"), HasSubstr("i2 does not follow i0"));
  EXPECT_THAT(Loops(kWindow, "flatten(s0, [i1,i1])"), HasSubstr("i1 stands twice"));
  EXPECT_THAT(Loops(kWindow, "flatten(s0, [i2,r0])"),
              HasSubstr("a spatial and a reduce axis cannot become one"));
  EXPECT_THAT(Loops(kWindow, "split(s0.i0, 2)\nflatten(s0, [i0,i1])"),
              HasSubstr("must come before the loops of s0 are split"));
}

TEST(MatrixForm, UnflattenIsTheInverse) {
  const std::string loops = Loops(kWindow, "unflatten(s0, i1, 2)\nunflatten(s1, i1, 2)");
  EXPECT_THAT(loops, HasSubstr("for v2 < 2:\n"));
  EXPECT_THAT(loops, HasSubstr("s0[v6 * 12 + v7 * 6 + v8 * 3 + v9]")) << "as stored before";
  EXPECT_EQ(Loops(kMap, "flatten(s0, [i0,i1])\nunflatten(s0, i0, 8)"), Loops(kMap, ""));
  EXPECT_THAT(Loops(kWindow, "unflatten(s0, i2, 2)"), HasSubstr("3 iterations are no multiple"));
  EXPECT_THAT(Loops(kWindow, "unflatten(s0, r0, 2)"), HasSubstr("axes are i0, i1"));
  EXPECT_THAT(Loops(kWindow, "unflatten(s0, i3, 2)"), HasSubstr("s0 has no i3"));
}

TEST(MatrixForm, FlattenReduceAxes) {
  EXPECT_THAT(Loops(kWindow, "flatten(s0, [r0,r1])"), HasSubstr("for v3 < 4:\n"));
  const std::string padded = Loops(kWindow, "flatten(s0, [r1,r0], 8)");
  EXPECT_THAT(padded, HasSubstr("for v3 < 8:\n"));
  EXPECT_THAT(padded, HasSubstr("if v3 < 4:\n"));
  EXPECT_THAT(Loops(kWindow, "flatten(s0, [i0,i1], 8)"), HasSubstr("only reduce axes"));
  EXPECT_THAT(Loops(kWindow, "flatten(s0, [r0], 100)"), HasSubstr("must lie in 1..64"));
}

TEST(MatrixForm, Im2col) {
  const std::string loops =
      Loops(kWindow, "inline(s1)\nflatten(s0, [i0,i1])\ns2 = im2col(s0, x0, [r0,i0,r1], at=s0.i0)");
  EXPECT_THAT(loops, HasSubstr("s1 is an output"));
  const std::string copied =
      Loops(kWindow, "flatten(s0, [i0,i1])\ns2 = im2col(s0, x0, [r0,i0,r1], at=s0.i0)");
  EXPECT_THAT(copied, HasSubstr("s2#")) << "a tile with an element for each use";
  EXPECT_THAT(Loops(kWindow, "s2 = im2col(s0, x0, [i0,i1,r0])"),
              HasSubstr("the factor depends on s0.r1 too"));
  EXPECT_THAT(Loops(kWindow, "s2 = im2col(s0, x0, [i0,i1,i2,r0,r1])"),
              HasSubstr("the factor does not depend on i2"));
  EXPECT_THAT(Loops(kWindow, "s2 = im2col(s1, s0, [i0])"), HasSubstr("s1 adds up no products"));
}

TEST(MatrixForm, Epilogue) {
  const std::string loops =
      Loops(kWindow, "epilogue(s0, s1)\ns2 = cache_write(s0, register, at=s0.i1)");
  EXPECT_THAT(loops, HasSubstr("s1[v0 * 12 + v1 * 3 + v")) << loops;
  EXPECT_EQ(loops.find("s0["), std::string::npos) << "stored nowhere\n" << loops;
  EXPECT_THAT(Loops(kWindow, "epilogue(s0, s1)"), HasSubstr("so it needs a tile"));
  EXPECT_THAT(Loops(kWindow,
                    "epilogue(s0, s1)\nreorder(s0.r0, s0.i0)\n"
                    "s2 = cache_write(s0, register, at=s0.i1)"),
              HasSubstr("must stand around its reduce loops"));
  EXPECT_THAT(Loops(kWindow, "flatten(s0, [i0,i1])\nepilogue(s0, s1)"),
              HasSubstr("s1 does not read s0 point by point"));
  EXPECT_THAT(Loops(kMap, "epilogue(s0, s1)"), HasSubstr("s0 does not reduce"));
  EXPECT_THAT(Loops(kWindow, "epilogue(s0, s1)\ncompute_at(s0, s1.i0)"),
              HasSubstr("is computed at no loop"));
}

}  // namespace
}  // namespace hone::schedule
