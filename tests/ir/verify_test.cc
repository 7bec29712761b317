#include "ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ir/index/range_analysis.h"
#include "ir/text.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;

std::string Message(const std::string& body) {
  const absl::StatusOr<Workload> w = ParseWorkload("workload 1\n" + body);
  if (!w.ok()) return "does not parse: " + std::string(w.status().message());
  const absl::Status status = Verify(*w);
  return status.ok() ? "ok" : std::string(status.message());
}

TEST(VerifyTest, AcceptsGuardedAndProvableIndices) {
  const std::string x = "x0: f32[10] input range(-1,1)\n";
  const auto stage = [&x](const std::string& right) {
    return Message(x + "s0: f32[8] output = " + right + "\n");
  };
  EXPECT_EQ(stage("x0[i0 + 2]"), "ok");
  EXPECT_EQ(stage("x0[9 - i0]"), "ok");
  EXPECT_EQ(stage("x0[i0 * 3 % 10]"), "ok");
  EXPECT_EQ(stage("x0[i0 * 5 // 4]"), "ok");
  EXPECT_EQ(stage("x0[min(i0 * 2, 9)]"), "ok");
  EXPECT_EQ(stage("x0[max(i0 - 3, 0)]"), "ok");
  EXPECT_EQ(stage("select(i0 >= 3, x0[i0 - 3], 0.0)"), "ok");
  EXPECT_EQ(stage("select(i0 < 3, 0.0, x0[i0 - 3])"), "ok");
  EXPECT_EQ(stage("select(i0 < 3 | i0 > 5, 0.0, x0[(i0 - 3) * 4])"), "ok");
  EXPECT_EQ(stage("select(not(i0 >= 4), x0[i0 * 3], 0.0)"), "ok");
  EXPECT_EQ(stage("select(i0 * 2 - 5 >= 0 & i0 * 2 - 5 < 10, x0[i0 * 2 - 5], 0.0)"), "ok");
  EXPECT_EQ(stage("select((i0 - 1) % 2 == 0 & (i0 - 1) // 2 >= 0, x0[(i0 - 1) // 2], 0.0)"), "ok");
  EXPECT_EQ(stage("select(i0 == 2, x0[i0 * 4 + 1], 0.0)"), "ok");
  EXPECT_EQ(stage("x0[i64(i32(i0) + 2:i32)]"), "ok");
  EXPECT_EQ(stage("x0[select(i0 > 4, i0 - 4, i0)]"), "ok");
}

TEST(VerifyTest, RefusesIndicesThatMayLeave) {
  const std::string x = "x0: f32[10] input range(-1,1)\n";
  const auto stage = [&x](const std::string& right) {
    return Message(x + "s0: f32[8] output = " + right + "\n");
  };
  EXPECT_EQ(stage("x0[i0 + 3]"),
            "Stage s0: index 0 of x0, i0 + 3, is in [3, 10], but must be in [0, 9]; guard the load "
            "with a select, "
            "or clamp the index");
  EXPECT_THAT(stage("x0[i0 - 1]"), HasSubstr("is in [-1, 6]"));
  EXPECT_THAT(stage("select(i0 >= 2, x0[i0 - 3], 0.0)"), HasSubstr("[-1, 4]"));
  EXPECT_THAT(stage("select(i0 >= 3, 0.0, x0[i0 - 3])"), HasSubstr("[-3, -1]"));
  EXPECT_THAT(stage("select(i0 >= 3 | i0 > 5, x0[i0 - 3], 0.0)"), HasSubstr("guard the load"));
  EXPECT_THAT(stage("select(x0[i0 - 3] > 0.0 & i0 >= 3, 1.0, 0.0)"), HasSubstr("guard the load"))
      << "a condition is computed whole";
  EXPECT_THAT(stage("x0[i64(x0[i0])]"), HasSubstr("[-inf, inf]"));
  EXPECT_THAT(stage("x0[i64(i8(i0 * 100))]"), HasSubstr("guard"));
  EXPECT_THAT(stage("x0[i0 * 3 % 11]"), HasSubstr("[0, 10]"));
}

