#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/core/hash128.h"

namespace hone::server {

/// Candidates that ran well, and on which device first. A farm adds one with every good answer: all
/// that is ever taken for them is 4 MiB, with the first of them. A later one takes the place of an
/// earlier one now and then; of as many as there are places, a third is forgotten. Not thread-safe.
class KnownGood {
 public:
  static constexpr size_t kPlaces = 1 << 18;
  static constexpr size_t kMostDevices = 1 << 16;  ///< all is forgotten at once when there are more

  /// `device`: key of a worker ("name/device").
  void Add(const Hash128& candidate, const std::string& device) {
    if (numbers_.size() >= kMostDevices && !numbers_.contains(device)) *this = {};
    if (places_.empty()) places_.resize(kPlaces);
    const auto [at, fresh] = numbers_.try_emplace(device, static_cast<uint32_t>(devices_.size()));
    if (fresh) devices_.push_back(device);
    Place& place = places_[candidate.low % kPlaces];
    if (place.taken && place.candidate == candidate.high) return;
    place = {.candidate = candidate.high, .device = at->second, .taken = true};
  }
  /// nullptr: it has not run anywhere that is remembered. Holds until the next Add.
  const std::string* FirstDevice(const Hash128& candidate) const {
    if (places_.empty()) return nullptr;
    const Place& place = places_[candidate.low % kPlaces];
    if (!place.taken || place.candidate != candidate.high) return nullptr;
    return &devices_[place.device];
  }

 private:
  struct Place {
    uint64_t candidate = 0;  ///< the high half of its hash; the low one says where it lies
    uint32_t device = 0;     ///< in devices_
    bool taken = false;
  };

  std::vector<Place> places_;
  std::map<std::string, uint32_t> numbers_;
  std::vector<std::string> devices_;
};

}  // namespace hone::server
