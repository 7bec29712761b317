#include "bench/farm/latencies.h"

#include <algorithm>

namespace hone::bench {

Latencies::Summary Latencies::Since(size_t from) const {
  std::vector<int64_t> ns;
  {
    const std::lock_guard lock(mutex_);
    if (from < all_ns_.size()) {
      ns.assign(all_ns_.begin() + static_cast<std::ptrdiff_t>(from), all_ns_.end());
    }
  }
  if (ns.empty()) return {};
  std::ranges::sort(ns);
  const auto at = [&](double share) {
    const auto place = static_cast<size_t>(share * static_cast<double>(ns.size()));
    return 1e-6 * static_cast<double>(ns[std::min(place, ns.size() - 1)]);
  };
  return {static_cast<int64_t>(ns.size()), at(0.5), at(0.99), at(1)};
}

}  // namespace hone::bench