TEST(VerifyTest, LoadedIndicesHaveTheRangeOfTheirTensor) {
  const auto gather = [](const std::string& indices, const std::string& index) {
    return Message("x0: f32[10] constant\n" + indices + "\ns0: f32[3] output = x0[" + index +
                   "]\n");
  };
  EXPECT_EQ(gather("x1: i64[3] input range(0,10)", "x1[i0]"), "ok");
  EXPECT_THAT(gather("x1: i64[3] input range(0,11)", "x1[i0]"), HasSubstr("[0, 10]"));
  EXPECT_THAT(gather("x1: i64[3] input range(-10,10)", "x1[i0]"), HasSubstr("[-10, 9]"));
  EXPECT_EQ(gather("x1: i64[3] input range(-10,10)", "select(x1[i0] < 0, x1[i0] + 10, x1[i0])"),
            "ok");
  EXPECT_EQ(gather("x1: i32[3] input range(-5,99)", "min(max(i64(x1[i0]), 0), 9)"), "ok");
  EXPECT_EQ(gather("x1: i64[3] immediate {9, 0, 4}", "x1[i0]"), "ok");
  EXPECT_THAT(gather("x1: i64[3] immediate {9, 10, 4}", "x1[i0]"), HasSubstr("[4, 10]"));
  EXPECT_THAT(gather("x1: u8[3] constant", "x1[i0]"), HasSubstr("[0, 255]"));
  EXPECT_EQ(Message("x0: f32[10] constant\nx1: f32[10] input range(-1,1)\n"
                    "s0: f32[], s0.1: i64[] = argmax[r0:10] (x1[r0], r0)\n"
                    "s1: f32[] output = x0[s0.1[]]\n"),
            "ok");
}

TEST(VerifyTest, ScansMayOnlyReadEarlierIterations) {
  const auto scan = [](const std::string& right) {
    return Message("s0: f32[8] output scan 0 = " + right + "\n");
  };
  EXPECT_EQ(scan("select(i0 >= 1, s0[i0 - 1], 0.0)"), "ok");
  EXPECT_EQ(scan("select(i0 >= 3, s0[i0 - 3], 0.0)"), "ok");
  EXPECT_THAT(scan("s0[i0 - 1]"), HasSubstr("guard the load"));
  EXPECT_THAT(scan("s0[i0]"), HasSubstr("comes later in the scan"));
  EXPECT_THAT(scan("select(i0 < 7, s0[i0 + 1], 0.0)"), HasSubstr("only t and t - c"));
  EXPECT_THAT(scan("s0[7 - i0]"), HasSubstr("only t and t - c"));
  EXPECT_THAT(scan("s0[0]"), HasSubstr("only t and t - c"));
  EXPECT_THAT(Message("s0: f32[8] output = select(i0 >= 1, s0[i0 - 1], 0.0)\n"),
              HasSubstr("comes later"));
  EXPECT_THAT(Message("s0: f32[8] scan 0 = s1[i0]\ns1: f32[8] output scan 0 = s0[i0]\n"),
              HasSubstr("at t"));
  EXPECT_THAT(
      Message("s0: f32[8] scan 0 = 1.0\ns1: f32[8] = s0[i0]\ns2: f32[8] output scan 0 = s1[i0]\n"),
      HasSubstr("apart from the other Stages of its scan"));
  EXPECT_THAT(Message("s0: f32[8] scan 0 = 1.0\ns1: f32[4] output scan 0 = s0[i0]\n"),
              HasSubstr("another number of iterations"));
  EXPECT_THAT(Message("s0: f32[] output scan 0 = 1.0\n"), HasSubstr("no axis t"));
}

TEST(VerifyTest, ShapesCombinersAndValues) {
  EXPECT_THAT(Message("s0: f32[0] output = 1.0\n"), HasSubstr("extent of 0"));
  EXPECT_THAT(Message("x0: f32[2000000,2000000] constant\ns0: f32[] output = x0[0, 0]\n"),
              HasSubstr("2^40"));
  EXPECT_THAT(
      Message("x0: f32[1,1,1,1,1,1,1,1,1] constant\ns0: f32[] output = x0[0,0,0,0,0,0,0,0,0]\n"),
      HasSubstr("at most 8"));
  EXPECT_THAT(Message("s0: f32[4] = 1.0\n"), HasSubstr("no output"));
  EXPECT_THAT(Message("s0: f32[4] output = sum[] (1.0)\n"),
              HasSubstr("combiner sum with 0 reduce axes"));
  EXPECT_THAT(Message("s0: f32[4] output = none[r0:3] (1.0)\n"), HasSubstr("combiner none with 1"));
  EXPECT_THAT(Message("s0: bool[] output = sum[r0:3] (true)\n"), HasSubstr("sum of bool"));
  EXPECT_THAT(Message("s0: f32[] output, s1: f32[] output = argmax[r0:3] (1.0, 2.0)\n"),
              HasSubstr("i64 index"));
  EXPECT_THAT(Message("s0: f32[] output, s1: f32[] output = sum_sumsq[r0:3] (1.0, 2.0)\n"),
              HasSubstr("square"));
  EXPECT_THAT(Message("s0: f32[] output, s1: f32[] output = sum[r0:3] (1.0, 2.0)\n"),
              HasSubstr("2 bodies"));
  EXPECT_THAT(Message("x0: f32[2] input range(1,-1)\ns0: f32[2] output = x0[i0]\n"),
              HasSubstr("empty range"));
  EXPECT_THAT(Message("s0: f32[4] output over [i0:3] = 1.0\n"), HasSubstr("another shape"));
}

