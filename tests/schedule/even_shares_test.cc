#include <fmt/format.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "schedule/lower.h"
#include "tests/schedule/nest_check.h"
#include "tests/schedule/random_workload.h"

// What many threads share: the tiles of rows, of two sizes, beside columns; pixels as one axis.
namespace hone::schedule {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kMany[] = "cpu:avx512,threads=64", kFew[] = "cpu:avx512,threads=8";

const std::string kProduct =
    "workload 1\n"
    "x0: f32[5,6] input range(-1,1)\n"
    "x1: f32[6,8] input range(-1,1)\n"
    "s0: f32[5,8] output = sum[r0:6] (x0[i0, r0] * x1[r0, i1])\n";

/// Rows × columns with an epilogue.
std::string Product(int64_t rows, int64_t columns) {
  return fmt::format(
      "workload 1\nx0: f32[{0},9] input range(-1,1)\nx1: f32[9,{1}] constant\n"
      "s0: f32[{0},{1}] = sum[r0:9] (x0[i0, r0] * x1[r0, i1])\n"
      "s1: f32[{0},{1}] output = max(s0[i0, i1], 0.0)\n",
      rows, columns);
}

/// A convolution of size × size pixels: of one tap, or of nine with a border of zeros. Between it
/// and its epilogue a bias is added.
std::string Convolution(int64_t size, int64_t in, int64_t out, bool nine) {
  const std::string taps =
      nine ? fmt::format(
                 "s0: f32[1,{0},{0},{1}] = select(i1 >= 1 & i1 < {2} + 1 & i2 >= 1 & i2 < {2} + 1, "
                 "x0[i0, i1 - 1, i2 - 1, i3], 0.0)\n"
                 "s1: f32[1,{2},{2},{3}] = sum[r0:3,r1:3,r2:{1}] (s0[i0, i1 + r0, i2 + r1, r2] * "
                 "x1[i3, r0, r1, r2])\n",
                 size + 2, in, size, out)
           : fmt::format(
                 "s1: f32[1,{0},{0},{2}] = sum[r0:{1}] (x0[i0, i1, i2, r0] * x1[i3, 0, 0, r0])\n",
                 size, in, out);
  return fmt::format(
      "workload 1\nx0: f32[1,{0},{0},{1}] input range(-1,1)\nx1: f32[{2},{3},{3},{1}] constant\n"
      "x2: f32[{2}] constant\n{4}s2: f32[1,{0},{0},{2}] = s1[i0, i1, i2, i3] + x2[i3]\n"
      "s3: f32[1,{0},{0},{2}] output = max(s2[i0, i1, i2, i3], 0.0)\n",
      size, in, out, nine ? 3 : 1, taps);
}

std::string DefaultText(const std::string& workload, const char* target) {
  const auto trace = DefaultTrace(WorkloadOf(workload), TargetOf(target));
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.ok() ? ToText(*trace) : "";
}

/// The default schedule for many threads, which must equal the interpreter.
std::string CheckedDefault(const std::string& workload) {
  std::string text = DefaultText(workload, kMany);
  const CheckResult result = CheckTexts(workload, text, {.target = kMany, .compile = true});
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n" << text;
  return text;
}

TEST(Siblings, ShareOneParallelLoop) {
  EXPECT_EQ(Loops(kProduct, "split(s0.i0, 3, two_sizes)\nparallel(s0.i0.0, 4)"),
            "parallel v0 < 1:\n"
            "  for v1 < 3:\n"
            "    for v2 < 8:\n"
            "      s0[v1 * 8 + v2] = 0.0\n"
            "      for v3 < 6:\n"
            "        s0[v1 * 8 + v2] sum= x0[v1 * 6 + v3] * x1[v2 + v3 * 8]\n"
            "parallel v4 < 1:\n"
            "  for v5 < 2:\n"
            "    for v6 < 8:\n"
            "      s0[v5 * 8 + v6 + 24] = 0.0\n"
            "      for v7 < 6:\n"
            "        s0[v5 * 8 + v6 + 24] sum= x0[v5 * 6 + v7 + 18] * x1[v6 + v7 * 8]\n");
}

TEST(Siblings, AFusionHasThoseOfItsSlowestLoop) {
  const std::string trace =
      "split(s0.i0, 2, two_sizes)\nsplit(s0.i1, 4)\npartition(s0.i0.0, [1])\n"
      "reorder(s0.i0.0, s0.i1.0, s0.i0.1, s0.i1.1)\ns0.f0 = fuse(s0.i0.0, s0.i1.0)\n";
  const CheckResult result =
      CheckTexts(kProduct, trace + "parallel(s0.f0, 4)", {.target = kMany, .compile = true});
  ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why;
  // 2 + 2 + 1 rows, each with two blocks of columns.
  EXPECT_EQ(result.lowered.nest.phases[0].parallel_extent, 6);
  EXPECT_THAT(ir::ToText(result.lowered.nest), HasSubstr("parallel v8 < 2:"));
  EXPECT_THAT(Loops(kProduct, trace + "split(s0.f0, 2)"),
              HasSubstr("the parts of a two_sizes split cannot be split"));
  EXPECT_THAT(Loops(kProduct, trace + "partition(s0.f0, [1])"),
              HasSubstr("s0.f0 has siblings already"));
  EXPECT_THAT(Loops(kProduct, trace + "unroll(s0.f0)"),
              HasSubstr("s0.f0 has siblings; such a fusion can only be parallel"));
  EXPECT_THAT(Loops(kProduct, trace + "prefetch(s0.f0, x0, 1)"),
              HasSubstr("s0.f0 is a fusion with siblings"));
  EXPECT_THAT(Loops(kProduct, trace + "reorder(s0.i0.1, s0.f0)"),
              HasSubstr("s0.i0.1 must stay inside s0.i0.0"));
  EXPECT_THAT(Loops(kProduct, trace + "s0.f1 = fuse(s0.f0, s0.i0.1)"),
              HasSubstr("the inner loop of a two_sizes split cannot be fused"));
}

// Siblings have as many iterations inside as each other.
TEST(Siblings, OfTwoSizesAreNotFusedWithTheirSizes) {
  EXPECT_THAT(Loops(kProduct,
                    "split(s0.i0, 3, two_sizes)\nsplit(s0.i0.1, 1)\n"
                    "reorder(s0.i0.0, s0.i0.1.0, s0.i0.1.1, s0.i1)\n"
                    "s0.f0 = fuse(s0.i0.0, s0.i0.1.0)"),
              HasSubstr("s0.i0.1.0 is a part of the sizes that s0.i0.0 has siblings for"));
}

TEST(Siblings, OnlyTheOuterLoopOfAFusionHasThem) {
  EXPECT_THAT(Loops(kProduct,
                    "split(s0.i0, 3, two_sizes)\nreorder(s0.i1, s0.i0.0, s0.i0.1)\n"
                    "s0.f0 = fuse(s0.i1, s0.i0.0)"),
              HasSubstr("s0.i0.0 has siblings; only the outer loop may"));
  EXPECT_THAT(Loops(kProduct, "partition(s0.i1, [1])\ns0.f0 = fuse(s0.i0, s0.i1)"),
              HasSubstr("s0.i1 has siblings; only the outer loop may"));
}

// What a neighbour's part would overwrite is compared within one loop alone.
TEST(Siblings, DoNotMakeWhatIsNeededAsAWhole) {
  const std::string both =
      "workload 1\nx0: f32[5,8] input range(-1,1)\n"
      "s0: f32[5,8] output = x0[i0, i1] * 2.0\ns1: f32[5,8] output = s0[i0, i1] + 1.0\n";
  EXPECT_EQ(CheckTexts(both, "compute_at(s0, s1.i0, memory)\nparallel(s1.i0, 4)").agreement,
            Agreement::kEqual);
  EXPECT_THAT(Loops(both,
                    "split(s1.i0, 3, two_sizes)\ncompute_at(s0, s1.i0.0, memory)\n"
                    "parallel(s1.i0.0, 4)"),
              HasSubstr("s0 is needed as a whole, but the parallel loop of s1 has siblings"));
}

TEST(EvenShares, TilesOfAPrimeNumberOfRowsBesideColumns) {
  for (const std::string& workload : {Product(197, 1536), Product(53, 512)}) {
    const std::string text = DefaultText(workload, kMany);
    EXPECT_THAT(text, HasSubstr("two_sizes"));
    EXPECT_THAT(text, HasSubstr("s1.f0 = fuse(s1.i0.0, s1.i1.0)\nparallel(s1.f0, 64)"));
    EXPECT_THAT(DefaultText(workload, kFew), Not(HasSubstr("fuse(s1.i0.0")));
  }
  CheckedDefault(Product(53, 512));
}

TEST(EvenShares, TilesWithABorderStandApartAndAreShared) {
  const std::string text = CheckedDefault(Convolution(13, 8, 192, true));
  EXPECT_THAT(text, HasSubstr("partition(s3.i2.0, [1,-1])"));
  EXPECT_THAT(text, HasSubstr("= fuse(s3.i2.0, "));
  EXPECT_THAT(DefaultText(Convolution(13, 8, 192, true), kFew), Not(HasSubstr("fuse(s3.i2.0")));
}

TEST(EvenShares, PixelsOfOneTapAreOneAxis) {
  for (const int64_t size : {7, 13}) {
    const std::string text = CheckedDefault(Convolution(size, 20, 64, false));
    EXPECT_THAT(text, HasSubstr("flatten(s3, [i1,i2])\nflatten(s2, [i1,i2])\n"
                                "flatten(s1, [i1,i2])\n"));
    EXPECT_THAT(text, HasSubstr("fuse(s3.i1.0, "));
    // Where a pixel lies is not computed from its row and column.
    const auto lowered = LowerTrace(WorkloadOf(Convolution(size, 20, 64, false)), TraceOf(text),
                                    TargetOf(kMany), {}, "k");
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_THAT(ir::ToText(lowered->nest), Not(HasSubstr(fmt::format("% {}", size))));
  }
  EXPECT_THAT(DefaultText(Convolution(13, 20, 64, false), kFew), Not(HasSubstr("flatten")));
}

// Threads share the columns of a recurrence, whose steps follow each other.
TEST(EvenShares, ARecurrenceGivesEachThreadColumns) {
  const std::string text = CheckedDefault(
      "workload 1\nx0: f32[3,1,2048] input range(-1,1)\nx1: f32[2048,64] constant\n"
      "s0: f32[3,1,2048] scan 0 = sum[r0:64] (select(i0 >= 1, s1[i0 - 1, i1, r0], 0.0) * "
      "x1[i2, r0])\ns1: f32[3,1,2048] output scan 0 = tanh(x0[i0, i1, i2] + s0[i0, i1, i2])\n");
  EXPECT_THAT(text, HasSubstr("split(s1.i2, [2,16])"));
}

TEST(EvenShares, OfRandomWorkloadsEqualTheInterpreter) {
  constexpr int kWorkloads = 120;
  Random seeds(77);
  for (int k = 0; k < kWorkloads; ++k) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    const RandomWorkload made = MakeWorkload(random);
    const ir::Workload workload = WorkloadOf(made.text);
    CheckOptions options{.target = k % 2 == 0 ? "cpu:avx2,threads=64" : "cpu:avx512,threads=16",
                         .compile = true,
                         .seed = seed};
    const auto trace = DefaultTrace(workload, TargetOf(options.target));
    ASSERT_TRUE(trace.ok()) << trace.status() << "\n" << made.text;
    const CheckResult result = CheckTrace(workload, *trace, options);
    ASSERT_EQ(result.agreement, Agreement::kEqual) << "seed " << seed << ": " << result.why << "\n"
                                                   << made.text << "\n"
                                                   << ToText(*trace);
  }
}

}  // namespace
}  // namespace hone::schedule
