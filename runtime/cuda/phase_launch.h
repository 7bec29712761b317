#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/artifact.h"
#include "runtime/cuda/driver.h"

namespace hone::runtime {

/// Why this device cannot launch so: its blocks have less shared memory, or it has no clusters.
/// Empty: nothing is known against it.
std::string WhyNotLaunched(const CudaDriver& driver, int device, const ir::Launch& launch);

/// Lets a function be launched so. Once, before the first time.
CuResult PermitLaunch(const CudaDriver& driver, CuHandle function, const ir::Launch& launch);

/// Launches a phase's function in a stream, or puts it into the graph that the stream captures.
/// `values`: its parameters but for tensor maps, the addresses of HoneCall.buffers first
/// (codegen/cuda/llvm_nvptx.h); maps are made of those addresses, so a graph has them as they are
/// now.
CuResult LaunchPhase(const CudaDriver& driver, CuHandle function, const ir::Launch& launch,
                     std::vector<uint64_t> values, CuHandle stream);

}  // namespace hone::runtime
