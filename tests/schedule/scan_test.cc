#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/schedule/nest_check.h"

// The loops of a Stage whose iterations follow each other.
namespace hone::schedule {
namespace {

using ::testing::HasSubstr;

constexpr char kScan[] =
    "workload 1\n"
    "x0: f32[5,4] input range(-1,1)\n"
    "s0: f32[5,4] output scan 0 = x0[i0, i1] + select(i0 >= 1, s0[i0 - 1, i1], 0.0)\n";

TEST(Scan, TheSequentialAxisOutermostIsAStep) {
  EXPECT_EQ(Loops(kScan, ""),
            "step v0 < 5:\n"
            "  for v1 < 4:\n"
            "    s0[v0 * 4 + v1] = x0[v0 * 4 + v1] + select(v0 >= 1, s0[v0 * 4 + v1 + -4], 0.0)\n");
  EXPECT_EQ(Loops(kScan, "reorder(s0.i1, s0.i0)\nparallel(s0.i1, 2)"),
            "parallel v0 < 4:\n"
            "  for v1 < 5:\n"
            "    s0[v0 + v1 * 4] = x0[v0 + v1 * 4] + select(v1 >= 1, s0[v0 + v1 * 4 + -4], 0.0)\n");
}

TEST(Scan, ItsIterationsStayInOrder) {
  EXPECT_THAT(Loops(kScan, "vectorize(s0.i0)"),
              HasSubstr("the iterations of s0 follow each other, they cannot be vector"));
  EXPECT_THAT(Loops(kScan, "parallel(s0.i0, 2)"), HasSubstr("they cannot be parallel"));
  EXPECT_THAT(Loops(kScan, "partition(s0.i0, [1])"),
              HasSubstr("the sequential axis of s0 cannot be partitioned"));
  EXPECT_THAT(Loops(kScan, "s0.f0 = fuse(s0.i0, s0.i1)"),
              HasSubstr("the sequential axis of s0 cannot be fused"));
  EXPECT_THAT(Loops(kScan, "split(s0.i0, 2, mask)\nreorder(s0.i0.1, s0.i0.0)"),
              HasSubstr("must stand inside the outer part"));
}

TEST(Scan, WhatOtherIterationsMakeIsNotReadBefore) {
  const std::string product =
      "workload 1\n"
      "x0: f32[3,3] constant\n"
      "s0: f32[4,2,3] output scan 0 = sum[r0:3] (select(i0 >= 1, s0[i0 - 1, i1, r0], 0.5) * x0[r0, "
      "i2])\n";
  EXPECT_THAT(Loops(product, "reorder(s0.i1, s0.i0, s0.i2)"), HasSubstr("for v1 < 4"));
  EXPECT_THAT(Loops(product, "reorder(s0.i2, s0.i0)"),
              HasSubstr("s0 reads elements of s0 that other iterations of the loops outside make"));
  EXPECT_THAT(Loops(product, "reorder(s0.i1, s0.r0, s0.i0)"),
              HasSubstr("s0.r0 must stand inside the sequential axis of s0"));
  EXPECT_THAT(Loops(product, "reorder(s0.i1, s0.i0)\ns1 = cache_write(s0, register, at=s0.i1)"),
              HasSubstr("the tile s1 must stand inside the sequential axis"));
  EXPECT_THAT(Loops(kScan, "s1 = cache_read(s0, s0)"),
              HasSubstr("s0 is made in the scan that s0 belongs to"));
}

}  // namespace
}  // namespace hone::schedule
