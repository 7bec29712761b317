#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/stmt.h"
#include "ir/target.h"

namespace hone::schedule {

/// Compiles a loop nest, loads it into this process and runs all its steps on `buffers` (the bytes
/// of HoneCall.buffers), each phase in two unequal parts. Buffers end at unreadable pages.
/// kInvalidArgument: the code generator refused; kInternal: it went wrong.
absl::Status RunCode(const ir::LoopNest& nest, const ir::Target& target,
                     std::vector<std::vector<uint8_t>>* buffers);

}  // namespace hone::schedule
