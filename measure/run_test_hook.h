#pragma once

#include <string>
#include <vector>

#include "measure/guarded_buffer.h"

namespace hone::measure {

/// Ends this process by SIGKILL when `hook` is "kill-" and this step: "loading" (before the kernel
/// is there), "ran" (after its first run), "timing" (before its repeats).
void EndIfAsked(const std::string& hook, const char* step);

/// Misbehaves as a candidate might, for tests: "crash", "overrun", "hang", "memory", "socket",
/// "exec", "fork", "write", "read", "order" (an ioctl), "wrong" (an output) or "kill-ran". Returns
/// for "wrong", for unknown names, and for escapes that the sandbox refused; crashes where it let
/// them pass.
void Misbehave(const std::string& hook, const std::vector<GuardedBuffer>& outputs);

}  // namespace hone::measure
