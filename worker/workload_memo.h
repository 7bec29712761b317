#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "ir/workload.h"

namespace hone::worker {

/// Workloads of leases by their text: read and verified once. Not thread-safe.
class WorkloadMemo {
 public:
  absl::StatusOr<std::shared_ptr<const ir::Workload>> Of(const std::string& text);

 private:
  std::map<std::string, std::shared_ptr<const ir::Workload>> known_;
};

}  // namespace hone::worker