TEST(VerifyTest, WorkloadsMadeByHandAreChecked) {
  const absl::StatusOr<Workload> good = ParseWorkload(
      "workload 1\nx0: u8[2] immediate {1, 2}\ns0: f32[2] = f32(x0[i0])\ns1: f32[2] output = "
      "s0[i0]\n");
  ASSERT_TRUE(good.ok() && Verify(*good).ok());
  const auto message = [&good](auto change) {
    Workload w = *good;
    change(&w);
    return std::string(Verify(w).message());
  };
  EXPECT_THAT(message([](Workload* w) { w->tensors[0].immediate[0] = 256; }),
              HasSubstr("u8 cannot hold"));
  EXPECT_THAT(message([](Workload* w) { w->tensors[0].immediate.pop_back(); }),
              HasSubstr("1 values for 2"));
  EXPECT_THAT(message([](Workload* w) { w->tensors[0].output = true; }),
              HasSubstr("no Stage makes it"));
  EXPECT_THAT(message([](Workload* w) { std::swap(w->stages[0], w->stages[1]); }),
              HasSubstr("comes later"));
  EXPECT_THAT(message([](Workload* w) { w->stages[1].results = {1}; }),
              HasSubstr("which another Stage makes"));
  EXPECT_THAT(message([](Workload* w) { w->stages[1].results = {9}; }),
              HasSubstr("does not exist"));
  EXPECT_THAT(message([](Workload* w) { w->stages[1].body[0] = Load(7, DType::kF32, {Var(0)}); }),
              HasSubstr("does not exist"));
  EXPECT_THAT(message([](Workload* w) { w->stages[1].body[0] = Load(1, DType::kF32, {Var(3)}); }),
              HasSubstr("must be in"));
  EXPECT_THAT(message([](Workload* w) { w->stages[1].body[0] = Cast(DType::kF32, Var(3)); }),
              HasSubstr("axis 3"));
  EXPECT_THAT(message([](Workload* w) { w->stages[1].body[0] = Load(1, DType::kF32, {}); }),
              HasSubstr("number of indices"));
  EXPECT_THAT(message([](Workload* w) { w->stages.pop_back(); }), HasSubstr("made by no Stage"));
}

TEST(VerifyTest, StoreMapsAreInjectiveAndOnUnreadOutputs) {
  const auto map = [](const std::string& store) {
    return Message("s0: f32[2,6] output over [i0:4,i1:3] at " + store + " = 1.0\n");
  };
  EXPECT_EQ(map("[i0 % 2, i1 * 2 + i0 // 2]"), "ok");
  EXPECT_THAT(map("[i0 // 2, i1 * 2]"), HasSubstr("two points are stored at element"));
  EXPECT_THAT(map("[i0, i1]"), HasSubstr("index 0 of s0, i0, is in [0, 3]"));
  EXPECT_THAT(map("[i1]"), HasSubstr("rank 2"));
  EXPECT_THAT(Message("s0: f32[3,2] over [i0:2,i1:3] at [i1, i0] = 1.0\ns1: f32[] output = 1.0\n"),
              HasSubstr("is no output"));
  EXPECT_THAT(
      Message(
          "s0: f32[3,2] output over [i0:2,i1:3] at [i1, i0] = 1.0\ns1: f32[] output = s0[0, 0]\n"),
      HasSubstr("has a store map"));
}

TEST(RangeAnalysisTest, BoundsOfIndexArithmetic) {
  RangeAnalysis ranges({{0, 7}, {0, 2}}, nullptr);
  const Expr i = Var(0), r = Var(1);
  EXPECT_EQ(ranges.Of(i * 2 + r - 1), (Interval{-1, 15}));
  EXPECT_EQ(ranges.Of(i - i), (Interval{0, 0})) << "linear forms cancel";
  EXPECT_EQ(ranges.Of(FloorDiv(i * 2 - 3, 4)), (Interval{-1, 2}));
  EXPECT_EQ(ranges.Of(FloorMod(i + 8, 8)), (Interval{0, 7}));
  EXPECT_EQ(ranges.Of(FloorMod(i + 9, 16)), (Interval{0, 15})) << "two periods";
  EXPECT_EQ(ranges.Of(i * r), (Interval{0, 14}));
  const size_t mark = ranges.Mark();
  ranges.Assume(Ge(i + r, Int(4)), true);
  EXPECT_EQ(ranges.Of(i + r - 4), (Interval{0, 5}));
  EXPECT_EQ(ranges.Of(i * 2 + r * 2), (Interval{8, 18})) << "multiples of what is known";
  EXPECT_EQ(ranges.Of(Int(0) - i - r), (Interval{-9, -4}));
  ranges.Forget(mark);
  EXPECT_EQ(ranges.Of(i + r - 4), (Interval{-4, 5}));
}

}  // namespace
}  // namespace hone::ir
