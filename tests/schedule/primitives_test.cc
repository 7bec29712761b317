#include <fmt/format.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ir/stmt.h"
#include "ir/text.h"
#include "tests/schedule/nest_check.h"

// Every primitive: what it does to the loop nest, and one Trace it refuses.
namespace hone::schedule {
namespace {

using ::testing::HasSubstr;

constexpr char kMap[] =
    "workload 1\n"
    "x0: f32[6,8] input range(-1,1)\n"
    "s0: f32[6,8] = x0[i0, i1] * 2.0\n"
    "s1: f32[6,8] output = s0[i0, i1] + 1.0\n";

constexpr char kProduct[] =
    "workload 1\n"
    "x0: f32[7,6] input range(-1,1)\n"
    "x1: f32[6,8] constant\n"
    "s0: f32[7,8] output = sum[r0:6] (x0[i0, r0] * x1[r0, i1])\n";

constexpr char kBlur[] =
    "workload 1\n"
    "x0: f32[12] input range(-1,1)\n"
    "s0: f32[12] = x0[i0] * 2.0\n"
    "s1: f32[10] output = s0[i0] + s0[i0 + 1] + s0[i0 + 2]\n";

TEST(Primitive, NoneIsOneLoopAnAxis) {
  EXPECT_EQ(Loops(kProduct, ""),
            "for v0 < 7:\n"
            "  for v1 < 8:\n"
            "    s0[v0 * 8 + v1] = 0.0\n"
            "    for v2 < 6:\n"
            "      s0[v0 * 8 + v1] sum= x0[v0 * 6 + v2] * x1[v1 + v2 * 8]\n");
}

// A reduce loop that is bound: each lane its part, then all of them together.
TEST(Primitive, BindAReduceLoopToLanes) {
  const std::string split = "split(s0.r0, 2)\nreorder(s0.i0, s0.i1, s0.r0.1, s0.r0.0)\n";
  const std::string grid = "bind(s0.i0, block.x)\nbind(s0.i1, thread.y)\n";
  const std::string tile = "s1 = cache_write(s0, register, at=s0.r0.1)\n";
  const std::string lanes = "bind(s0.r0.1, thread.x)\n";
  EXPECT_EQ(Loops(kProduct, split + grid + tile + lanes),
            "block.x v0 < 7:\n"
            "  thread.y v1 < 8:\n"
            "    thread.x v2 < 2:\n"
            "      s0#3[0] = 0.0\n"
            "      for v3 < 3:\n"
            "        s0#3[0] sum= x0[v0 * 6 + v2 + v3 * 2] * x1[v1 + v2 * 8 + v3 * 16]\n"
            "      lanes 2: s0#3[0] sum=\n"
            "      if v2 < 1:\n"
            "        s0[v0 * 8 + v1] = s0#3[0]\n");
  EXPECT_THAT(Loops(kProduct, split + grid + lanes), HasSubstr("a tile in registers must stand"));
  EXPECT_THAT(Loops(kProduct, split + grid + lanes + "s1 = cache_write(s0, memory, at=s0.r0.1)\n"),
              HasSubstr("a tile in registers must stand"));
  EXPECT_THAT(Loops(kProduct,
                    "reorder(s0.i0, s0.r0, s0.i1)\nbind(s0.i0, block.x)\n"
                    "s1 = cache_write(s0, register, at=s0.r0)\nbind(s0.r0, thread.x)\n"
                    "unroll(s0.i1)\n"),
              HasSubstr("s0.r0 has 6 iterations on 6 threads; lanes combine"));
  EXPECT_THAT(Loops(kProduct, split + "reorder(s0.r0.1, s0.r0.0, s0.i1)\nbind(s0.i0, block.x)\n" +
                                  tile + lanes + "vectorize(s0.i1)\n"),
              HasSubstr("s0.i1 is vector inside of s0.r0.1, which lanes share"));
}

TEST(Primitive, SplitExact) {
  EXPECT_EQ(Loops(kMap, "inline(s0)\nsplit(s1.i1, [2,2])"),
            "for v0 < 6:\n"
            "  for v1 < 2:\n"
            "    for v2 < 2:\n"
            "      for v3 < 2:\n"
            "        s1[v0 * 8 + v1 * 4 + v2 * 2 + v3] = x0[v0 * 8 + v1 * 4 + v2 * 2 + v3] * 2.0 + "
            "1.0\n");
  EXPECT_THAT(Loops(kMap, "split(s1.i1, 3)"),
              HasSubstr("s1.i1.0: 3 does not divide 8; use mask or two_sizes"));
  EXPECT_THAT(Loops(kMap, "split(s1.i1, 0)"), HasSubstr("the factor 0 is not positive"));
  EXPECT_THAT(Loops(kMap, "split(s1.i1, 2, round)"), HasSubstr("no tail round"));
  EXPECT_THAT(Loops(kMap, "split(s1.i1, [1048576,1048576,1048576])"),
              HasSubstr("the factors multiply to more"));
  EXPECT_THAT(Loops(kMap, "split(s1.i1, 100000, mask)"),
              HasSubstr("the factors multiply to more than 4112"));
  EXPECT_THAT(Loops(kMap, "split(s1.i1, 2)\nsplit(s1.i1, 2)"),
              HasSubstr("s1.i1 is not a loop of s1 now; its loops are: s1.i0 s1.i1.0"));
  EXPECT_THAT(Loops(kMap, "compute_at(s0, s1.i0)\nsplit(s1.i0, 2)"),
              HasSubstr("s0 is computed at s1.i0"));
}

TEST(Primitive, SplitMask) {
  EXPECT_EQ(Loops(kMap, "inline(s0)\nsplit(s1.i0, 4, mask)\nreorder(s1.i0.1, s1.i1)"),
            "for v0 < 2:\n"
            "  for v1 < 4:\n"
            "    if v0 * 4 + v1 < 6:\n"
            "      for v2 < 8:\n"
            "        s1[v0 * 32 + v1 * 8 + v2] = x0[v0 * 32 + v1 * 8 + v2] * 2.0 + 1.0\n");
}

TEST(Primitive, SplitMaskOfAPartIsNotMetTwice) {
  EXPECT_EQ(Loops(kMap, "inline(s0)\nsplit(s1.i1, 4)\nsplit(s1.i1.1, 3, mask)"),
            "for v0 < 6:\n"
            "  for v1 < 2:\n"
            "    for v2 < 2:\n"
            "      for v3 < 3:\n"
            "        if v1 * 4 + v2 * 3 + v3 < 8 & v2 * 3 + v3 < 4:\n"
            "          s1[v0 * 8 + v1 * 4 + v2 * 3 + v3] = x0[v0 * 8 + v1 * 4 + v2 * 3 + v3] * 2.0 "
            "+ 1.0\n");
}

TEST(Primitive, SplitTwoSizes) {
  EXPECT_EQ(Loops(kProduct, "split(s0.i0, 3, two_sizes)"),
            "for v0 < 3:\n"
            "  for v1 < 8:\n"
            "    s0[v0 * 8 + v1] = 0.0\n"
            "    for v2 < 6:\n"
            "      s0[v0 * 8 + v1] sum= x0[v0 * 6 + v2] * x1[v1 + v2 * 8]\n"
            "for v3 < 2:\n"
            "  for v4 < 2:\n"
            "    for v5 < 8:\n"
            "      s0[v3 * 16 + v4 * 8 + v5 + 24] = 0.0\n"
            "      for v6 < 6:\n"
            "        s0[v3 * 16 + v4 * 8 + v5 + 24] sum= x0[v3 * 12 + v4 * 6 + v6 + 18] * x1[v5 + "
            "v6 * 8]\n");
  EXPECT_THAT(Loops(kProduct, "split(s0.i0, [3,2], two_sizes)"),
              HasSubstr("two_sizes takes one factor"));
  EXPECT_THAT(Loops(kProduct, "split(s0.i0, 2, two_sizes)\nsplit(s0.i0.0, 2, mask)"),
              HasSubstr("the parts of a two_sizes split cannot be split"));
}

TEST(Primitive, Partition) {
  EXPECT_EQ(Loops(kMap, "inline(s0)\npartition(s1.i0, [1,-1])"),
            "for v0 < 8:\n"
            "  s1[v0] = x0[v0] * 2.0 + 1.0\n"
            "for v1 < 4:\n"
            "  for v2 < 8:\n"
            "    s1[v1 * 8 + v2 + 8] = x0[v1 * 8 + v2 + 8] * 2.0 + 1.0\n"
            "for v3 < 8:\n"
            "  s1[v3 + 40] = x0[v3 + 40] * 2.0 + 1.0\n");
  EXPECT_THAT(Loops(kProduct, "partition(s0.r0, [1])"),
              HasSubstr("a reduce loop cannot be partitioned"));
}

TEST(Primitive, Reorder) {
  EXPECT_EQ(Loops(kMap, "inline(s0)\nreorder(s1.i1, s1.i0)"),
            "for v0 < 8:\n"
            "  for v1 < 6:\n"
            "    s1[v0 + v1 * 8] = x0[v0 + v1 * 8] * 2.0 + 1.0\n");
  EXPECT_THAT(Loops(kMap, "reorder(s1.i1, s0.i0)"),
              HasSubstr("the loops belong to different stages"));
  EXPECT_THAT(Loops(kMap, "reorder(s1.i1, s1.i1)"), HasSubstr("s1.i1 stands twice"));
  EXPECT_THAT(Loops(kMap, "split(s1.i0, 4, two_sizes)\nreorder(s1.i0.1, s1.i0.0)"),
              HasSubstr("s1.i0.1 must stay inside s1.i0.0"));
}

TEST(Primitive, Fuse) {
  EXPECT_EQ(Loops(kMap, "inline(s0)\ns1.f0 = fuse(s1.i0, s1.i1)\nsplit(s1.f0, 16)"),
            "for v0 < 3:\n"
            "  for v1 < 16:\n"
            "    s1[v0 * 16 + v1] = x0[v0 * 16 + v1] * 2.0 + 1.0\n");
  EXPECT_THAT(Loops(kProduct, "s0.f0 = fuse(s0.i1, s0.r0)"),
              HasSubstr("a spatial and a reduce loop cannot be fused"));
  EXPECT_THAT(Loops(kMap, "s1.f0 = fuse(s1.i1, s1.i0)"),
              HasSubstr("s1.i0 is not just inside s1.i1"));
  EXPECT_THAT(Loops(kMap, "f0 = fuse(s1.i0, s1.i1)"), HasSubstr("needs a new loop name"));
}

TEST(Primitive, Inline) {
  EXPECT_EQ(Loops(kMap, "inline(s0)"),
            "for v0 < 6:\n"
            "  for v1 < 8:\n"
            "    s1[v0 * 8 + v1] = x0[v0 * 8 + v1] * 2.0 + 1.0\n");
  EXPECT_THAT(Loops(kProduct, "inline(s0)"), HasSubstr("s0 reduces"));
  EXPECT_THAT(Loops(kMap, "inline(s1)"), HasSubstr("s1 is an output"));
  EXPECT_THAT(Loops(kMap, "compute_at(s0, s1.i0)\ninline(s0)"),
              HasSubstr("s0 has a place already"));
}

TEST(Primitive, InlineEndsBeforeBodiesExplode) {
  std::string workload = "workload 1\nx0: f32[2] input range(-1,1)\ns0: f32[2] = x0[i0] * 0.5\n",
              trace = "inline(s0)\n";
  for (int k = 1; k < 40; ++k) {
    workload += fmt::format("s{0}: f32[2]{1} = s{2}[i0] + s{2}[1 - i0]\n", k,
                            k == 39 ? " output" : "", k - 1);
    if (k < 39) trace += fmt::format("inline(s{})\n", k);
  }
  EXPECT_THAT(Loops(workload, trace), HasSubstr("would have more than 65536 operations"));
}

TEST(Primitive, ComputeAt) {
  EXPECT_EQ(Loops(kBlur, "split(s1.i0, 4, mask)\ncompute_at(s0, s1.i0.0)"),
            "for v0 < 3:\n"
            "  for v1 < 6:\n"
            "    if v0 * 4 + v1 < 12:\n"
            "      s0#2[v1] = x0[v0 * 4 + v1] * 2.0\n"
            "  for v2 < 4:\n"
            "    if v0 * 4 + v2 < 10:\n"
            "      s1[v0 * 4 + v2] = s0#2[v2] + s0#2[v2 + 1] + s0#2[v2 + 2]\n");
  EXPECT_THAT(Loops(kMap, "compute_at(s1, s1.i0)"), HasSubstr("s1 would be inside itself"));
  EXPECT_THAT(Loops(kMap, "vectorize(s1.i1)\ncompute_at(s0, s1.i1)"),
              HasSubstr("inside the vector loop s1.i1"));
  EXPECT_THAT(Loops(kMap, "split(s1.i0, 2)\nparallel(s1.i0.1, 2)\ncompute_at(s0, s1.i0.0)"),
              HasSubstr("is parallel but not outermost"));
}

TEST(Primitive, ComputeAtOfAnOutputMustMakeAllOfIt) {
  const std::string both =
      "workload 1\n"
      "x0: f32[8] input range(-1,1)\n"
      "s0: f32[8] output = x0[i0] * 2.0\n";
  EXPECT_EQ(Loops(both + "s1: f32[8] output = s0[7 - i0] + 1.0\n", "compute_at(s0, s1.i0)"),
            "for v0 < 8:\n"
            "  s0[v0 * -1 + 7] = x0[v0 * -1 + 7] * 2.0\n"
            "  s1[v0] = s0[v0 * -1 + 7] + 1.0\n");
  EXPECT_THAT(Loops(both + "s1: f32[4] output = s0[i0] + 1.0\n", "compute_at(s0, s1.i0)"),
              HasSubstr("s0 is needed as a whole, but s1 does not read all of it"));
  EXPECT_THAT(Loops(both + "s1: f32[4] output = s0[i0] + s0[i0 + 4]\n", "compute_at(s0, s1.i0)"),
              HasSubstr("needed as a whole"));
  EXPECT_THAT(
      Loops(both + "s1: f32[8] output = s0[i0] + s0[7 - i0]\n",
            "parallel(s1.i0, 2)\ncompute_at(s0, s1.i0)"),
      HasSubstr("two iterations of the parallel loop of s1 would both write elements of s0"));
  // Regions that begin apart but overlap.
  EXPECT_THAT(
      Loops(both + "s1: f32[8] output = s0[i0] + select(i0 < 7, s0[i0 + 1], 0.0)\n",
            "parallel(s1.i0, 2)\ncompute_at(s0, s1.i0)"),
      HasSubstr("two iterations of the parallel loop of s1 would both write elements of s0"));
  EXPECT_THAT(Loops(both + "s1: f32[8] output = s0[i0] + 1.0\ns2: f32[8] output = s0[i0] + 2.0\n",
                    "compute_at(s0, s2.i0)"),
              HasSubstr("s0 is computed at s2.i0, after s1 reads it"));
}

TEST(Primitive, CacheRead) {
  EXPECT_EQ(Loops(kProduct, "s1 = cache_read(s0, x0, at=s0.i0)"),
            "for v0 < 7:\n"
            "  for v1 < 6:\n"
            "    s1#3[v1] = x0[v0 * 6 + v1]\n"
            "  for v2 < 8:\n"
            "    s0[v0 * 8 + v2] = 0.0\n"
            "    for v3 < 6:\n"
            "      s0[v0 * 8 + v2] sum= s1#3[v3] * x1[v2 + v3 * 8]\n");
  EXPECT_THAT(Loops(kMap, "s2 = cache_read(s1, x0)"), HasSubstr("s1 does not read x0"));
  EXPECT_THAT(Loops(kMap, "s1 = cache_read(s0, x0)"), HasSubstr("the next free one is s2"));
}

TEST(Primitive, CacheWrite) {
  EXPECT_EQ(Loops(kProduct,
                  "split(s0.r0, 3)\nreorder(s0.r0.0, s0.i0, s0.i1, s0.r0.1)\ns1 = cache_write(s0, "
                  "register, at=s0.i0)"),
            "for v0 < 2:\n"
            "  for v1 < 7:\n"
            "    if v0 == 0:\n"
            "      for v2 < 8:\n"
            "        s0#3[v2] = 0.0\n"
            "    if v0 > 0:\n"
            "      for v3 < 8:\n"
            "        s0#3[v3] = s0[v1 * 8 + v3]\n"
            "    for v4 < 8:\n"
            "      for v5 < 3:\n"
            "        s0#3[v4] sum= x0[v0 * 3 + v1 * 6 + v5] * x1[v0 * 24 + v4 + v5 * 8]\n"
            "    for v6 < 8:\n"
            "      s0[v1 * 8 + v6] = s0#3[v6]\n");
  EXPECT_THAT(Loops(kMap, "s2 = cache_write(s0, register, at=s0.i0)"),
              HasSubstr("s0 does not reduce"));
  EXPECT_THAT(Loops(kProduct, "vectorize(s0.i1)\ns1 = cache_write(s0, register, at=s0.i1)"),
              HasSubstr("cannot stand inside the vector loop"));
  EXPECT_THAT(Loops(kProduct, "s1 = cache_write(s0, register, at=s0.i0)\nsplit(s0.i0, 2, mask)"),
              HasSubstr("the tile s1 stands at s0.i0"));
}

// Value and index accumulate in a tile each.
TEST(Primitive, CacheWriteOfATuple) {
  const std::string nest = Loops(
      "workload 1\nx0: f32[9,5] input range(-1,1)\n"
      "s0: f32[5] output, s0.1: i64[5] output = argmax[r0:9] (x0[r0, i0], r0)\n",
      "split(s0.i0, 4, mask)\nsplit(s0.r0, 3)\nreorder(s0.r0.0, s0.i0.0, s0.r0.1, s0.i0.1)\n"
      "s1 = cache_write(s0, register, at=s0.i0.0)\nvectorize(s0.i0.1)");
  EXPECT_THAT(nest, HasSubstr("s0#3[v5], s0.1#4[v5] argmax= "));
}

TEST(Primitive, Pack) {
  EXPECT_EQ(Loops(kProduct, "s1 = pack(s0, x1, [i1/3, i0, i1%3])"),
            "for v0 < 7:\n"
            "  for v1 < 8:\n"
            "    s0[v0 * 8 + v1] = 0.0\n"
            "    for v2 < 6:\n"
            "      s0[v0 * 8 + v1] sum= x0[v0 * 6 + v2] * s1[v2 * 3 + v1 // 3 * 18 + v1 % 3]\n");
  const CheckResult packed = CheckTexts(kProduct, "s1 = pack(s0, x1, [i1/3, i0, i1%3])");
  EXPECT_EQ(ir::ToText(packed.lowered.prologue),
            "workload 1\n"
            "x0: f32[6,8] input range(-1,1)\n"
            "s0: f32[3,6,3] output = select(i0 * 3 + i2 < 8, x0[i1, i0 * 3 + i2], 0.0)\n");
  EXPECT_EQ(packed.lowered.artifact.constants[0].bytes, 0) << "only the prologue reads x1";
  // Both dimensions have an incomplete block.
  const CheckResult twice = CheckTexts(kProduct, "s1 = pack(s0, x1, [i0/4, i1/3, i0%4, i1%3])");
  EXPECT_EQ(twice.agreement, Agreement::kEqual) << twice.why;
  EXPECT_EQ(ir::ToText(twice.lowered.prologue),
            "workload 1\n"
            "x0: f32[6,8] input range(-1,1)\n"
            "s0: f32[2,3,4,3] output = select(i0 * 4 + i2 < 6 & i1 * 3 + i3 < 8, "
            "x0[i0 * 4 + i2, i1 * 3 + i3], 0.0)\n");
  EXPECT_THAT(Loops(kProduct, "s1 = pack(s0, x1, [i1/3, i0])"),
              HasSubstr("i1 must stand once whole"));
  EXPECT_THAT(Loops(kProduct, "s1 = pack(s0, x1, [i1/3, i0, i1%4])"),
              HasSubstr("i1 has two different blocks"));
}

TEST(Primitive, Rfactor) {
  EXPECT_EQ(Loops(kProduct, "s1 = rfactor(s0, s0.r0, 4, inner)"),
            "for v0 < 7:\n"
            "  for v1 < 8:\n"
            "    for v2 < 4:\n"
            "      s1[v0 * 32 + v1 * 4 + v2] = 0.0\n"
            "      for v3 < 2:\n"
            "        if v2 + v3 * 4 < 6:\n"
            "          s1[v0 * 32 + v1 * 4 + v2] sum= x0[v0 * 6 + v2 + v3 * 4] * x1[v1 + v2 * 8 + "
            "v3 * 32]\n"
            "for v4 < 7:\n"
            "  for v5 < 8:\n"
            "    s0[v4 * 8 + v5] = 0.0\n"
            "    for v6 < 4:\n"
            "      s0[v4 * 8 + v5] sum= s1[v4 * 32 + v5 * 4 + v6]\n");
  EXPECT_THAT(Loops(kProduct, "s1 = rfactor(s0, s0.r0, 4, outer)"),
              HasSubstr("if v2 * 2 + v3 < 6"));
  EXPECT_THAT(Loops(kProduct, "s1 = rfactor(s0, s0.r0, 3, outer, first)"),
              HasSubstr("s0[v4 * 8 + v5] sum= s1[v4 * 8 + v5 + v6 * 56]"));
  EXPECT_THAT(Loops(kProduct, "s1 = rfactor(s0, s0.r0, 3, outer, second)"),
              HasSubstr("says first, or nothing"));
  EXPECT_THAT(Loops(kProduct, "s1 = rfactor(s0, s0.i0, 4, inner)"),
              HasSubstr("s0.i0 is not a reduce axis"));
  EXPECT_THAT(
      Loops(kProduct, "s1 = cache_read(s0, x0, at=s0.r0)\ns2 = rfactor(s0, s0.r0, 2, inner)"),
      HasSubstr("must come before"));
}

TEST(Primitive, VectorizeUnrollParallel) {
  EXPECT_EQ(
      Loops(kProduct, "reorder(s0.r0, s0.i1)\nvectorize(s0.i1)\nunroll(s0.r0)\nparallel(s0.i0, 3)"),
      "parallel v0 < 7:\n"
      "  vector v1 < 8:\n"
      "    s0[v0 * 8 + v1] = 0.0\n"
      "  unrolled v2 < 6:\n"
      "    vector v3 < 8:\n"
      "      s0[v0 * 8 + v3] sum= x0[v0 * 6 + v2] * x1[v2 * 8 + v3]\n");
  const CheckResult parallel =
      CheckTexts(kProduct, "parallel(s0.i0, 3)", {.target = "cpu:avx2,threads=2"});
  ASSERT_EQ(parallel.lowered.artifact.phases.size(), 1U);
  EXPECT_EQ(parallel.lowered.artifact.phases[0].parallel_extent, 7);
  EXPECT_EQ(parallel.lowered.artifact.phases[0].threads, 2) << "no more than the target has";
  EXPECT_THAT(Loops(kProduct, "vectorize(s0.i0)\nvectorize(s0.i1)"),
              HasSubstr("s0.i0 is a vector already"));
  EXPECT_THAT(Loops(kProduct, "unroll(s0.i0)\nvectorize(s0.i0)"),
              HasSubstr("s0.i0 is unrolled already"));
  EXPECT_THAT(Loops(kProduct, "parallel(s0.i1, 2)"),
              HasSubstr("s0.i1 is parallel but not outermost"));
  EXPECT_THAT(Loops(kProduct, "parallel(s0.r0, 2)"), HasSubstr("s0.r0 is a reduce loop"));
  EXPECT_THAT(Loops(kProduct, "bind(s0.r0, block.x)"), HasSubstr("can be thread.x alone"));
  EXPECT_THAT(
      Loops(kMap, "s1.f0 = fuse(s1.i0, s1.i1)\nsplit(s1.f0, 128, mask)\nvectorize(s1.f0.1)"),
      HasSubstr("at most 64 lanes"));
}

TEST(Primitive, VectorizeAReduction) {
  EXPECT_EQ(Loops(kProduct, "split(s0.r0, 4, mask)\nvectorize(s0.r0.1)"),
            "for v0 < 7:\n"
            "  for v1 < 8:\n"
            "    s0[v0 * 8 + v1] = 0.0\n"
            "    vector v3 < 4:\n"
            "      if v3 < 6:\n"
            "        s0[v0 * 8 + v1] sum= x0[v0 * 6 + v3] * x1[v1 + v3 * 8]\n"
            "    vector v3 < 4:\n"
            "      if 4 + v3 < 6:\n"
            "        s0[v0 * 8 + v1] sum= x0[v0 * 6 + 4 + v3] * x1[v1 + 32 + v3 * 8]\n");
  const std::string best =
      "workload 1\nx0: f32[4] input range(-1,1)\ns0: f32[], s0.1: i64[] output = argmax[r0:4] "
      "(x0[r0], r0)\n";
  EXPECT_THAT(Loops(best, "vectorize(s0.r0)"),
              HasSubstr("lanes of a tuple reduction cannot be combined"));
}

TEST(Primitive, Align) {
  EXPECT_EQ(Loops(kMap, "align(s0, 1, 3)"),
            "for v0 < 6:\n"
            "  for v1 < 8:\n"
            "    s0[v0 * 11 + v1] = x0[v0 * 8 + v1] * 2.0\n"
            "for v2 < 6:\n"
            "  for v3 < 8:\n"
            "    s1[v2 * 8 + v3] = s0[v2 * 11 + v3] + 1.0\n");
  EXPECT_THAT(Loops(kMap, "align(s1, 1, 3)"), HasSubstr("s1 is an output; its strides are given"));
  EXPECT_THAT(Loops(kProduct, "s1 = pack(s0, x1, [i1, i0])\nalign(s1, 1, 3)"),
              HasSubstr("it is made when packaging, dense"));
}

TEST(Primitive, Bind) {
  EXPECT_EQ(Loops(kMap,
                  "bind(s1.i0, block.x)\nbind(s1.i1, thread.x)\ncompute_at(s0, s1.i1, "
                  "shared)\nbind(s0.i1, thread.x)"),
            "block.x v0 < 6:\n"
            "  thread.x v1 < 8:\n"
            "    s0#2[v1] = x0[v0 * 8 + v1] * 2.0\n"
            "    sync\n"
            "    s1[v0 * 8 + v1] = s0#2[v1] + 1.0\n");
  EXPECT_THAT(Loops(kMap, "bind(s1.i0, thread.z)"), HasSubstr("no thread.z"));
  EXPECT_THAT(Loops(kMap, "bind(s1.i1, block.x)"), HasSubstr("block loops must stand outermost"));
  EXPECT_THAT(Loops(kMap, "bind(s1.i0, thread.x)\nbind(s1.i1, thread.x)"),
              HasSubstr("two loops around each other are thread.x"));
  EXPECT_THAT(
      Loops(kMap, "bind(s1.i0, block.x)\nbind(s1.i1, thread.x)\ncompute_at(s0, s1.i1, shared)"),
      HasSubstr("one of its loops must be bound to thread.x"));
  EXPECT_THAT(Loops(kMap, "compute_at(s0, s1.i0, shared)"),
              HasSubstr("inside the thread loops of a root stage"));
}

TEST(Primitive, Algorithm) {
  const std::string convolution =
      "workload 1\n"
      "x0: f32[1,5,6,2] input range(-1,1)\n"
      "x1: f32[3,2,3,3] constant\n"
      "s0: f32[1,3,4,3] output = sum[r0:3,r1:3,r2:2] (x0[i0, i1 + r0, i2 + r1, r2] * x1[i3, r2, "
      "r0, r1])\n";
  for (const char* m : {"2", "4"}) {
    const CheckResult result = CheckTexts(
        convolution, std::string("s1 = algorithm(s0, winograd, ") + m + ")", {.slack = 2e-5});
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
    EXPECT_EQ(result.lowered.nest.phases.size(), 5U)
        << "input rows and columns, product, output rows and columns; weights in the prologue";
    EXPECT_EQ(result.lowered.prologue.stages.size(), 2U);
  }
  EXPECT_THAT(Loops(convolution, "s1 = algorithm(s0, winograd, 3)"),
              HasSubstr("m is 3; there are 2 and 4"));
  EXPECT_THAT(Loops(convolution, "s1 = algorithm(s0, strassen, 2)"),
              HasSubstr("no algorithm strassen"));
  EXPECT_THAT(Loops(convolution, "s1 = algorithm(s0, winograd, 4294967298)"),
              HasSubstr("m is 4294967298; there are 2 and 4"));
  EXPECT_THAT(Loops(kProduct, "s1 = algorithm(s0, winograd, 2)"),
              HasSubstr("s0 is no 3x3 stride-1 convolution"));
}

// The sums of the groups that each panel keeps are those of all: also of the panel that has no
// column of its own at the end, of a panel that keeps nothing, and of one that keeps all.
TEST(Primitive, AlgorithmPanels) {
  const std::string product =
      "workload 1\nx0: f32[5,70] input range(-1,1)\n"
      "x1: f32[70,40] constant panels(1,16,[0,0,0,9,9,32,32,32],32)\n"
      "s0: f32[5,40] output = sum[r0:70] (x0[i0, r0] * x1[r0, i1])\n";
  const CheckResult result = CheckTexts(product, "s1 = algorithm(s0, panels, 16)");
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
  EXPECT_EQ(result.lowered.nest.phases.size(), 1U) << "what is made of weights is in the prologue";
  EXPECT_EQ(result.lowered.prologue.stages.size(), 8U);
  EXPECT_THAT(Loops(product, "s1 = algorithm(s0, panels, 8)"),
              HasSubstr("the panels of x1 have 16 columns, not 8"));
  EXPECT_THAT(Loops(kProduct, "s1 = algorithm(s0, panels, 16)"),
              HasSubstr("nothing is known of zeros in x1"));
  EXPECT_THAT(Loops("workload 1\nx0: f32[5,70] input range(-1,1)\n"
                    "s0: f32[5] output = sum[r0:70] (x0[i0, r0])\n",
                    "s1 = algorithm(s0, panels, 16)"),
              HasSubstr("s0 is no product by a matrix of weights"));
}

TEST(Primitive, AlgorithmBitmask) {
  const std::string product =
      "workload 1\nx0: f32[3,70] input range(-1,1)\n"
      "x1: f32[70,40] constant panels(1,16,[9,9,32,32,32,32,32,32],12)\n"
      "s0: f32[3,40] output = sum[r0:70] (x0[i0, r0] * x1[r0, i1])\n";
  const CheckResult result = CheckTexts(product, "s1 = algorithm(s0, bitmask, 16)");
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
  EXPECT_EQ(result.lowered.nest.phases.size(), 1U) << "what is made of weights is in the prologue";
  EXPECT_THAT(Loops(product, "s1 = algorithm(s0, bitmask, 8)"),
              HasSubstr("the panels of x1 have 16 columns, not 8"));
}

TEST(Primitive, UnknownOnesAreListed) {
  EXPECT_THAT(
      Loops(kMap, "tile(s1)"),
      HasSubstr("instruction 1 `tile(s1)`: no primitive tile; there are: algorithm inline"));
  EXPECT_THAT(Loops(kMap, "inline(s7)"), HasSubstr("no stage s7 here; there are: s0 s1"));
  EXPECT_THAT(Loops(kMap, "inline(s0, s1)"), HasSubstr("takes 1 arguments, not 2"));
  EXPECT_THAT(Loops(kMap, "inline(s0, at=s1)"), HasSubstr("has no argument called at"));
}

TEST(BindingOfTuples, MustBeAlike) {
  const std::string both =
      "workload 1\nx0: f32[4,3] input range(-1,1)\ns0: f32[4] output, s0.1: i64[4] output = "
      "argmax[r0:3] (x0[i0, r0], r0)\n";
  CheckOptions options;
  options.binding.buffers.resize(3);
  options.binding.buffers[1].strides = {2};
  const CheckResult result = CheckTexts(both, "", options);
  EXPECT_THAT(result.why, HasSubstr("the binding gives its two results different strides"));
  options.binding.buffers[2].strides = {2};
  EXPECT_EQ(CheckTexts(both, "", options).agreement, Agreement::kEqual);
}

}  // namespace
}  // namespace hone::schedule
