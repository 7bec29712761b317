#include "measure/cuda/cuda_probe.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/status.h"
#include "ir/cuda/cuda_target.h"
#include "tests/codegen/assemblers.h"
#include "tests/ptx/machine.h"
#include "tests/ptx/program.h"
#include "tests/test_paths.h"

// Probes of a GPU, on the mock driver: one multiprocessor, 32 KiB of L2, every event 0.25 ms after
// the one before.
namespace hone::measure {
namespace {

constexpr int64_t kThreads = 8 * 256;
constexpr double kSeconds = 0.25e-3;

ir::Target Card() {
  HONE_CHECK(dlopen((testing::BuildDir() + "/tests/mock_cuda/libcuda.so.1").c_str(), RTLD_NOW) !=
             nullptr);
  ir::Target target;
  std::string why;
  HONE_CHECK(ir::ParseTarget("cuda:sm_90a", &target, &why)) << why;
  return target;
}

TEST(CudaProbe, RatesAreWhatTheEventsSay) {
  const SystemMonotonicClock clock;
  const auto rates = MeasureRates(Card(), clock);
  ASSERT_TRUE(rates.ok()) << rates.status();
  // 64 multiply-adds a thread; a copy reads and writes at least four times the L2.
  EXPECT_NEAR(rates->operations_per_second[0], 2.0 * 64 * kThreads / kSeconds, 1);
  EXPECT_NEAR(rates->memory_bytes_per_second, 2.0 * (4 << 15) / kSeconds, 1);
  ASSERT_EQ(rates->caches.size(), 1U);
  EXPECT_EQ(rates->caches[0].bytes, 1 << 15);
  const auto probes = ProbeDevice(Card(), clock);
  ASSERT_TRUE(probes.ok()) << probes.status();
  EXPECT_EQ(probes->noise, 0);
}

TEST(CudaProbe, NominalRatesAreThoseOfTheTargetsCard) {
  const auto rates = CudaDeviceProbe().Nominal(Card());
  ASSERT_TRUE(rates.has_value());
  EXPECT_DOUBLE_EQ(rates->memory_bytes_per_second, 3.35e12);
}

TEST(CudaProbe, KernelsDoWhatIsCounted) {
  auto program = ptx::ParsePtx(CudaProbePtx());
  ASSERT_TRUE(program.ok()) << program.status();
  ptx::Device device;
  const int loaded = device.Load(*std::move(program));
  ptx::Launch launch;
  launch.grid[0] = 2;
  launch.block[0] = 32;
  constexpr uint64_t kRounds = 3, kBytes = 64 * 64 * kRounds;
  std::vector<uint8_t> bytes(kBytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  const uint64_t from = device.Add(bytes, true);
  const uint64_t to = device.Add(std::vector<uint8_t>(kBytes), false);
  launch.parameters = {to, from, kRounds, 2};
  ASSERT_TRUE(device.Run(loaded, "probe_copy", launch).ok());
  EXPECT_TRUE(std::ranges::equal(device.Bytes(to), bytes));
  // A chain is x -> 0.999 x + t, four times a round.
  const uint64_t sums = device.Add(std::vector<uint8_t>(64 * 4), false);
  launch.parameters = {sums, kRounds, 0, 0};
  ASSERT_TRUE(device.Run(loaded, "probe_fma", launch).ok());
  for (int t = 0; t < 64; ++t) {
    double expected = 0;
    for (int chain = 0; chain < 16; ++chain) {
      const uint32_t bits = 0x3F800000U + (static_cast<uint32_t>(chain) << 16);
      float start = 0;
      std::memcpy(&start, &bits, 4);
      double x = t + static_cast<double>(start);
      for (uint64_t step = 0; step < 4 * kRounds; ++step) x = 0.999 * x + t;
      expected += x;
    }
    float sum = 0;
    std::memcpy(&sum, device.Bytes(sums).data() + 4 * t, 4);
    EXPECT_NEAR(sum, expected, 1e-4 * (1 + expected)) << t;
  }
}

TEST(CudaProbe, KernelsAssemble) {
  const SystemMonotonicClock clock;
  const auto assemblers = codegen::AssemblersHere(clock);
  if (assemblers.empty()) GTEST_SKIP() << codegen::kNoAssembler;
  for (const auto& assembler : assemblers) {
    for (const char* chip : {"sm_80", "sm_90a", "sm_100a"}) {
      const auto made = assembler->Assemble(CudaProbePtx(), chip);
      ASSERT_TRUE(made.ok()) << made.status();
      for (const codegen::KernelUsage& usage : made->log.kernels)
        EXPECT_EQ(usage.spill_store_bytes, 0) << usage.kernel;
    }
  }
}

}  // namespace
}  // namespace hone::measure
