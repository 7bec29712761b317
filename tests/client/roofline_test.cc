#include "client/roofline.h"

#include "gtest/gtest.h"

#include "ir/text.h"
#include "proto/probed_rates.h"

namespace hone::client {
namespace {

using measure::DeviceRates;

ir::Target TargetOf(const char* text) {
  ir::Target target;
  std::string why;
  EXPECT_TRUE(ir::ParseTarget(text, &target, &why)) << why;
  return target;
}

TEST(RooflineTest, BoundIsTheLargerOfArithmeticAndTraffic) {
  const DeviceRates rates = {.operations_per_second = {1e9},
                             .caches = {{2'000, 4e9}, {10'000, 2e9}},
                             .memory_bytes_per_second = 1e9};
  EXPECT_EQ(rates.BoundNs({.operations = {100}, .bytes = 4}), 100);
  EXPECT_EQ(rates.BoundNs({.operations = {1}, .bytes = 2000}), 500);
  EXPECT_EQ(rates.BoundNs({.operations = {1}, .bytes = 8000}), 4000);
  EXPECT_EQ(rates.BoundNs({.operations = {1}, .bytes = 20'000}), 20'000);
}

TEST(RooflineTest, ArithmeticIsBoundByItsOwnUnit) {
  const DeviceRates rates = {.operations_per_second = {1e9, 4e9, 0},
                             .memory_bytes_per_second = 1e12};
  EXPECT_EQ(rates.BoundNs({.operations = {100, 800, 0}}), 200) << "units work side by side";
  EXPECT_EQ(rates.BoundNs({.operations = {100, 0, 800}}), 800)
      << "the f32 unit works for one missing";
}

// An older worker tells neither caches nor the rates of narrow numbers.
TEST(RooflineTest, AnOlderWorkersDeviceIsJudgedByWhatItSays) {
  const DeviceRates rates = proto::RatesOf({1e9, 1e9, 0, 1}, TargetOf("cpu:avx512,threads=2"));
  // A core's arithmetic, the memory of all threads; what a cache may hold (the third, nominally
  // 16 MiB) is bounded by arithmetic.
  EXPECT_EQ(rates.BoundNs({.operations = {100}, .bytes = 16 << 20}), 50);
  EXPECT_EQ(rates.BoundNs({.operations = {100}, .bytes = 20e6}), 20e6);
  EXPECT_EQ(rates.BoundNs({.operations = {0, 100}}), 50);
}

TEST(RooflineTest, MeasuresPlausibleNumbers) {
  const ir::Target target = TargetOf("cpu:avx2,threads=1");
  const auto rates = measure::MeasureRates(target, SystemMonotonicClock());
  ASSERT_TRUE(rates.ok()) << rates.status();
  // Any AVX2 machine, sanitizers included.
  for (const size_t unit : {0, 1}) {
    EXPECT_GT(rates->operations_per_second[unit], 1e9);
    EXPECT_LT(rates->operations_per_second[unit], 1e12);
  }
  EXPECT_EQ(rates->operations_per_second[2], 0) << "AVX2 has no products of bf16";
  ASSERT_EQ(rates->caches.size(), 2U);
  for (const double rate : {rates->caches[0].bytes_per_second, rates->caches[1].bytes_per_second,
                            rates->memory_bytes_per_second}) {
    EXPECT_GT(rate, 1e8);
    EXPECT_LT(rate, 1e13);
  }
}

// VNNI multiplies four bytes where f32 has one number; dpbf16 two, at half the rate on some.
TEST(RooflineTest, TheInstructionsOfNarrowNumbersAreProbedWhereTheyAre) {
  const ir::Target best = TargetOf(ir::ResolveNative("cpu:native", 1).c_str());
  const auto rates = measure::MeasureRates(best, SystemMonotonicClock());
  ASSERT_TRUE(rates.ok()) << rates.status();
  const ir::ByUnit<double>& unit = rates->operations_per_second;
  if (best.text.find("+vnni") == std::string::npos) GTEST_SKIP() << "no VNNI here: " << best.text;
  // How fast is the machine's affair, and that of its other programs: some do vdpbf16ps at a
  // quarter of the rate of FMA, and AMX multiplies 32 times as many bytes as FMA numbers. What must
  // hold anywhere is that each was measured, in its unit.
  EXPECT_GT(unit[1], 0.1 * unit[0]);
  EXPECT_LT(unit[1], 200 * unit[0]);
  EXPECT_NE(unit[1], unit[0]);
  if (best.text.find("+bf16") == std::string::npos) GTEST_SKIP() << "no bf16 here: " << best.text;
  EXPECT_GT(unit[2], 0.05 * unit[0]);
  EXPECT_LT(unit[2], 100 * unit[0]);
  EXPECT_NE(unit[2], unit[0]);
}

TEST(RooflineTest, ACardThatIsNotHereHasItsNominalRates) {
  std::string why;
  for (const char* text : {"cuda:sm_90a", "cuda:sm_100a"}) {  // no machine has both
    const ir::Target target = TargetOf(text);
    if (ir::HostCanRun(target, &why)) continue;
    const auto roofline = FindRoofline(target, SystemMonotonicClock());
    ASSERT_TRUE(roofline.ok()) << roofline.status();
    ASSERT_TRUE(roofline->has_value());
    EXPECT_TRUE((*roofline)->nominal);
    EXPECT_GT((*roofline)->BoundNs({.bytes = 1e9}), 1e5);
  }
}

}  // namespace
}  // namespace hone::client
