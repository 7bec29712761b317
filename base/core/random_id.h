#pragma once

#include "base/core/hash128.h"

namespace hone {

/// 128 bits of the operating system's entropy: the id of a session, a worker, a request. The one
/// source of randomness without a seed; nothing a search decides may depend on it. Thread-safe.
Hash128 RandomId();

/// The id of a fact that comes by the thousand: 64 random bits, drawn once a process, and a counter
/// begun at 64 more. As good as never drawn twice, and neighbours: an index over the ids of one
/// process grows at one place, where random ones would touch a page each. Not for secrets.
/// Thread-safe.
Hash128 FactId();

}  // namespace hone
