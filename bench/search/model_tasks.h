#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "ir/target.h"
#include "ir/workload.h"

namespace hone::bench {

/// One distinct Workload of a model.
struct ModelTask {
  std::string name;       ///< MODEL/number: operators
  std::string operators;  ///< of its first group
  double flop = 0;
  std::shared_ptr<const ir::Workload> workload;
};

/// The tasks that `hone tune` makes of a model. Errors of import and compiler.
absl::StatusOr<std::vector<ModelTask>> TasksOfModel(const std::string& path,
                                                    const ir::Target& target,
                                                    const MonotonicClock& clock);

/// Zoo's ResNet-18, written to a temporary file, for who has no model at hand.
absl::StatusOr<std::vector<ModelTask>> TasksOfResNet18(const ir::Target& target,
                                                       const MonotonicClock& clock);

}  // namespace hone::bench
