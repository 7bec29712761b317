#pragma once

namespace hone::measure {

/// Exit code by which hone-builder says that it ran out of memory.
inline constexpr int kExitOutOfMemory = 77;

}  // namespace hone::measure
