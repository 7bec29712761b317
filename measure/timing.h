#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/core/status.h"
#include "measure/run_job.h"

namespace hone::measure {

/// A run that takes so long hardly gains by the one before.
inline constexpr int64_t kNoWarmupFromNs = 1'000'000;

struct Race {
  std::vector<int64_t> samples_ns;
  bool hopeless = false;
  int64_t runs = 0;      ///< warm-ups too
  int64_t timed_ns = 0;  ///< of all of them
  double part = 1;       ///< TimeReply::part
};

/// Repeats `run` (which returns its own time in ns, without set-up) as the policy says: warm-ups,
/// but where the check's run (`last_ns`) took kNoWarmupFromNs or more and the first one here twice
/// that, it is a sample; one sample, and an end when it is hopeless; samples up to `min_samples`;
/// then more while the median's lower bound (half-width 1.58 IQR / sqrt n, McGill, Tukey, Larsen
/// 1978) is not above the incumbent. A sample is the mean of as many runs as reach `min_sample_ns`.
/// At least one sample.
Race RunRace(const TimingPolicy& policy, int64_t last_ns, const std::function<int64_t()>& run);

/// From the order to the answer.
struct AnswerWait {
  int64_t elapsed_ns = 0;  ///< by the clock of who asked
  /// The part of it in which a thread of the runner, or who asked, was ready and had no CPU.
  int64_t queued_ns = 0;
  /// CPU time of the runner's busiest thread; unset: this machine does not tell.
  std::optional<int64_t> ran_ns;
};

/// Whether the times that a runner says can be at all: all runs fit into what passed from the order
/// to the answer. kDataLoss says what does not fit. Whether they fill it: KindRunner::CheckWait.
Status CheckTimes(const TimeReply& reply, const TimingPolicy& policy, int64_t elapsed_ns);

/// What is said of such times: the answer, and what is wrong with it.
Status BadTimes(StatusCode code, const TimeReply& reply, const std::string& what);

/// The lower bound of the median that RunRace compares; `samples_ns` is not empty.
double MedianLowerBoundNs(std::vector<int64_t> samples_ns);

}  // namespace hone::measure
