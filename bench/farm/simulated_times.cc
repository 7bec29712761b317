#include "bench/farm/simulated_times.h"

#include "base/core/random.h"

namespace hone::bench {
namespace {

using measure::Outcome;

constexpr int kSamples = 20;  ///< as many as a screening takes at most
constexpr int64_t kAnswersPerGain = 48;
constexpr double kGain = 0.985;  ///< more than a search takes note of
constexpr double kSlowest = 4;
constexpr double kFailures = 0.02;

std::vector<int64_t> SamplesOf(double median_ns, Random& random) {
  std::vector<int64_t> samples;
  for (int i = 0; i < kSamples; ++i) {
    samples.push_back(1 + static_cast<int64_t>(median_ns * (0.99 + 0.02 * random.Uniform())));
  }
  return samples;
}

}  // namespace

double SimulatedTimes::MedianNs(const proto::Job& job, const Hash128& candidate) {
  Random random(candidate.low);
  const double ratio = 1.02 + (kSlowest - 1) * random.Uniform();
  const std::lock_guard lock(mutex_);
  Task& task = tasks_[HashBytes(job.workload + job.target)];
  if (++task.answers % kAnswersPerGain != 0) return task.best_ns * ratio;
  task.best_ns *= kGain;
  return task.best_ns;
}

proto::WorkResult SimulatedTimes::Answer(const proto::Job& job, int64_t run_ns) {
  proto::WorkResult result{.outcome = Outcome::kOk};
  constexpr int64_t kBuildNs = 300'000'000;
  result.build_ns = kBuildNs;
  result.run_ns = run_ns;
  const bool compare = job.kind == proto::JobKind::kCompare;
  for (const std::string& trace : job.traces) {
    const Hash128 candidate = HashBytes(job.workload + job.target + trace);
    Random random(candidate.high);
    if (compare) {
      result.compared.push_back({.samples_ns = SamplesOf(MedianNs(job, candidate), random)});
    } else if (random.Chance(kFailures)) {
      result.outcome = Outcome::kBuildFailed;
      result.message = "simulated: the builder refused it";
    } else {
      result.samples_ns = SamplesOf(MedianNs(job, candidate), random);
    }
  }
  return result;
}

}  // namespace hone::bench
