#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "base/core/hash128.h"

namespace hone::server {

/// Candidates that ran well, and on which device first. A farm adds one with every good answer:
/// what is kept of it is small. All are forgotten at once when there are kMost. Not thread-safe.
class KnownGood {
 public:
  static constexpr size_t kMost = 1 << 18;

  /// `device`: key of a worker ("name/device").
  void Add(const Hash128& candidate, const std::string& device) {
    if (devices_of_.size() >= kMost) *this = {};
    const auto [at, fresh] = numbers_.try_emplace(device, static_cast<uint32_t>(devices_.size()));
    if (fresh) devices_.push_back(device);
    devices_of_.try_emplace(candidate, at->second);
  }
  /// nullptr: it has not run anywhere that is remembered. Holds until the next Add.
  const std::string* FirstDevice(const Hash128& candidate) const {
    const auto at = devices_of_.find(candidate);
    return at == devices_of_.end() ? nullptr : &devices_[at->second];
  }

 private:
  absl::flat_hash_map<Hash128, uint32_t> devices_of_;  ///< in devices_
  std::map<std::string, uint32_t> numbers_;
  std::vector<std::string> devices_;
};

}  // namespace hone::server
