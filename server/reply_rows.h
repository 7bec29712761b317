#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/limits.h"

namespace hone::server {

/// Whether a reply's last row still fits into a message; `used` counts those before it, bytes.
/// Nobody can receive a larger one.
inline bool Fits(size_t row_bytes, int64_t* used) {
  constexpr int64_t kHeaderBytes = 8;
  *used += static_cast<int64_t>(row_bytes) + kHeaderBytes;
  return *used <= proto::kMaxRowsBytes;
}

}  // namespace hone::server
