#pragma once

#include <string>

// The CUDA driver, loaded when it is first asked for. std and dl only.
namespace hone::ir {

/// A function of the driver ("cuLaunchKernel"); null: *why says that there is no driver, or that it
/// lacks the function. Thread-safe.
void* CudaFunction(const char* name, std::string* why);

/// The compute capability of this machine's first GPU: 90 is 9.0. 0: there is none, and *why says
/// what is missing, the driver or the device. Thread-safe.
int CudaCapability(std::string* why);

}  // namespace hone::ir
