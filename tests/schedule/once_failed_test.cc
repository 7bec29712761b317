// Traces that random tests found and that gave wrong results, kept by their text.
#include <string>

#include "gtest/gtest.h"

#include "ir/text.h"
#include "schedule/trace.h"
#include "tests/schedule/nest_check.h"

namespace hone::schedule {
namespace {

CheckResult Check(const std::string& workload, const std::string& trace,
                  const std::string& target) {
  const auto w = ir::ParseWorkload("workload 1\n" + workload);
  const auto t = ParseTrace(trace);
  EXPECT_TRUE(w.ok()) << w.status();
  EXPECT_TRUE(t.ok()) << t.status();
  CheckOptions options;
  options.target = target;
  options.compile = true;
  return CheckTrace(*w, *t, options);
}

// A register tile of one element that a masked vector of four writes, and a scalar reads: the
// vector reached past the tile's memory, and everything became NaN.
TEST(OnceFailed, MaskedVectorWiderThanItsRegisterTile) {
  for (const char* target : {"cpu:avx2,threads=2", "cpu:avx512,threads=2"}) {
    const CheckResult result = Check(
        "x0: f32[1,7,13,2] input range(-1,1)\n"
        "x1: f32[5,2,3,3] constant\n"
        "x2: f32[5] constant\n"
        "s0: f32[1,3,6,5] = sum[r0:3,r1:3,r2:2] (x0[i0, i1 * 2 + r0, i2 * 2 + r1, r2] * "
        "x1[i3, r2, r0, r1])\n"
        "s1: f32[1,3,6,5] = s0[i0, i1, i2, i3] + x2[i3]\n"
        "s2: f32[1,3,6,5] output = max(s1[i0, i1, i2, i3], 0.0)\n",
        "s2.f0 = fuse(s2.i2, s2.i3)\n"
        "compute_at(s1, s2.f0, register)\n"
        "split(s1.i3, [4], mask)\n"
        "compute_at(s0, s1.i1, memory)\n"
        "s3 = cache_write(s0, register, at=s0.i0)\n"
        "unroll(s0.i0)\n"
        "unroll(s0.i3)\n"
        "unroll(s1.i1)\n"
        "unroll(s1.i3.0)\n"
        "vectorize(s1.i3.1)\n",
        target);
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
  }
}

// One active lane of a narrowed vector: LLVM 22 writes four bytes for it, past the output's end.
TEST(OnceFailed, OneLaneOfNarrowedVectors) {
  for (const char* target : {"cpu:avx2,threads=2", "cpu:avx512,threads=2"}) {
    const CheckResult result = Check(
        "x0: i32[7] input range(-99,99)\n"
        "s0: i8[7] output = i8(max(min(x0[i0] >> 2:i32, 127:i32), -128:i32))\n",
        "split(s0.i0, [2,6], mask)\n"
        "unroll(s0.i0.1)\n"
        "vectorize(s0.i0.2)\n",
        target);
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
  }
}

// A packed copy inside a row loop is one row seen from that loop, but the masked split around it
// makes it four, of an output of which one row is there.
TEST(OnceFailed, CopyOfMoreRowsThanAreWritten) {
  const CheckResult result = Check(
      "x0: f32[3,9] input range(-1,1)\n"
      "x1: f32[3,9] input range(-1,1)\n"
      "x2: f32[9] constant\n"
      "s0: f32[3,9] output = x0[i0, i1] + x1[i0, i1]\n"
      "s1: f32[3], s1.1: f32[3] = sum_sumsq[r0:9] (s0[i0, r0], s0[i0, r0] * s0[i0, r0])\n"
      "s2: f32[3,9] output = (s0[i0, i1] - s1[i0] / 9.0) * rsqrt(s1.1[i0] / 9.0 - s1[i0] / 9.0 * "
      "(s1[i0] / 9.0) + 1.0) * x2[i1]\n",
      "s3 = pack(s1, s0, [i0/4,i0%4,i1])\n"
      "compute_at(s1, s2.i0, register)\n"
      "split(s1.i0, [3], mask)\n"
      "compute_at(s3, s1.i0.0)\n"
      "compute_at(s0, s2.i0, memory)\n",
      "cpu:avx2,threads=2");
  EXPECT_EQ(result.agreement, Agreement::kIllegal);
  EXPECT_NE(result.why.find("s3 would read more of s0 than is computed there"), std::string::npos)
      << result.why;
}

// The same, but the loop over the masked rows is outside: each copy is one row, of three in turn.
TEST(OnceFailed, CopyOfAnotherRowThanIsWritten) {
  const CheckResult result = Check(
      "x0: f32[5,12] input range(-1,1)\n"
      "x1: f32[5,12] input range(-1,1)\n"
      "x2: f32[12] constant\n"
      "s0: f32[5,12] output = x0[i0, i1] + x1[i0, i1]\n"
      "s1: f32[5], s1.1: f32[5] = sum_sumsq[r0:12] (s0[i0, r0], s0[i0, r0] * s0[i0, r0])\n"
      "s2: f32[5,12] output = (s0[i0, i1] - s1[i0] / 12.0) * rsqrt(s1.1[i0] / 12.0 - s1[i0] / 12.0 "
      "* "
      "(s1[i0] / 12.0) + 1.0) * x2[i1]\n",
      "s3 = pack(s1, s0, [i0%3,i0/3,i1])\n"
      "reorder(s2.i0, s2.i1)\n"
      "partition(s2.i1, [-1])\n"
      "compute_at(s1, s2.i1)\n"
      "split(s1.i0, [3], mask)\n"
      "reorder(s1.i0.1, s1.r0, s1.i0.0)\n"
      "s4 = cache_write(s1, memory, at=s1.r0)\n"
      "compute_at(s3, s1.i0.0)\n"
      "split(s3.i1, [1,1])\n"
      "reorder(s3.i1.2, s3.i0)\n"
      "partition(s3.i1.0, [-1,3])\n"
      "compute_at(s0, s2.i0)\n"
      "split(s0.i1, [12])\n"
      "reorder(s0.i1.0, s0.i1.1, s0.i0)\n"
      "s5 = cache_read(s0, x0, at=s0.i1.0, storage=register)\n"
      "split(s5.i1, [12], two_sizes)\n"
      "align(s5, 0, 3)\n"
      "s6 = cache_read(s3, s0, at=s3.i1.2)\n",
      "cpu:avx2,threads=2");
  EXPECT_EQ(result.agreement, Agreement::kIllegal);
  EXPECT_NE(result.why.find("of s0 than is computed there"), std::string::npos) << result.why;
}

// An output computed in a masked loop: from there it seemed that three rows of it are needed, but
// further out only one was prepared. The others were overwritten by rows made of nothing.
TEST(OnceFailed, RowsOfAnOutputThatNobodyPrepared) {
  const CheckResult result = Check(
      "x0: i32[3,6] input range(-8,9)\n"
      "x1: i32[6,2] input range(-8,9)\n"
      "s0: i32[3,2] = sum[r0:6] (x0[i0, r0] * x1[r0, i1])\n"
      "s1: i32[3,2] output = s0[i0, i1] + 1:i32\n"
      "s2: i32[3,2] output = max(s1[i0, i1], 0:i32)\n",
      "s3 = rfactor(s0, s0.r0, 2, inner)\n"
      "split(s2.i0, [1])\n"
      "split(s2.i0.1, [4], mask)\n"
      "compute_at(s1, s2.i0.1.0)\n"
      "compute_at(s0, s1.i0)\n"
      "compute_at(s3, s2.i0.0, memory)\n",
      "cpu:avx2,threads=2");
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
}

// Partial sums of a recurrent product, computed inside a loop that was split further than the one
// iteration which is wanted there: they read a state that was not there yet.
TEST(OnceFailed, PartialSumsOfALaterIteration) {
  const CheckResult result = Check(
      "x0: f32[4,1,4] input range(-1,1)\n"
      "x1: f32[4,4] constant\n"
      "s0: f32[4,1,4] = x0[i0, i1, i2] * 0.5\n"
      "s1: f32[4,1,4] scan 0 = sum[r0:4] (select(i0 >= 1, s2[i0 - 1, i1, r0], 0.25) * x1[r0, i2])\n"
      "s2: f32[4,1,4] output scan 0 = tanh(s0[i0, i1, i2] + s1[i0, i1, i2] * 0.0625)\n",
      "s3 = rfactor(s1, s1.r0, 2, outer)\n"
      "compute_at(s1, s2.i0, memory)\n"
      "split(s1.i0, [4], mask)\n"
      "compute_at(s3, s1.i1, memory)\n",
      "cpu:avx2,threads=1");
  EXPECT_EQ(result.agreement, Agreement::kIllegal);
  EXPECT_NE(result.why.find("s3 belongs to a scan; it cannot be computed at a loop of s1"),
            std::string::npos)
      << result.why;
}

}  // namespace
}  // namespace hone::schedule
