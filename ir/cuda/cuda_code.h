#pragma once

#include <string>
#include <string_view>
#include <vector>

// Code for GPUs in a package (docs/formats/package.md). std only: the runtime includes this file.
namespace hone::ir {

/// Modules as one file; each is PTX text or a cubin.
std::string PackCudaModules(const std::vector<std::string>& modules);

/// Views into `bytes` of the modules that PackCudaModules wrote. False: it did not write this.
bool UnpackCudaModules(std::string_view bytes, std::vector<std::string_view>* modules);

}  // namespace hone::ir
