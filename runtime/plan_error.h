#pragma once

#include <cstddef>

#include "base/core/result.h"
#include "ir/plan.h"
#include "runtime/kernel.h"

// What a run that stopped says, in the words of the model where the package has them.
namespace hone::runtime {

/// The error of a step whose kernel stopped: kOutOfRange for an index out of range, else kInternal.
Status KernelError(const ir::Plan& plan, size_t step, const KernelFailure& failure);

/// The error of an extern's step.
Status ExternError(const ir::Plan& plan, size_t step, const Status& status);

}  // namespace hone::runtime
