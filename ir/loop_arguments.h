#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"

#include "ir/stmt.h"

namespace hone::ir {

/// Whether the arguments are there and as large as the nest's buffers say, and tables have a value
/// for each element. kInternal names the buffer.
absl::Status CheckArguments(const LoopNest& nest, std::span<const std::span<uint8_t>> arguments);

}  // namespace hone::ir
