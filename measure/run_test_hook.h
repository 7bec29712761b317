#pragma once

#include <string>
#include <vector>

#include "measure/guarded_buffer.h"

namespace hone::measure {

/// Misbehaves as a candidate might, for tests: "crash", "overrun", "hang", "memory", "socket",
/// "exec", "fork", "write" or "wrong" (an output). Returns for "wrong", for unknown names, and for
/// escapes that failed without harm; never does anything of use.
void Misbehave(const std::string& hook, const std::vector<GuardedBuffer>& outputs);

}  // namespace hone::measure
