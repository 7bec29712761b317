#pragma once

#include <cstddef>
#include <span>

namespace hone {

/// The lines of this memory leave all caches of all cores; what follows begins afterwards.
/// Thread-safe.
void FlushLines(std::span<const std::byte> memory);

}  // namespace hone
