#include "measure/timing.h"

#include <algorithm>
#include <cmath>
#include <string>

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

Status BadTimes(StatusCode code, const TimeReply& reply, const std::string& what) {
  return Status(code, "the kernel's process says that " + std::to_string(reply.runs) +
                          " runs took " + std::to_string(reply.timed_ns) + " ns, " + what);
}

Status CheckTimes(const TimeReply& reply, const TimingPolicy& policy, int64_t elapsed_ns) {
  const auto say = [&](const std::string& what) {
    return BadTimes(StatusCode::kDataLoss, reply, what);
  };
  const auto samples = static_cast<int64_t>(reply.samples_ns.size());
  const int64_t most_runs = policy.warmups + kMaxRunsPerSample * policy.max_samples;
  if (samples > std::max<int64_t>(policy.max_samples, 1) || reply.runs < samples ||
      reply.runs > most_runs || reply.timed_ns < 0) {
    return say("which nobody asked for");
  }
  int64_t sum_ns = 0;
  for (const int64_t sample_ns : reply.samples_ns) {
    if (sample_ns < 0 || sample_ns > elapsed_ns) {
      return say("and that one took " + std::to_string(sample_ns) + " ns, within " +
                 std::to_string(elapsed_ns) + " ns");
    }
    sum_ns += sample_ns;
  }
  if (sum_ns > reply.timed_ns || reply.timed_ns > elapsed_ns) {
    return say("in samples of " + std::to_string(sum_ns) + " ns, within " +
               std::to_string(elapsed_ns) + " ns");
  }
  return {};
}

Race RunRace(const TimingPolicy& policy, int64_t last_ns, const std::function<int64_t()>& kernel) {
  Race race;
  const auto run = [&] {
    const int64_t took_ns = kernel();
    ++race.runs;
    race.timed_ns += took_ns;
    return took_ns;
  };
  int64_t guess_ns = last_ns;
  if (policy.warmups > 0) guess_ns = run();
  // The check's run, the first, also had memory mapped, and a cold one takes up to twice as long.
  const bool is_sample =
      policy.warmups > 0 && last_ns >= kNoWarmupFromNs && guess_ns >= 2 * kNoWarmupFromNs;
  for (int i = 1; i < policy.warmups && !is_sample; ++i) guess_ns = run();
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
  if (is_sample) {
    total_ns = guess_ns;
    race.samples_ns.push_back(guess_ns);
  } else {
    take_sample();
  }
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
