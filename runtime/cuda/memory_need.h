#pragma once

#include <cstddef>

#include "base/core/status.h"
#include "ir/plan.h"

namespace hone::runtime {

/// What loading a model and one context of it take of a GPU's memory, but for code.
struct MemoryNeed {
  size_t constants = 0, arena = 0, inputs_and_outputs = 0;
  size_t peak_step = 0;  ///< of the plan: most of the arena is in use at it

  size_t total() const { return constants + arena + inputs_and_outputs; }
};

MemoryNeed MemoryNeedOf(const ir::Plan& plan, size_t constants);

/// Whether that fits into what is free of the device's memory. kFailedPrecondition: the device is
/// too small; kResourceExhausted: others use the rest. Both say how much is needed, and where most.
Status CheckMemory(const MemoryNeed& need, const ir::Plan& plan, size_t free, size_t total);

}  // namespace hone::runtime
