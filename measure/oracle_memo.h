#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/interpreter.h"
#include "measure/disk_cache.h"

namespace hone::measure {

/// The oracle's values of a list of points, in its order, as far as they were asked for: those that
/// the cache has are taken from there, others are computed and kept for the next time. What the
/// cache has beyond that a later run need not compute, however little time it has.
/// Not thread-safe.
class OracleMemo {
 public:
  using Evaluate =
      std::function<absl::StatusOr<std::vector<ir::PointValue>>(std::span<const int64_t> points)>;

  /// `key` names everything that the values depend on but the points; the measurement policy's
  /// version is added. `cache` may be null.
  OracleMemo(std::shared_ptr<DiskCache> cache, const std::string& key, std::vector<int64_t> points,
             Evaluate evaluate);
  /// Keeps what was computed.
  ~OracleMemo();
  OracleMemo(const OracleMemo&) = delete;
  OracleMemo& operator=(const OracleMemo&) = delete;

  /// How many values need no computing.
  size_t num_known() const { return values_.size(); }

  /// The values of points [begin, begin + count); `begin` is at most num_known(). Errors are those
  /// of `evaluate`. Valid until the next call.
  absl::StatusOr<std::span<const ir::PointValue>> Values(size_t begin, size_t count);

 private:
  const std::shared_ptr<DiskCache> cache_;
  const std::vector<int64_t> points_;
  const Evaluate evaluate_;
  std::string key_;
  std::vector<ir::PointValue> values_;
  size_t num_kept_ = 0;  // of values_, in the cache
};

}  // namespace hone::measure
