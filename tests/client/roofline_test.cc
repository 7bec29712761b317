#include "client/roofline.h"

#include "gtest/gtest.h"

namespace hone::client {
namespace {

TEST(RooflineTest, BoundIsTheLargerOfArithmeticAndTraffic) {
  ir::Target target;
  target.threads = 2;
  target.l2_bytes = 1000;
  target.l3_bytes = 10'000;
  const Roofline roofline = {1e9, 4e9, 2e9, 1e9};
  EXPECT_EQ(roofline.BoundNs({.flop = 100, .bytes = 4}, target), 100);
  EXPECT_EQ(roofline.BoundNs({.flop = 1, .bytes = 2000}, target), 500);
  EXPECT_EQ(roofline.BoundNs({.flop = 1, .bytes = 8000}, target), 4000);
  EXPECT_EQ(roofline.BoundNs({.flop = 1, .bytes = 20'000}, target), 20'000);
}

TEST(RooflineTest, AFarmsDeviceIsJudgedByItsOwnProbes) {
  ir::Target target;
  target.threads = 2;
  target.l2_bytes = 1'000;
  target.l3_bytes = 10'000;
  // A core's arithmetic, the memory of all threads; what a cache may hold is bounded by arithmetic.
  const Roofline roofline = ProbedRoofline(1e9, 1e9, target);
  EXPECT_EQ(roofline.BoundNs({.flop = 100, .bytes = 8000}, target), 50);
  EXPECT_EQ(roofline.BoundNs({.flop = 100, .bytes = 20'000}, target), 20'000);
}

TEST(RooflineTest, MeasuresPlausibleNumbers) {
  ir::Target target;
  std::string why;
  ASSERT_TRUE(ir::ParseTarget("cpu:avx2,threads=1", &target, &why)) << why;
  const auto roofline = MeasureRoofline(target, SystemMonotonicClock());
  ASSERT_TRUE(roofline.ok()) << roofline.status();
  // Any AVX2 machine, sanitizers included.
  EXPECT_GT(roofline->flop_per_second, 1e9);
  EXPECT_LT(roofline->flop_per_second, 1e12);
  for (const double rate : {roofline->l2_bytes_per_second, roofline->l3_bytes_per_second,
                            roofline->memory_bytes_per_second}) {
    EXPECT_GT(rate, 1e8);
    EXPECT_LT(rate, 1e13);
  }
}

}  // namespace
}  // namespace hone::client
