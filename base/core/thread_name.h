#pragma once

namespace hone {

/// Names the calling thread in ps, perf and debuggers: at most 15 characters, the rest is cut.
/// Threads that it starts inherit the name.
void NameThisThread(const char* name);

/// Lets other threads of this machine go before the calling one, and those that it starts: for long
/// computations beside threads that somebody waits for. Nothing happens where it is not allowed.
void LowerThisThread();

}  // namespace hone
