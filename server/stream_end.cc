#include "server/stream_end.h"

#include <algorithm>
#include <utility>

#include "proto/farm_service.h"

namespace hone::server {

bool StreamEnd::Begin(const absl::Status& status, int64_t now_ns) {
  // With two looks, a second apart, closed within the 10 s that are promised.
  constexpr int64_t kPatienceNs = 5'000'000'000;
  const std::lock_guard lock(mutex_);
  // One that ends well may be read slowly to its end, unless its caller is refused meanwhile.
  if (!status.ok()) cut_at_ns_ = std::min(cut_at_ns_, now_ns + kPatienceNs);
  return !std::exchange(begun_, true);
}

bool StreamEnd::begun() const {
  const std::lock_guard lock(mutex_);
  return begun_;
}

void StreamEnd::Done() {
  const std::lock_guard lock(mutex_);
  context_ = nullptr;
}

void StreamEnd::CutWhenLate(int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (now_ns >= cut_at_ns_ && context_ != nullptr) std::exchange(context_, nullptr)->TryCancel();
}

}  // namespace hone::server
