#include "server/device_meter.h"

#include "gtest/gtest.h"

namespace hone::server {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(DeviceMeter, BusyShareIsThatOfTheLastMinute) {
  DeviceMeter meter;
  EXPECT_LT(meter.BusyShare(0), 0);
  int64_t busy_ns = 0, now_ns = 0;
  for (int i = 0; i < 3000; ++i, now_ns += kSecond / 5) meter.Heartbeat(busy_ns, now_ns);
  EXPECT_DOUBLE_EQ(meter.BusyShare(now_ns), 0);
  for (int i = 0; i < 600; ++i, now_ns += kSecond / 5) {
    meter.Heartbeat(busy_ns += kSecond / 10, now_ns);
  }
  EXPECT_NEAR(meter.BusyShare(now_ns), 0.5, 1e-6) << "idle minutes are forgotten";
  EXPECT_EQ(meter.BusyShare(now_ns + 60 * kSecond), 0) << "nothing is heard of it";
}

TEST(DeviceMeter, AnotherProcessStartsAnew) {
  DeviceMeter meter;
  for (int i = 0; i < 10; ++i) meter.Heartbeat(100 * kSecond + i * kSecond, i * kSecond);
  EXPECT_NEAR(meter.BusyShare(10 * kSecond), 1, 1e-9);
  for (int i = 10; i < 20; ++i) meter.Heartbeat(0, i * kSecond);
  EXPECT_EQ(meter.BusyShare(20 * kSecond), 0);
}

TEST(DeviceMeter, NoiseIsTheTypicalSpread) {
  DeviceMeter meter;
  meter.Result({100, 200}, false);
  EXPECT_LT(meter.noise(), 0) << "two samples say nothing";
  // Quartiles 99 and 101 around 100.
  meter.Result({101, 99, 101, 99, 101, 99, 100, 100}, false);
  EXPECT_NEAR(meter.noise(), 0.01, 0.006);
  for (int i = 0; i < 300; ++i) meter.Result({80, 80, 100, 120, 120}, true);
  EXPECT_NEAR(meter.noise(), 0.2, 0.01);
  EXPECT_EQ(meter.noisy_results(), 300);
}

}  // namespace
}  // namespace hone::server
