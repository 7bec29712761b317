#pragma once

#include <string>

// The part of the CUDA driver that says what this machine has. std and dl only.
namespace hone::ir {

/// The compute capability of this machine's first GPU: 90 is 9.0. 0: there is none, and *why says
/// what is missing, the driver or the device. The driver is loaded on the first call. Thread-safe.
int CudaCapability(std::string* why);

}  // namespace hone::ir
