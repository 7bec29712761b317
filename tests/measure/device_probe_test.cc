#include "measure/device_probe.h"

#include "gtest/gtest.h"

#include "base/core/sanitizer.h"
#include "ir/cpu/cpu_target.h"
#include "measure/cpu/cpu_probe.h"

namespace hone::measure {
namespace {

TEST(DeviceProbe, ThisMachineIsOfThisWorld) {
  ir::Target target;
  std::string why;
  ASSERT_TRUE(ir::ParseTarget(ir::ResolveNative("cpu:native", 1), &target, &why)) << why;
  const SystemMonotonicClock clock;
  const int64_t start_ns = clock.NowNs();
  const auto probes = ProbeDevice(target, clock);
  ASSERT_TRUE(probes.ok()) << probes.status();
  EXPECT_LT(clock.NowNs() - start_ns, kSanitized ? 60'000'000'000 : 5'000'000'000);
  // Two units of that width at 8 GHz are more than any core has; a hundredth of one at 1 GHz less.
  EXPECT_LT(probes->rates.operations_per_second[0],
            2.0 * 2 * target.As<ir::CpuTarget>().lanes * 8e9);
  EXPECT_GT(probes->rates.operations_per_second[0], 2.0 * target.As<ir::CpuTarget>().lanes * 1e7);
  EXPECT_GT(probes->rates.memory_bytes_per_second, 1e8);
  EXPECT_LT(probes->rates.memory_bytes_per_second, 2e12);
  EXPECT_GE(probes->noise, 0);
  EXPECT_LT(probes->noise, 10);
}

/// A clock that tells how long each piece took, whatever it did.
class ScriptedClock final : public MonotonicClock {
 public:
  explicit ScriptedClock(std::vector<int64_t> pieces_ns) : pieces_ns_(std::move(pieces_ns)) {}
  int64_t NowNs() const override {
    // Asked in pairs: before a piece and after it.
    if (asked_++ % 2 == 1) now_ns_ += pieces_ns_[asked_ / 2 % pieces_ns_.size()];
    return now_ns_;
  }
  void SleepNs(int64_t) const override {}

 private:
  const std::vector<int64_t> pieces_ns_;
  mutable size_t asked_ = 0;
  mutable int64_t now_ns_ = 0;
};

TEST(DeviceProbe, NumbersAreWhatTheClockSays) {
  auto crew = runtime::Crew::Create({.threads = 1, .cpus = {}});
  ASSERT_TRUE(crew.ok());
  // The best of the pieces counts: 5,000 rounds of 12 multiply-adds of 8 lanes in 20 us.
  const ScriptedClock clock({30'000, 20'000, 50'000});
  using enum ir::ArithmeticUnit;
  CpuProbe probe(**crew, clock);
  const ir::CpuTarget plain;
  EXPECT_DOUBLE_EQ(probe.OperationsPerSecond(plain, kF32), 5000.0 * 12 * 8 * 2 / 20e-6);
  // Without VNNI bytes are two products a lane.
  EXPECT_DOUBLE_EQ(probe.OperationsPerSecond(plain, kDotI8), 5000.0 * 12 * 8 * 4 / 20e-6);
  EXPECT_EQ(probe.OperationsPerSecond(plain, kDotBF16), 0);
  const auto bytes = CpuProbe(**crew, clock).BytesPerSecond(1, 1 << 20, 3);
  ASSERT_TRUE(bytes.ok());
  EXPECT_DOUBLE_EQ(*bytes, (1 << 20) / 20e-6);
  // Quartiles 1.0 and 1.1 ms, median 1.0 or 1.1.
  const ScriptedClock uneven({1'000'000, 1'100'000});
  EXPECT_NEAR(CpuProbe(**crew, uneven).Noise(), 0.05, 0.005);
  const ScriptedClock even({1'000'000});
  EXPECT_EQ(CpuProbe(**crew, even).Noise(), 0);
}

}  // namespace
}  // namespace hone::measure
