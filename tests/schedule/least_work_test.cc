#include "schedule/least_work.h"

#include "gtest/gtest.h"

#include "ir/text.h"

namespace hone::schedule {
namespace {

double Of(const std::string& text) {
  const auto workload = ir::ParseWorkload("workload 1\n" + text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return workload.ok() ? LeastFlop(*workload) : -1;
}

TEST(LeastFlop, CountsMultiplyAddsByWhatMayAvoidThem) {
  constexpr char kProduct[] =
      "x0: {}[8,16] input range(-1,1)\nx1: {}[16,4] constant\n"
      "s0: f32[8,4] output = sum[r0:16] (f32(x0[i0, r0]) * f32(x1[r0, i1]))\n";
  constexpr double kFlop = 2.0 * 8 * 4 * 16;
  const auto product = [&](const std::string& type) {
    std::string text = kProduct;
    for (size_t at; (at = text.find("{}")) != std::string::npos;) text.replace(at, 2, type);
    return Of(text);
  };
  EXPECT_EQ(product("f32"), kFlop);
  EXPECT_EQ(product("f16"), kFlop / 2);
  EXPECT_EQ(product("i8"), kFlop / 4);
  // Winograd may do a 3x3 convolution with a quarter of the multiplications; not a 1x1 one.
  EXPECT_EQ(Of("x0: f32[1,58,58,64] input range(-1,1)\nx1: f32[64,64,3,3] constant\n"
               "s0: f32[1,56,56,64] output = sum[r0:3,r1:3,r2:64] "
               "(x0[i0, i1 + r0, i2 + r1, r2] * x1[i3, r2, r0, r1])\n"),
            2.0 * 56 * 56 * 64 * 9 * 64 / 4);
  EXPECT_EQ(Of("x0: f32[1,56,56,64] input range(-1,1)\nx1: f32[64,64] constant\n"
               "s0: f32[1,56,56,64] output = sum[r0:64] (x0[i0, i1, i2, r0] * x1[i3, r0])\n"),
            2.0 * 56 * 56 * 64 * 64);
  EXPECT_EQ(Of("x0: f32[100] input range(-1,1)\ns0: f32[100] output = exp(x0[i0]) * 2.0\n"), 0);
}

TEST(LeastFlop, LeavesOutWhatACausalMaskHides) {
  const auto attention = [](const std::string& score) {
    return Of("x0: f32[8,4] input range(-1,1)\nx1: f32[8,4] input range(-1,1)\n"
              "x2: f32[8,3] input range(-1,1)\n"
              "s0: f32[8,8] = sum[r0:4] (x0[i0, r0] * x1[i1, r0])\n"
              "s1: f32[8,8] = " + score + "\n"
              "s2: f32[8] = max[r0:8] (s1[i0, r0])\n"
              "s3: f32[8,8] = exp(s1[i0, i1] - s2[i0])\n"
              "s4: f32[8] = sum[r0:8] (s3[i0, r0])\n"
              "s5: f32[8,3] output = sum[r0:8] (s3[i0, r0] * (1.0 / s4[i0]) * x2[r0, i1])\n");
  };
  EXPECT_EQ(attention("s0[i0, i1] * 0.5"), 2.0 * 8 * 8 * (4 + 3));
  // Rows see 1, 2, …, 8 keys.
  EXPECT_EQ(attention("select(i0 >= i1, s0[i0, i1], -inf)"), 2.0 * 36 * (4 + 3));
  EXPECT_EQ(attention("select(i0 + 2 >= i1, s0[i0, i1], -inf)"), 2.0 * 49 * (4 + 3));
}

}  // namespace
}  // namespace hone::schedule
