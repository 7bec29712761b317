#pragma once

#include <cstdint>

#include "ir/per_kind.h"
#include "ir/target.h"

namespace hone::graph {

/// What cutting a model must know of a device.
struct GroupLimits {
  /// Bytes of a row that may stay near while its group passes over it again and again.
  int64_t row_bytes = 0;
  /// Bytes of a tensor that one kernel may leave near for the next, and how many a nanosecond come
  /// from further away. 0: the device runs a batch together always.
  int64_t near_bytes = 0;
  double far_bytes_per_ns = 0;
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
