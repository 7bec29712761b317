#pragma once

namespace hone::measure {

/// Exit code by which hone-builder says that it ran out of memory.
inline constexpr int kExitOutOfMemory = 77;
/// Exit code by which it says that it could not give up its rights.
inline constexpr int kExitNoSandbox = 78;

}  // namespace hone::measure
