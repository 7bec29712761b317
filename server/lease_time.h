#pragma once

#include <cstdint>

#include "server/farm_rows.h"

namespace hone::server {

/// The most that anything under this lease can have taken, whatever its worker says: what passed
/// since the grant, and the while that a message may hang about.
inline int64_t MostNs(const OpenLease& lease, int64_t now_ns) {
  constexpr int64_t kOnItsWayNs = 10'000'000;
  return now_ns - lease.granted_ns + kOnItsWayNs;
}

}  // namespace hone::server
