#include "ir/workload_cost.h"

#include "gtest/gtest.h"

#include "ir/text.h"

namespace hone::ir {
namespace {

WorkloadCost CostOfText(const std::string& text) {
  const auto workload = ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return CostOf(*workload);
}

TEST(WorkloadCostTest, AMultiplyAddIsTwo) {
  const WorkloadCost cost = CostOfText(
      "workload 1\n"
      "x0: f32[8,16] input range(-1,1)\n"
      "x1: f32[16,4] constant\n"
      "s0: f32[8,4] = sum[r0:16] (x0[i0, r0] * x1[r0, i1])\n"
      "s1: f32[8,4] output = max(s0[i0, i1], 0.0)\n");
  EXPECT_EQ(cost.flop(), 2 * 8 * 4 * 16 + 8 * 4);
  EXPECT_EQ(cost.bytes, 4 * (8 * 16 + 16 * 4 + 8 * 4));
}

TEST(WorkloadCostTest, IndicesAndGuardsAreFree) {
  const WorkloadCost cost = CostOfText(
      "workload 1\n"
      "x0: f32[8] input range(-1,1)\n"
      "s0: f32[10] output = select(i0 >= 1 & i0 < 9, exp(x0[i0 - 1]), 0.0)\n");
  EXPECT_EQ(cost.flop(), 10);
  EXPECT_EQ(cost.bytes, 4 * (8 + 10));
}

TEST(WorkloadCostTest, OfAGatheredTableOnlyTheRowsThatAreRead) {
  const WorkloadCost cost = CostOfText(
      "workload 1\n"
      "x0: f32[1000,8] constant\n"
      "x1: i64[5] input range(0,999)\n"
      "s0: f32[5,8] output = x0[x1[i0], i1]\n");
  EXPECT_EQ(cost.bytes, 4 * 5 * 8 + 8 * 5 + 4 * 5 * 8);
}

TEST(WorkloadCostTest, EachProductIsOfTheUnitThatIsBestAtIt) {
  const auto of = [](const std::string& x, const std::string& w, const std::string& sum) {
    const std::string zero = x == "f32" ? "0.0" : x + "(0)";
    std::string text = "workload 1\nx0: " + x + "[8,16] input range(0,1)\nx1: " + w +
                       "[16,4] constant\ns0: " + sum + "[8,4] = sum[r0:16] (" + sum +
                       "(select(i0 > 0, x0[i0, r0], " + zero + ")) * " + sum + "(x1[r0, i1]))\n" +
                       "s1: f32[8,4] output = f32(s0[i0, i1]) * 0.5\n";
    if (sum == "f32") text.replace(text.find("f32(s0[i0, i1])"), 15, "s0[i0, i1]");
    if (x == "f32") text.replace(text.find("f32(select"), 3, "");
    if (w == "f32") text.replace(text.find("f32(x1"), 3, "");
    return CostOfText(text).operations;
  };
  constexpr double kProduct = 2 * 8 * 4 * 16, kScale = 8 * 4;
  EXPECT_EQ(of("u8", "i8", "i32"), (ByUnit<double>{kScale, kProduct, 0}));
  EXPECT_EQ(of("i8", "i8", "i32"), (ByUnit<double>{kScale, kProduct, 0}));
  EXPECT_EQ(of("bf16", "bf16", "f32"), (ByUnit<double>{kScale, 0, kProduct}));
  // Bytes that are multiplied as f32, and pairs of which one is wide.
  EXPECT_EQ(of("u8", "i8", "f32"), (ByUnit<double>{kScale + kProduct, 0, 0}));
  EXPECT_EQ(of("bf16", "f32", "f32"), (ByUnit<double>{kScale + kProduct, 0, 0}));
}

}  // namespace
}  // namespace hone::ir
