#pragma once

#include "base/core/status.h"
#include "ir/artifact.h"

namespace hone::runtime {

/// Whether some GPU can launch so (CUDA C++ Programming Guide, "Compute Capabilities"), and each
/// descriptor is of a tensor that lies in an argument of the kernel. kInvalidArgument.
Status CheckLaunch(const ir::Artifact& kernel, const ir::Launch& launch);

}  // namespace hone::runtime
