#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace hone::server {

/// What a device's own reports say about how well it is used and how quietly it measures. All times
/// on one monotonic clock. Not thread-safe.
class DeviceMeter {
 public:
  /// Device time of the worker's process so far, from a heartbeat. A smaller total than before is
  /// another process and starts anew.
  void Heartbeat(int64_t busy_ns, int64_t now_ns);
  /// The samples of one candidate that ran, in the order measured.
  void Result(const std::vector<int64_t>& samples_ns, bool noisy);

  /// Device time over time of about the last minute, 0 to 1; negative: not known yet.
  double BusyShare(int64_t now_ns) const;
  /// Typical spread of a candidate's samples: half of their interquartile range over their median,
  /// as a running mean over about 30 candidates; negative: not known yet.
  double noise() const { return noise_; }
  /// Results measured while other programs loaded the machine.
  int64_t noisy_results() const { return noisy_results_; }

 private:
  struct Beat {
    int64_t at_ns = 0, busy_ns = 0;
  };
  std::deque<Beat> beats_;  ///< at least two seconds apart, of the last minute
  double noise_ = -1;
  int64_t noisy_results_ = 0;
};

}  // namespace hone::server
