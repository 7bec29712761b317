#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "base/subprocess.h"

namespace hone::client {

/// Processes that do nothing but keep a CPU busy each, until the object is gone or this process
/// is, however that ends.
class BusyProcesses {
 public:
  /// They may run on the CPUs that the calling thread may use now. Errors of starting them.
  static absl::StatusOr<BusyProcesses> Start(int count);

 private:
  BusyProcesses() = default;
  std::vector<Subprocess> processes_;
};

}  // namespace hone::client
