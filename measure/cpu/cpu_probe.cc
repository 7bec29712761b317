#include "measure/cpu/cpu_probe.h"

#include <immintrin.h>

#include <algorithm>
#include <span>

#include "base/status.h"
#include "ir/cpu/cpu_target.h"
#include "measure/cpu/probe_chains.h"
#include "runtime/region.h"

namespace hone::measure {
namespace {

constexpr int64_t kRounds = 5'000;
constexpr int kNoiseSamples = 64;
constexpr int kNoisePieces = 80;  // of kRounds, about a millisecond together

/// Reads all of it once; eight chains hide the latency of the additions.
__attribute__((target("avx2"))) void ReadAll(std::span<const std::byte> data, float* sink) {
  const auto* floats = reinterpret_cast<const float*>(data.data());
  constexpr size_t kStep = 64;
  __m256 sums[8] = {};
  for (size_t i = 0; i + kStep <= data.size() / sizeof(float); i += kStep) {
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; ++k) {
      sums[k] = _mm256_add_ps(sums[k], _mm256_load_ps(floats + i + 8 * k));
    }
  }
  for (size_t k = 1; k < 8; ++k) sums[0] = _mm256_add_ps(sums[0], sums[k]);
  _mm256_storeu_ps(sink, sums[0]);
}

}  // namespace

CpuProbe::CpuProbe(runtime::Crew& crew, const MonotonicClock& clock)
    : crew_(crew), clock_(clock), sinks_(static_cast<size_t>(crew.threads())) {}

template <typename Job>
double CpuProbe::BestNs(int threads, int repeats, const Job& job) {
  double best = 0;
  for (int i = 0; i < repeats; ++i) {
    const int64_t begin = clock_.NowNs();
    crew_.RunOnEach(threads, job);
    const auto ns = static_cast<double>(std::max<int64_t>(clock_.NowNs() - begin, 1));
    best = i == 0 ? ns : std::min(best, ns);
  }
  return best;
}

double CpuProbe::OperationsPerSecond(const ir::CpuTarget& target, ir::ArithmeticUnit unit) {
  ProbeChains* const chains = ProbeChainsOf(target, unit);
  if (chains == nullptr) return 0;
  double operations = 0;
  const double ns =
      BestNs(1, 400, [&](int thread) { operations = chains(kRounds, SinkOf(thread)); });
  return operations / ns * 1e9;
}

absl::StatusOr<double> CpuProbe::BytesPerSecond(int threads, int64_t bytes, int repeats) {
  const size_t piece = static_cast<size_t>(bytes) / 4096 * 4096;
  const size_t all = piece * static_cast<size_t>(threads);
  auto region = runtime::Region::Allocate(all, "a bandwidth probe");
  if (!region.ok()) return ToAbsl(region.status());
  std::fill(region->span().begin(), region->span().end(), std::byte{0});
  const double ns = BestNs(threads, repeats, [&](int thread) {
    ReadAll(region->span().subspan(piece * static_cast<size_t>(thread), piece), SinkOf(thread));
  });
  return static_cast<double>(all) / ns * 1e9;
}

double CpuProbe::Noise() {
  std::vector<double> samples;
  for (int i = 0; i < kNoiseSamples; ++i) {
    samples.push_back(BestNs(1, 1, [&](int thread) {
      for (int k = 0; k < kNoisePieces; ++k) FmaAvx2(kRounds, SinkOf(thread));
    }));
  }
  std::ranges::sort(samples);
  const size_t n = samples.size();
  return 0.5 * (samples[n - 1 - n / 4] - samples[n / 4]) / samples[n / 2];
}

namespace {

constexpr int64_t kBeyondCachesBytes = int64_t{128} << 20;

ir::ByUnit<double> OperationsOf(CpuProbe& probe, const ir::Target& target) {
  ir::ByUnit<double> operations{};
  for (size_t i = 0; i < ir::kNumArithmeticUnits; ++i) {
    operations[i] = target.threads * probe.OperationsPerSecond(target.As<ir::CpuTarget>(),
                                                               static_cast<ir::ArithmeticUnit>(i));
  }
  return operations;
}

class CpuDevice final : public DeviceProbe {
 public:
  absl::StatusOr<DeviceRates> Rates(const ir::Target& target,
                                    const MonotonicClock& clock) const override {
    auto crew = runtime::Crew::Create({.threads = target.threads, .cpus = {}});
    if (!crew.ok()) return ToAbsl(crew.status());
    CpuProbe probe(**crew, clock);
    const auto& cpu = target.As<ir::CpuTarget>();
    const int threads = target.threads;
    DeviceRates rates;
    rates.operations_per_second = OperationsOf(probe, target);
    // Half a level leaves room for what else lives there.
    HONE_ASSIGN_OR_RETURN(const double l2, probe.BytesPerSecond(1, cpu.l2_bytes / 2, 200));
    HONE_ASSIGN_OR_RETURN(const double l3,
                          probe.BytesPerSecond(threads, cpu.l3_bytes / 2 / threads, 20));
    rates.caches = {{cpu.l2_bytes * threads, threads * l2}, {cpu.l3_bytes, l3}};
    HONE_ASSIGN_OR_RETURN(rates.memory_bytes_per_second,
                          probe.BytesPerSecond(threads, kBeyondCachesBytes / threads, 5));
    return rates;
  }

  absl::StatusOr<ir::ByUnit<double>> Operations(const ir::Target& target,
                                                const MonotonicClock& clock) const override {
    auto crew = runtime::Crew::Create({.threads = 1, .cpus = {}});
    if (!crew.ok()) return ToAbsl(crew.status());
    CpuProbe probe(**crew, clock);
    return OperationsOf(probe, target);
  }

  absl::StatusOr<double> Noise(const ir::Target&, const MonotonicClock& clock) const override {
    auto crew = runtime::Crew::Create({.threads = 1, .cpus = {}});
    if (!crew.ok()) return ToAbsl(crew.status());
    return CpuProbe(**crew, clock).Noise();
  }

  int64_t CacheBytes(const ir::Target& target) const override {
    const auto& cpu = target.As<ir::CpuTarget>();
    return std::max(cpu.l2_bytes * target.threads, cpu.l3_bytes);
  }
};

}  // namespace

const DeviceProbe& CpuDeviceProbe() {
  static const CpuDevice probe;
  return probe;
}

}  // namespace hone::measure
