#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/target.h"
#include "ir/workload.h"
#include "schedule/space.h"

namespace hone::bench {

/// Random candidates of one task with what was measured: a search can be replayed on them without a
/// device. Text form: a line `pool 1`, `name …`, `target …`, `device …`, the Workload, a line
/// `---`, then a line per candidate: its sketch, the values of its decision tables, and its median
/// in ns or its outcome. Values stay good where a Space grows; ids would not.
struct Pool {
  struct Row {
    uint64_t id = 0;       ///< of `space`
    double median_ns = 0;  ///< 0: it failed by its own fault
    std::string outcome = "ok";
  };
  std::string name;  ///< MODEL/number: operators
  std::string target, device_class;
  std::shared_ptr<const ir::Workload> workload;
  std::shared_ptr<const schedule::Space> space;
  std::vector<Row> rows;
  int foreign = 0;  ///< rows read that today's Space does not have

  double BestNs() const;
};

absl::Status WritePool(const Pool& pool, const std::string& path);
absl::StatusOr<Pool> ReadPool(const std::string& path);
/// All *.pool of a folder, by name.
absl::StatusOr<std::vector<Pool>> ReadPools(const std::string& folder);

/// `most` distinct schedules drawn from the admitted points, or fewer where the Space has hardly as
/// many.
std::vector<uint64_t> DrawPoints(const schedule::Space& space, size_t most, uint64_t seed);

}  // namespace hone::bench
