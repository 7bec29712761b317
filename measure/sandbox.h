#pragma once

#include <cstdint>

#include "base/core/status.h"

// What a process that runs foreign code gives up. std only; the only file that knows libseccomp is
// sandbox.cc.
namespace hone::measure {

enum class SandboxKind {
  kRunner,   ///< runs candidates: no new process or thread, no socket, files only for reading
  kBuilder,  ///< runs LLVM and LLD: as above, but may write files and start threads
};

/// Called once, by the process itself, when all its threads have started (kRunner). Sets
/// no_new_privs, core and process limits, and an allow-list of system calls for every thread: any
/// other call ends a runner with SIGSYS and fails with EPERM in a builder. Under a sanitizer, whose
/// runtime makes other calls, the allow-list is left out. kFailedPrecondition when the kernel
/// refuses.
Status EnterSandbox(SandboxKind kind);

/// Where the kernel can (Landlock, Linux 5.13): no file can be opened by its name any more, not
/// even for reading, so that a candidate finds no keys; what has no name, as code in memory, can.
/// Called before any thread is started: they inherit it. Where the kernel cannot it does nothing:
/// keys are then as safe as their owner's other processes leave them.
void HideFiles();
/// Whether HideFiles works here.
bool KernelHidesFiles();

/// Ends this process when the thread that started it ends.
void DieWithParent();

/// Whether EnterSandbox restricts system calls in this build.
bool SandboxHasAllowList();

}  // namespace hone::measure
