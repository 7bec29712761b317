#pragma once

#include <string>

#include "absl/status/status.h"

namespace hone::client {

/// Writes an ELF relocatable object (x86-64, little-endian) with the bytes of `package_path` as
/// read-only data at a multiple of 4096. NAME_package is a pointer to them (a program that named
/// the data itself might get a copy of all of it: x86-64's copy relocations), NAME_package_bytes
/// their number as a uint64_t. Layout: System V ABI, chapter 4, and its x86-64 supplement.
absl::Status WritePackageObject(const std::string& package_path, const std::string& name,
                                const std::string& object_path);

}  // namespace hone::client
