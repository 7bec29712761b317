#pragma once

#include "base/core/hash128.h"

namespace hone {

/// 128 bits of the operating system's entropy: the id of a record, an attempt, a session. The one
/// source of randomness without a seed; nothing a search decides may depend on it. Thread-safe.
Hash128 RandomId();

}  // namespace hone
