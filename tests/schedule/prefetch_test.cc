#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codegen/codegen.h"
#include "tests/codegen/kernel.h"
#include "tests/schedule/nest_check.h"

// Hints to fetch what later iterations read: where they stand, and what is refused.
namespace hone::schedule {
namespace {

using ::testing::HasSubstr;

constexpr char kProduct[] =
    "workload 1\n"
    "x0: f32[7,6] input range(-1,1)\n"
    "x1: f32[6,40] constant\n"
    "s0: f32[7,40] output = sum[r0:6] (x0[i0, r0] * x1[r0, i1])\n";

TEST(Prefetch, OneHintForEveryLineThatALaterIterationReads) {
  // A row of x1 is 160 bytes: three lines.
  EXPECT_EQ(Loops(kProduct, "reorder(s0.r0, s0.i1)\nprefetch(s0.r0, x1, 2)"),
            "for v0 < 7:\n"
            "  for v1 < 40:\n"
            "    s0[v0 * 40 + v1] = 0.0\n"
            "  for v2 < 6:\n"
            "    prefetch x1[v2 * 40 + 80]\n"
            "    prefetch x1[v2 * 40 + 96]\n"
            "    prefetch x1[v2 * 40 + 112]\n"
            "    for v3 < 40:\n"
            "      s0[v0 * 40 + v3] sum= x0[v0 * 6 + v2] * x1[v2 * 40 + v3]\n");
}

TEST(Prefetch, APartOfTwoSizesCountsInItsOwnSteps) {
  EXPECT_EQ(Loops(kProduct, "split(s0.i0, 4, two_sizes)\nprefetch(s0.i0.0, x0, 1)"),
            "prefetch x0[24]\n"
            "prefetch x0[40]\n"
            "for v0 < 4:\n"
            "  for v1 < 40:\n"
            "    s0[v0 * 40 + v1] = 0.0\n"
            "    for v2 < 6:\n"
            "      s0[v0 * 40 + v1] sum= x0[v0 * 6 + v2] * x1[v1 + v2 * 40]\n"
            "prefetch x0[42]\n"
            "prefetch x0[58]\n"
            "for v3 < 3:\n"
            "  for v4 < 40:\n"
            "    s0[v3 * 40 + v4 + 160] = 0.0\n"
            "    for v5 < 6:\n"
            "      s0[v3 * 40 + v4 + 160] sum= x0[v3 * 6 + v5 + 24] * x1[v4 + v5 * 40]\n");
}

// A panel of 16 columns is 6 lines, which 7 rows read: a tile of rows fetches so much of the next
// one as it has of them, from where those before it end.
TEST(Prefetch, TilesThatReadAPanelFetchEqualSharesOfTheNextOne) {
  const std::string nest = Loops(kProduct,
                                 "s1 = pack(s0, x1, [i1/16, i0, i1%16])\n"
                                 "split(s0.i1, 16, mask)\nsplit(s0.i0, 4, two_sizes)\n"
                                 "reorder(s0.i1.0, s0.i0.0, s0.r0, s0.i0.1, s0.i1.1)\n"
                                 "s2 = cache_write(s0, register, at=s0.i0.0)\n"
                                 "unroll(s0.i0.1)\nvectorize(s0.i1.1)\n"
                                 "prefetch(s0.r0, s1, 6, shared)");
  // 4 of 7 rows: 9.14 of 16 elements a step; 3 of 7, which begin at 4 · 96 / 7: 6.86.
  EXPECT_THAT(nest, HasSubstr("prefetch s1[v0 * 96 + v3 * 9 + 96]"));
  EXPECT_THAT(nest, HasSubstr("prefetch s1[v0 * 96 + v10 * 6 + v10 * 3511 // 4096 + 150]"));
}

TEST(Prefetch, BecomesTheInstruction) {
  const CheckResult result =
      CheckTexts(kProduct,
                 "split(s0.i1, 8)\nreorder(s0.r0, s0.i1.0)\nvectorize(s0.i1.1)\n"
                 "prefetch(s0.r0, x1, 4)\nprefetch(s0.i0, x0, 1)",
                 {.compile = true});
  ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why;
  for (const char* target : {"cpu:avx2,threads=1", "cpu:avx512,threads=1"}) {
    const auto text = codegen::Assembly({&result.lowered.nest}, TargetOf(target));
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(codegen::CountOf(*text, "prefetcht0"), 4U) << *text;
  }
}

TEST(Prefetch, ASharedOneIsRefused) {
  EXPECT_THAT(Loops(kProduct, "prefetch(s0.r0, x1, 6, all)"), HasSubstr("'all' is not 'shared'"));
  EXPECT_THAT(Loops(kProduct, "prefetch(s0.r0, x1, 1048577, shared)"),
              HasSubstr("the distance must lie in 1..1048576"));
  EXPECT_THAT(Loops("workload 1\nx0: f32[9,3] input range(-1,1)\n"
                    "s0: f32[8,3] output = x0[i0, i1] + x0[i0 + 1, i1]\n",
                    "prefetch(s0.i0, x0, 1, shared)"),
              HasSubstr("prefetch at s0.i0: x0 is not read once"));
  EXPECT_THAT(Loops("workload 1\nx0: f32[9,256] input range(-1,1)\n"
                    "s0: f32[9,256] output = x0[8 - i0, i1]\n",
                    "prefetch(s0.i0, x0, 1, shared)"),
              HasSubstr("x0 is not read forwards"));
  EXPECT_THAT(Loops("workload 1\nx0: f32[9,256] input range(-1,1)\n"
                    "s0: f32[9,256] output = x0[i0, i1]\n",
                    "prefetch(s0.i0, x0, 1, shared)"),
              HasSubstr("x0 is too much for so few points"));
}

TEST(Prefetch, IsRefused) {
  EXPECT_THAT(Loops(kProduct, "prefetch(s0.r0, x1, 0)"),
              HasSubstr("the distance must lie in 1..4096"));
  EXPECT_THAT(Loops(kProduct, "prefetch(s0.r0, s0, 1)"), HasSubstr("s0 does not read s0"));
  EXPECT_THAT(Loops(kProduct, "prefetch(s0.r0, x1, 1)\nprefetch(s0.r0, x1, 2)"),
              HasSubstr("x1 is prefetched at s0.r0 already"));
  EXPECT_THAT(Loops(kProduct, "prefetch(s0.r0, x1, 1)\nsplit(s0.r0, 2)"),
              HasSubstr("something is prefetched at s0.r0"));
  EXPECT_THAT(Loops(kProduct, "prefetch(s0.r0, x1, 1)\ns1 = pack(s0, x1, [i1, i0])"),
              HasSubstr("prefetch at s0.r0: s0 reads x1 no more"));
  EXPECT_THAT(Loops(kProduct, "split(s0.i1, 8)\nvectorize(s0.i1.1)\nprefetch(s0.i1.1, x1, 1)"),
              HasSubstr("s0.i1.1 is a vector loop"));
  EXPECT_THAT(Loops(kProduct,
                    "s1 = cache_read(s0, x0, at=s0.i0, storage=register)\n"
                    "prefetch(s0.r0, s1, 1)"),
              HasSubstr("s1 is in no memory there"));
  EXPECT_THAT(Loops("workload 1\nx0: f32[9,9,64] input range(-1,1)\n"
                    "s0: f32[9] output = sum[r0:9,r1:64] (x0[i0, r0, r1])\n",
                    "split(s0.i0, 3)\nprefetch(s0.i0.0, x0, 1)"),
              HasSubstr("one iteration's part of x0 covers more than 64 lines"));
  EXPECT_THAT(Loops("workload 1\nx0: f32[9] input range(-1,1)\nx1: i64[4] input range(0,9)\n"
                    "s0: f32[4] output = x0[x1[i0]]\n",
                    "prefetch(s0.i0, x0, 1)"),
              HasSubstr("where x0 is read depends on values"));
}

}  // namespace
}  // namespace hone::schedule
