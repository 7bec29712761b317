#pragma once

#include <string>

#include "base/core/byte_stream.h"
#include "base/core/status.h"
#include "runtime/package.h"

// What a package says about itself, as bytes: docs/formats/package.md, "Info".
namespace hone::runtime {

std::string EncodeInfo(const PackageInfo& info);

/// `format` is the package's; those before 5 had nothing of units, precision, class
/// and error.
/// `reader.ok()` tells whether it is whole.
PackageInfo DecodeInfo(ByteReader& reader, int format);

/// The rules for what it says of kernels and of numbers. kInvalidArgument.
Status CheckInfo(const PackageInfo& info);

}  // namespace hone::runtime
