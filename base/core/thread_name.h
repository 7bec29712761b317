#pragma once

namespace hone {

/// Names the calling thread in ps, perf and debuggers: at most 15 characters, the rest is cut.
/// Threads that it starts inherit the name.
void NameThisThread(const char* name);

/// Lets other threads of this machine go before the calling one, and those that it starts: for long
/// computations beside threads that somebody waits for. Nothing happens where it is not allowed.
void LowerThisThread();

/// Lets the calling thread go before all others of this machine at a usual priority: for short
/// turns that a thousand wait for. Nothing happens where it is not allowed (it takes CAP_SYS_NICE
/// or a RLIMIT_NICE, as LimitNICE=-15 of a systemd unit gives).
void RaiseThisThread();

}  // namespace hone
