#include "server/device_meter.h"

#include <algorithm>

namespace hone::server {
namespace {

constexpr int64_t kWindowNs = 60'000'000'000;
constexpr int64_t kBetweenNs = 2'000'000'000;
/// Without a word for this long the share is that of a device which does nothing.
constexpr int64_t kStaleNs = 20'000'000'000;
constexpr size_t kLeastSamples = 4;
constexpr double kNewWeight = 1.0 / 30;

}  // namespace

void DeviceMeter::Heartbeat(int64_t busy_ns, int64_t now_ns) {
  if (!beats_.empty() && busy_ns < beats_.back().busy_ns) beats_.clear();
  // The newest place moves with every word; a place is kept once it is old enough.
  if (beats_.size() >= 2 && now_ns - beats_[beats_.size() - 2].at_ns < kBetweenNs) {
    beats_.back() = {now_ns, busy_ns};
  } else {
    beats_.push_back({now_ns, busy_ns});
  }
  while (beats_.size() > 2 && now_ns - beats_[1].at_ns >= kWindowNs) beats_.pop_front();
}

double DeviceMeter::BusyShare(int64_t now_ns) const {
  if (beats_.size() < 2) return -1;
  if (now_ns - beats_.back().at_ns > kStaleNs) return 0;
  const int64_t span_ns = beats_.back().at_ns - beats_.front().at_ns;
  if (span_ns <= 0) return -1;
  const auto busy_ns = static_cast<double>(beats_.back().busy_ns - beats_.front().busy_ns);
  return std::clamp(busy_ns / static_cast<double>(span_ns), 0.0, 1.0);
}

void DeviceMeter::Result(const std::vector<int64_t>& samples_ns, bool noisy) {
  if (noisy) ++noisy_results_;
  if (samples_ns.size() < kLeastSamples) return;
  std::vector<int64_t> sorted = samples_ns;
  std::ranges::sort(sorted);
  const size_t n = sorted.size();
  const auto median = static_cast<double>(sorted[n / 2]);
  if (median <= 0) return;
  const double spread = 0.5 * static_cast<double>(sorted[n - 1 - n / 4] - sorted[n / 4]) / median;
  noise_ = noise_ < 0 ? spread : noise_ + kNewWeight * (spread - noise_);
}

}  // namespace hone::server
