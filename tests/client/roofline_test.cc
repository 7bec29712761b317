#include "client/roofline.h"

#include "gtest/gtest.h"

namespace hone::client {
namespace {

TEST(RooflineTest, BoundIsTheLargerOfArithmeticAndTraffic) {
  const Roofline roofline = {{.flop_per_second = 1e9,
                              .caches = {{2'000, 4e9}, {10'000, 2e9}},
                              .memory_bytes_per_second = 1e9}};
  EXPECT_EQ(roofline.BoundNs({.flop = 100, .bytes = 4}), 100);
  EXPECT_EQ(roofline.BoundNs({.flop = 1, .bytes = 2000}), 500);
  EXPECT_EQ(roofline.BoundNs({.flop = 1, .bytes = 8000}), 4000);
  EXPECT_EQ(roofline.BoundNs({.flop = 1, .bytes = 20'000}), 20'000);
}

TEST(RooflineTest, AFarmsDeviceIsJudgedByItsOwnProbes) {
  ir::Target target;
  std::string why;
  ASSERT_TRUE(ir::ParseTarget("cpu:avx512,threads=2", &target, &why)) << why;
  // A core's arithmetic, the memory of all threads; what a cache may hold (the third, nominally
  // 16 MiB) is bounded by arithmetic.
  const Roofline roofline = ProbedRoofline(1e9, 1e9, target);
  EXPECT_EQ(roofline.BoundNs({.flop = 100, .bytes = 16 << 20}), 50);
  EXPECT_EQ(roofline.BoundNs({.flop = 100, .bytes = 20e6}), 20e6);
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
  ASSERT_EQ(roofline->caches.size(), 2U);
  for (const double rate :
       {roofline->caches[0].bytes_per_second, roofline->caches[1].bytes_per_second,
        roofline->memory_bytes_per_second}) {
    EXPECT_GT(rate, 1e8);
    EXPECT_LT(rate, 1e13);
  }
}

TEST(RooflineTest, ACardThatIsNotHereHasItsNominalRates) {
  std::string why;
  for (const char* text : {"cuda:sm_90a", "cuda:sm_100a"}) {  // no machine has both
    ir::Target target;
    ASSERT_TRUE(ir::ParseTarget(text, &target, &why)) << why;
    if (ir::HostCanRun(target, &why)) continue;
    const auto roofline = FindRoofline(target, SystemMonotonicClock());
    ASSERT_TRUE(roofline.ok()) << roofline.status();
    ASSERT_TRUE(roofline->has_value());
    EXPECT_TRUE((*roofline)->nominal);
    EXPECT_GT((*roofline)->BoundNs({.flop = 0, .bytes = 1e9}), 1e5);
  }
}

}  // namespace
}  // namespace hone::client
