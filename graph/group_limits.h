#pragma once

#include <cstdint>

#include "ir/per_kind.h"
#include "ir/target.h"

namespace hone::graph {

/// What grouping must know of a device.
struct GroupLimits {
  /// The largest row, in bytes, that stays in the near caches while its group reads it several
  /// times.
  int64_t row_bytes = 0;
  /// The largest tensor, in bytes, that stays in the caches from one kernel to the next, and the
  /// bytes that a nanosecond brings from further away. 0: the device always runs a batch together.
  int64_t near_bytes = 0;
  double far_bytes_per_ns = 0;
  /// Attention over at least so many keys, for at least so many rows, is one kernel: its scores
  /// stay in the near caches, a block of rows or of keys at a time. 0: the device has no such
  /// kernel.
  int64_t attention_keys = 0, attention_rows = 0;
  bool runs_externs = true;  ///< routines of the runtime read and write the device's memory
};

/// The limits of a kind of device. Thread-safe.
class KindLimits {
 public:
  virtual ~KindLimits() = default;
  virtual GroupLimits Of(const ir::Target& target) const = 0;
};

const KindLimits& CpuLimits();
const KindLimits& CudaLimits();

/// The kinds that graphs can be cut for. ir::PerKind says how to add one.
ir::PerKind<KindLimits>& LimitsOfKinds();

}  // namespace hone::graph
