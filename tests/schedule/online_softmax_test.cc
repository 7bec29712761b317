#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "schedule/schedule.h"
#include "tests/schedule/nest_check.h"

// Attention by blocks of keys: the Stages it makes, that it gives what the plain form gives, and
// what is not taken for attention.
namespace hone::schedule {
namespace {

using ::testing::HasSubstr;

/// Ten keys, five rows of two heads; `score` is what the softmax is of, `weight` what multiplies
/// the values and `result` the Stage after them ("" for none).
std::string Attention(const std::string& score, const std::string& weight,
                      const std::string& result) {
  std::string text =
      "workload 1\n"
      "x0: f32[2,5,3] input range(-1,1)\n"
      "x1: f32[2,10,3] input range(-1,1)\n"
      "x2: f32[2,10,8] input range(-1,1)\n"
      "s0: f32[2,5,10] = sum[r0:3] (x0[i0, i1, r0] * x1[i0, i2, r0])\n";
  text += fmt::format("s1: f32[2,5,10] = {}\n", score);
  text +=
      "s2: f32[2,5] = max[r0:10] (s1[i0, i1, r0])\n"
      "s3: f32[2,5,10] = exp(s1[i0, i1, i2] - s2[i0, i1])\n"
      "s4: f32[2,5] = sum[r0:10] (s3[i0, i1, r0])\n";
  text += fmt::format("s5: f32[2,5,8]{} = sum[r0:10] ({} * x2[i0, r0, i2])\n",
                      result.empty() ? " output" : "", weight);
  if (!result.empty()) text += fmt::format("s6: f32[5,2,8] output = {}\n", result);
  return text;
}

constexpr char kScaled[] = "s0[i0, i1, i2] * 0.5";
constexpr char kDivided[] = "s3[i0, i1, r0] * (1.0 / s4[i0, i1])";

CheckResult Check(const std::string& workload, const std::string& trace) {
  return CheckTexts(workload, trace,
                    {.target = "cpu:avx2,threads=2", .compile = true, .slack = 2e-5});
}

TEST(OnlineSoftmax, MakesTheStagesItDocuments) {
  const auto schedule = Replay(WorkloadOf(Attention(kScaled, kDivided, "")),
                               TraceOf("s6 = algorithm(s5, online_softmax, 5)"));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const ir::Workload& w = schedule->workload;
  ASSERT_EQ(w.stages.size(), 18U);
  const std::vector<int64_t> row = {2, 2, 5}, keys = {2, 2, 5, 5}, out = {2, 2, 5, 8};
  const std::vector<std::vector<int64_t>> shapes = {keys, keys, row, row, row, keys,
                                                    row,  row,  row, row, out, out};
  for (size_t k = 0; k < shapes.size(); ++k) {
    const ir::Stage& stage = w.stages[6 + k];
    EXPECT_EQ(stage.name, fmt::format("s{}", 6 + k));
    EXPECT_EQ(stage.spatial, shapes[k]) << stage.name;
    EXPECT_EQ(stage.scan, k < 3 ? -1 : 0) << stage.name;
  }
  EXPECT_EQ(w.stages[5].combiner, ir::Combiner::kNone) << "s5 reads what the last block leaves";
  EXPECT_EQ(schedule->next_name, 18);
}

TEST(OnlineSoftmax, EveryBlockSizeGivesThePlainResult) {
  for (int block : {1, 2, 3, 4, 5, 7, 9, 10}) {
    SCOPED_TRACE(block);
    const CheckResult result = Check(Attention(kScaled, kDivided, ""),
                                     fmt::format("s6 = algorithm(s5, online_softmax, {})", block));
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
  }
}

TEST(OnlineSoftmax, TakesEveryFormOfTheDivision) {
  const std::string trace = "s7 = algorithm(s5, online_softmax, 4)";
  for (const char* weight :
       {kDivided, "(1.0 / s4[i0, i1]) * s3[i0, i1, r0]", "s3[i0, i1, r0] / s4[i0, i1]"}) {
    SCOPED_TRACE(weight);
    const CheckResult result = Check(Attention(kScaled, weight, "s5[i1, i0, i2] + 1.0"), trace);
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
  }
  for (const char* after :
       {"s5[i1, i0, i2] / s4[i1, i0]", "s5[i1, i0, i2] * (1.0 / s4[i1, i0]) + 2.0"}) {
    SCOPED_TRACE(after);
    const CheckResult result = Check(Attention(kScaled, "s3[i0, i1, r0]", after), trace);
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
  }
}

TEST(OnlineSoftmax, MaskedRowsGiveWhatThePlainFormGives) {
  // The first block masked, causal, a row masked whole (NaN), one masked by so much that it
  // overflows.
  for (const char* score :
       {"select(i2 >= 4, s0[i0, i1, i2], -inf)", "select(i2 <= i1, s0[i0, i1, i2], -inf)",
        "select(i1 == 2, -inf, s0[i0, i1, i2])",
        "s0[i0, i1, i2] + select(i1 == 3 & i2 < 9, -3.4e38, 0.0)"}) {
    for (const char* block : {"4", "5"}) {
      SCOPED_TRACE(score);
      const std::string trace = std::string("s6 = algorithm(s5, online_softmax, ") + block + ")";
      const CheckResult result = Check(Attention(score, kDivided, ""), trace);
      EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
    }
  }
}

TEST(OnlineSoftmax, RowsWithoutProbabilitiesMayBeZeros) {
  // Masked whole; NaN, +inf in one of its scores.
  for (const char* score :
       {"select(i1 == 2, -inf, s0[i0, i1, i2])", "select(i1 == 2 & i2 == 7, nan, s0[i0, i1, i2])",
        "select(i1 == 2 & i2 == 1, inf, s0[i0, i1, i2])"}) {
    for (const char* block : {"4", "5"}) {
      SCOPED_TRACE(score);
      const std::string zeroed =
          "select(isnan(s4[i0, i1]), 0.0, s3[i0, i1, r0] * (1.0 / s4[i0, i1]))";
      const std::string trace = std::string("s6 = algorithm(s5, online_softmax, ") + block + ")";
      const CheckResult result = Check(Attention(score, zeroed, ""), trace);
      EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
    }
  }
}

TEST(OnlineSoftmax, InOnePhaseWithAScoreMapInlined) {
  // Rows outside of the blocks; the scale and the mask are computed where the scores are read.
  const CheckResult result = Check(Attention(kScaled, kDivided, ""),
                                   "inline(s1)\n"
                                   "s6 = algorithm(s5, online_softmax, 4)\n"
                                   "split(s16.i2, 2, mask)\n"
                                   "reorder(s16.i1, s16.i2.0, s16.i0, s16.i2.1, s16.i3)\n"
                                   "vectorize(s16.i3)\n"
                                   "parallel(s16.i1, 2)\n"
                                   "compute_at(s15, s16.i0)\n"
                                   "vectorize(s15.i3)\n"
                                   "compute_at(s14, s16.i0)\n"
                                   "compute_at(s13, s16.i0)\n"
                                   "compute_at(s12, s16.i0)\n"
                                   "compute_at(s11, s16.i0)\n"
                                   "compute_at(s10, s16.i0)\n"
                                   "compute_at(s9, s16.i0)\n"
                                   "compute_at(s8, s16.i0)\n"
                                   "compute_at(s7, s16.i0)\n"
                                   "compute_at(s6, s16.i0)\n");
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
  EXPECT_EQ(result.lowered.nest.phases.size(), 2U) << "the scan, then its last state";
}

TEST(OnlineSoftmax, SumsOfTheScanByLanes) {
  for (const char* order : {"inner", "outer"}) {
    const std::string trace = fmt::format(
        "s6 = algorithm(s5, online_softmax, 5)\n"
        "s18 = rfactor(s12, s12.r0, 4, {})\n",
        order);
    const CheckResult result = Check(Attention(kScaled, kDivided, ""), trace);
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
    const auto schedule = Replay(WorkloadOf(Attention(kScaled, kDivided, "")), TraceOf(trace));
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_EQ(schedule->workload.stages.back().scan, 0);
  }
  EXPECT_THAT(Loops(Attention(kScaled, kDivided, ""),
                    "s6 = algorithm(s5, online_softmax, 5)\n"
                    "s18 = rfactor(s12, s12.r0, 4, inner, first)"),
              HasSubstr("the first axis of a stage of a scan is the sequential one"));
}

// What is carried of a large result is in place, where the loops of the scan are inside of one
// phase; by steps, every iteration has its own.
TEST(OnlineSoftmax, OneIterationOverwritesTheOneBefore) {
  const std::string workload =
      "workload 1\n"
      "x0: f32[8,64,2] input range(-1,1)\n"
      "x1: f32[8,64,2] input range(-1,1)\n"
      "x2: f32[8,64,64] input range(-1,1)\n"
      "s0: f32[8,64,64] = sum[r0:2] (x0[i0, i1, r0] * x1[i0, i2, r0])\n"
      "s1: f32[8,64] = max[r0:64] (s0[i0, i1, r0])\n"
      "s2: f32[8,64,64] = exp(s0[i0, i1, i2] - s1[i0, i1])\n"
      "s3: f32[8,64] = sum[r0:64] (s2[i0, i1, r0])\n"
      "s4: f32[8,64,64] output = sum[r0:64] (s2[i0, i1, r0] / s3[i0, i1] * x2[i0, r0, i2])\n";
  const std::string algorithm = "s5 = algorithm(s4, online_softmax, 8)\n";
  std::string inside = algorithm +
                       "split(s15.i2, 5, two_sizes)\n"
                       "reorder(s15.i1, s15.i0, s15.i2.0, s15.i2.1, s15.i3)\n";
  for (int stage = 14; stage >= 5; --stage)
    inside += fmt::format("compute_at(s{}, s15.i0)\n", stage);
  const auto largest = [&](const std::string& trace) {
    const CheckResult result = Check(workload, trace);
    EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
    int64_t bytes = 0;
    for (const auto& b : result.lowered.artifact.workspace) bytes = std::max(bytes, b.bytes);
    return bytes;
  };
  EXPECT_EQ(largest(inside), int64_t{8} * 64 * 64 * 4);
  EXPECT_EQ(largest(algorithm), int64_t{8} * 8 * 64 * 64 * 4);
}

TEST(OnlineSoftmax, IsRefused) {
  const std::string plain = Attention(kScaled, kDivided, "");
  const auto loops = [](const std::string& workload) {
    return Loops(workload, "s7 = algorithm(s5, online_softmax, 5)");
  };
  EXPECT_THAT(Loops(plain, "s6 = algorithm(s5, online_softmax, 0)"),
              HasSubstr("blocks of 0 keys; there are 10 keys"));
  EXPECT_THAT(Loops(plain, "s6 = algorithm(s5, online_softmax, 11)"),
              HasSubstr("blocks of 11 keys; there are 10 keys"));
  EXPECT_THAT(Loops(plain, "s6 = algorithm(s0, online_softmax, 5)"),
              HasSubstr("s0 is no attention: neither factor is the exponential of scores"));
  EXPECT_THAT(Loops(plain, "s6 = algorithm(s4, online_softmax, 5)"),
              HasSubstr("s4 is no attention: it is not a sum of products over one axis"));
  EXPECT_THAT(Loops(plain, "split(s0.i1, 2, mask)\ns6 = algorithm(s5, online_softmax, 5)"),
              HasSubstr("must come before the loops of s0"));
  EXPECT_THAT(Loops(plain, "compute_at(s2, s3.i1)\ns6 = algorithm(s5, online_softmax, 5)"),
              HasSubstr("s5 is no attention: s2 has a place already"));
  EXPECT_THAT(loops(Attention(kScaled, kDivided, "s5[i1, i0, i2] + s0[i1, i0, i2]")),
              HasSubstr("s0 is read by s6 too"));
  EXPECT_THAT(loops(Attention(kScaled, kDivided, "s5[i1, i0, i2] + s4[i1, i0]")),
              HasSubstr("s4 is read by s6 too"));
  EXPECT_THAT(loops(Attention(kScaled, "s3[i0, i1, r0]", "s5[i1, i0, i2] / (s4[i1, i0] + 1.0)")),
              HasSubstr("s6 reads it without dividing by s4"));
  EXPECT_THAT(loops(Attention(kScaled, "s3[i0, i1, r0]", "s5[i1, i0, i2] / s4[i1, 0]")),
              HasSubstr("s6 reads it without dividing by s4"));
  EXPECT_THAT(loops(Attention(kScaled, "s3[i0, i1, r0]", "")),
              HasSubstr("the sum of s3 over the keys is missing"));
  EXPECT_THAT(loops(Attention("s0[i0, i1, 9 - i2]", kDivided, "")),
              HasSubstr("the scores are not made by a sum of products"));
  EXPECT_THAT(loops(Attention("f32(f16(s0[i0, i1, i2]))", "f32(f16(s3[i0, i1, r0]))", "")),
              HasSubstr("neither factor is the exponential of scores"));
  EXPECT_THAT(loops(Attention(kScaled, "s3[i0, i1, r0] * (1.0 / s4[i0, 0])", "")),
              HasSubstr("neither factor is the exponential of scores"));
}

}  // namespace
}  // namespace hone::schedule
