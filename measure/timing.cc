#include "measure/timing.h"

#include <algorithm>
#include <cmath>

namespace hone::measure {
namespace {

constexpr int64_t kMaxRunsPerSample = 64;

double Quantile(const std::vector<int64_t>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(below);
  return static_cast<double>(sorted[below]) * (1 - part) +
         static_cast<double>(sorted[above]) * part;
}

}  // namespace

double MedianLowerBoundNs(std::vector<int64_t> samples_ns) {
  std::sort(samples_ns.begin(), samples_ns.end());
  const double spread = Quantile(samples_ns, 0.75) - Quantile(samples_ns, 0.25);
  return Quantile(samples_ns, 0.5) -
         1.58 * spread / std::sqrt(static_cast<double>(samples_ns.size()));
}

Race RunRace(const TimingPolicy& policy, int64_t last_ns, const std::function<int64_t()>& run) {
  Race race;
  int64_t guess_ns = last_ns;
  if (last_ns < kNoWarmupFromNs) {
    for (int i = 0; i < policy.warmups; ++i) guess_ns = run();
  }
  int64_t total_ns = 0;
  int64_t runs_per_sample = 1;
  const auto take_sample = [&] {
    int64_t sum_ns = 0;
    for (int64_t i = 0; i < runs_per_sample; ++i) sum_ns += run();
    total_ns += sum_ns;
    race.samples_ns.push_back(sum_ns / runs_per_sample);
  };
  if (guess_ns < policy.min_sample_ns) {
    runs_per_sample = std::clamp<int64_t>(policy.min_sample_ns / std::max<int64_t>(guess_ns, 1), 1,
                                          kMaxRunsPerSample);
  }
  take_sample();
  if (policy.incumbent_ns > 0 && policy.hopeless_ratio > 0 &&
      static_cast<double>(race.samples_ns[0]) >
          policy.hopeless_ratio * static_cast<double>(policy.incumbent_ns)) {
    race.hopeless = true;
    return race;
  }
  const auto count = [&] { return static_cast<int32_t>(race.samples_ns.size()); };
  while (count() < policy.max_samples && total_ns < policy.max_total_ns) {
    if (count() >= policy.min_samples && policy.incumbent_ns > 0 &&
        MedianLowerBoundNs(race.samples_ns) > static_cast<double>(policy.incumbent_ns)) {
      break;
    }
    take_sample();
  }
  return race;
}

}  // namespace hone::measure
