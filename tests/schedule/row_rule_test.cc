#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "schedule/lower.h"
#include "tests/schedule/nest_check.h"

// What the rules for rows and maps decide, and that the code of it is right.
namespace hone::schedule {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const char* const kTargets[] = {"cpu:avx2,threads=2", "cpu:avx512,threads=2"};

std::string Softmax(int rows, int columns) {
  const std::string r = std::to_string(rows), c = std::to_string(columns);
  return "workload 1\nx0: f32[" + r + "," + c + "] input range(-1,1)\n" + "s0: f32[" + r +
         "] = max[r0:" + c + "] (x0[i0, r0])\n" + "s1: f32[" + r + "," + c +
         "] = exp(x0[i0, i1] - s0[i0])\n" + "s2: f32[" + r + "] = sum[r0:" + c +
         "] (s1[i0, r0])\n" + "s3: f32[" + r + "," + c + "] output = s1[i0, i1] * (1.0 / s2[i0])\n";
}

TEST(RowRule, ExpAndSumOfSoftmaxAreOneLoop) {
  for (const char* target : kTargets) {
    for (const int columns : {20, 40, 128, 197, 256}) {
      SCOPED_TRACE(columns);
      const ir::Workload workload = WorkloadOf(Softmax(5, columns));
      const auto trace = DefaultTrace(workload, TargetOf(target));
      ASSERT_TRUE(trace.ok()) << trace.status();
      const CheckResult result = CheckTrace(workload, *trace, {.target = target, .compile = true});
      ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why;
      if (columns < 128) continue;
      // Between exp and the sum of it no loop begins.
      const std::string nest = ir::ToText(result.lowered.nest);
      const size_t exp = nest.find(", exp("), sum = nest.find("sum= s1", exp);
      ASSERT_NE(sum, std::string::npos) << nest;
      EXPECT_THAT(nest.substr(exp, sum - exp), Not(HasSubstr("  for "))) << nest;
    }
  }
}

TEST(RowRule, ShortRowsAreTakenAFewAtATime) {
  for (const char* target : kTargets) {
    EXPECT_THAT(CheckedDefaultText(Softmax(16, 40), target), HasSubstr("split(s3.i0, 8)"));
    EXPECT_THAT(CheckedDefaultText(Softmax(16, 300), target), HasSubstr("split(s3.i0, 4)"));
    EXPECT_THAT(CheckedDefaultText(Softmax(6, 128), target), HasSubstr("split(s3.i0, 2)"));
    // No power of two divides them.
    EXPECT_THAT(CheckedDefaultText(Softmax(49, 40), target), HasSubstr("split(s3.i0, 7)"));
    for (const auto& [rows, columns] : {std::pair(5, 40), std::pair(197, 40), std::pair(16, 1600)})
      EXPECT_THAT(CheckedDefaultText(Softmax(rows, columns), target),
                  Not(HasSubstr("split(s3.i0")));
    // A loop around them is shared by threads, so blocks may be of two sizes.
    EXPECT_THAT(CheckedDefaultText("workload 1\nx0: f32[3,37,40] input range(-1,1)\n"
                                   "s0: f32[3,37] = max[r0:40] (x0[i0, i1, r0])\n"
                                   "s1: f32[3,37,40] output = x0[i0, i1, i2] - s0[i0, i1]\n",
                                   target),
                HasSubstr("split(s1.i1, 8, two_sizes)"));
    // What is long may be a member, and one value a row is left of it.
    EXPECT_THAT(CheckedDefaultText("workload 1\nx0: f32[16,2000] input range(-1,1)\n"
                                   "s0: f32[16] = sum[r0:2000] (x0[i0, r0])\n"
                                   "s1: f32[16] output = s0[i0] * 0.0005\n",
                                   target),
                Not(HasSubstr("split(s1.i0")));
    EXPECT_THAT(CheckedDefaultText("workload 1\nx0: f32[16,2000] input range(-1,1)\n"
                                   "s0: f32[16] = sum[r0:2000] (x0[i0, r0])\n"
                                   "s1: f32[16,40] output = x0[i0, i1] * s0[i0]\n",
                                   target),
                Not(HasSubstr("split(s1.i0")));
    // Sums alone have nothing to wait for.
    EXPECT_THAT(CheckedDefaultText("workload 1\nx0: f32[16,40] input range(-1,1)\n"
                                   "s0: f32[16] output = sum[r0:40] (x0[i0, r0])\n",
                                   target),
                Not(HasSubstr("split(s0.i0")));
  }
}

TEST(RowRule, ABiasBeforeANormalisationMakesItNoProduct) {
  const std::string workload =
      "workload 1\nx0: f32[24,96] input range(-1,1)\nx1: f32[96] constant\n"
      "x2: f32[24,96] input range(-1,1)\n"
      "s0: f32[24,96] = x0[i0, i1] + x1[i1] + x2[i0, i1]\n"
      "s1: f32[24] = sum[r0:96] (s0[i0, r0])\n"
      "s2: f32[24] = sum[r0:96] ((s0[i0, r0] - s1[i0] / 96.0) * (s0[i0, r0] - s1[i0] / 96.0))\n"
      "s3: f32[24,96] output = (s0[i0, i1] - s1[i0] / 96.0) * rsqrt(s2[i0] / 96.0 + 1e-05)\n";
  for (const char* target : kTargets) {
    const std::string trace = CheckedDefaultText(workload, target);
    EXPECT_THAT(trace, Not(HasSubstr("pack("))) << target;
    EXPECT_THAT(trace, HasSubstr("compute_at(s2, ")) << target;
    EXPECT_THAT(trace, HasSubstr("compute_at(s1, ")) << target;
  }
  // A factor that all rows share is one.
  const std::string product = CheckedDefaultText(
      "workload 1\nx0: f32[24,96] input range(-1,1)\nx1: f32[96] input range(-1,1)\n"
      "s0: f32[24] output = sum[r0:96] ((x0[i0, r0] + x1[r0]) * x1[r0])\n",
      "cpu:avx512,threads=2");
  EXPECT_THAT(product, HasSubstr("pack(s0, x0"));
}

TEST(RowRule, EveryThreadHasABlockOfRows) {
  for (const auto& [threads, split] :
       {std::pair("2", "split(s3.i0, 8)"), std::pair("4", "split(s3.i0, 4)"),
        std::pair("8", "split(s3.i0, 2)")}) {
    const auto trace = DefaultTrace(WorkloadOf(Softmax(16, 40)),
                                    TargetOf(std::string("cpu:avx512,threads=") + threads));
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_THAT(ToText(*trace), HasSubstr(split));
  }
  const auto one = DefaultTrace(WorkloadOf(Softmax(16, 40)), TargetOf("cpu:avx512,threads=16"));
  EXPECT_THAT(ToText(*one), Not(HasSubstr("split(s3.i0")));
}

TEST(RowRule, RowsBeyondTheCacheAreFetchedAhead) {
  const ir::Target target = TargetOf("cpu:avx512,threads=1");
  const auto large = DefaultTrace(WorkloadOf(Softmax(1024, 1024)), target);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_THAT(ToText(*large), HasSubstr("prefetch(s1.i1.0, x0, 16)"));
  const auto small = DefaultTrace(WorkloadOf(Softmax(64, 1024)), target);
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_THAT(ToText(*small), Not(HasSubstr("prefetch")));
}

TEST(RowRule, AReductionToOneValueIsCutIntoParallelParts) {
  for (const char* target : kTargets) {
    const std::string trace = CheckedDefaultText(
        "workload 1\nx0: f32[5,32,300] input range(-1,1)\n"
        "s0: f32[] output = max[r0:5,r1:32,r2:300] (x0[r0, r1, r2])\n",
        target);
    EXPECT_THAT(trace, HasSubstr("s1 = rfactor(s0, s0.r1,"));
    EXPECT_THAT(trace, HasSubstr("parallel(s1.i0, 2)"));
    EXPECT_THAT(CheckedDefaultText("workload 1\nx0: f32[1,40001] input range(-1,1)\n"
                                   "s0: f32[1] output = sum[r0:40001] (x0[i0, r0])\n",
                                   target),
                HasSubstr("outer)"));
    // Enough results, or little work: left whole.
    EXPECT_THAT(CheckedDefaultText("workload 1\nx0: f32[64,1000] input range(-1,1)\n"
                                   "s0: f32[64] output = sum[r0:1000] (x0[i0, r0])\n",
                                   target),
                Not(HasSubstr("outer)")));
    EXPECT_THAT(CheckedDefaultText("workload 1\nx0: f32[1000] input range(-1,1)\n"
                                   "s0: f32[] output = sum[r0:1000] (x0[r0])\n",
                                   target),
                Not(HasSubstr("outer)")));
  }
}

// The place of a row's largest, as two reductions: one value a row that both read makes it no
// window, and lanes run along the row, also of a single one.
TEST(RowRule, APlaceInARowIsFoundByVectors) {
  for (const char* target : kTargets) {
    for (const char* rows : {"1", "20"}) {
      const std::string n = rows;
      const std::string trace =
          CheckedDefaultText("workload 1\nx0: f32[" + n + ",517] input range(-1,1)\ns0: f32[" + n +
                             "] = max[r0:517] (x0[i0, r0])\ns1: i32[" + n +
                             "] = min[r0:517] (select(x0[i0, r0] == s0[i0] | isnan(x0[i0, r0]), "
                             "i32(r0), 2147483647:i32))\ns2: i64[" +
                             n + "] output = i64(s1[i0])\n",
                             target);
      EXPECT_THAT(trace, HasSubstr("= rfactor(s0, s0.r0,"));
      EXPECT_THAT(trace, HasSubstr("= rfactor(s1, s1.r0,"));
    }
  }
}

TEST(MapRule, TransposesInBlocks) {
  for (const char* target : kTargets) {
    for (const auto& [rows, columns] :
         {std::pair(32, 48), std::pair(40, 35), std::pair(17, 100), std::pair(9, 9),
          std::pair(64, 3), std::pair(3, 64), std::pair(56, 20)}) {
      const std::string r = std::to_string(rows), c = std::to_string(columns);
      const std::string trace = CheckedDefaultText("workload 1\nx0: f32[2," + r + "," + c +
                                                   "] input range(-1,1)\ns0: f32[2," + c + "," + r +
                                                   "] output = x0[i0, i2, i1]\n",
                                                   target);
      if (rows >= 32 && columns >= 32) {
        EXPECT_THAT(trace, HasSubstr("unroll(s0.i1.1)"));
      }
    }
  }
}

TEST(MapRule, LanesStayWithinAPeriod) {
  for (const char* target : kTargets) {
    EXPECT_THAT(CheckedDefaultText("workload 1\nx0: f32[5,20] input range(-1,1)\n"
                                   "s0: f32[10,60] output = x0[i0 % 5, i1 % 20]\n",
                                   target),
                HasSubstr("split(s0.i1, 20)\nsplit(s0.i1.1, "));
  }
}

// The borders, where lanes do not stand side by side, are parts of their own; where nothing else
// could be parallel, they are not.
TEST(MapRule, ReflectedBordersArePeeled) {
  const auto pad = [](int rows, int columns) {
    const std::string r = std::to_string(rows), c = std::to_string(columns);
    const std::string period = std::to_string(2 * columns - 2);
    return "workload 1\nx0: f32[" + r + "," + c + "] input range(-1,1)\ns0: f32[" + r + "," +
           std::to_string(columns + 6) + "] output = x0[i0, min(min((i1 - 3) % " + period + ", " +
           period + " - (i1 - 3) % " + period + "), " + std::to_string(columns - 1) + ")]\n";
  };
  for (const char* target : kTargets) {
    for (const int columns : {43, 56, 58}) {
      EXPECT_THAT(CheckedDefaultText(pad(8, columns), target),
                  HasSubstr("partition(s0.i1.0, [1,-1])"));
    }
    EXPECT_THAT(CheckedDefaultText(pad(8, 9), target), Not(HasSubstr("partition")));
    EXPECT_THAT(CheckedDefaultText(pad(1, 9000), target), Not(HasSubstr("partition")));
    EXPECT_THAT(CheckedDefaultText(pad(200, 56), target), HasSubstr("parallel("));
  }
}

// What one load does not move along is not what it is read along.
TEST(MapRule, ABroadcastIsNoTranspose) {
  EXPECT_THAT(CheckedDefaultText("workload 1\nx0: f32[64] input range(-1,1)\n"
                                 "x1: f32[64,128] input range(-1,1)\n"
                                 "s0: f32[64,128] output = x0[i0] + x1[i0, i1]\n",
                                 "cpu:avx512,threads=1"),
                  Not(HasSubstr("unroll")));
}

}  // namespace
}  // namespace hone::schedule
