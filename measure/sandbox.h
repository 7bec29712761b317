#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/core/status.h"

// What a process that runs foreign code gives up. std only; the only file that knows libseccomp is
// sandbox.cc.
namespace hone::measure {

enum class SandboxKind {
  kRunner,   ///< runs candidates: no new process or thread, no socket, files only for reading
  kBuilder,  ///< runs LLVM and LLD: as above, but may write files and start threads
};

/// What a process may do beside.
struct SandboxLeave {
  std::vector<int> more_calls;  ///< system calls by number, with any arguments
  /// The driver of a GPU works in this process: it opens device files for reading and writing
  /// (HideFiles says which), gives them the orders of NVIDIA's driver (ioctl), and names and starts
  /// threads. It tries other calls too and does without: they fail with EPERM.
  bool drives_device = false;
  bool may_kill_itself = false;  ///< tests that end it as the kernel would
};

/// Called once, by the process itself, when all its threads have started (kRunner). Sets
/// no_new_privs, core and process limits, and an allow-list of system calls for every thread: any
/// other call ends a runner with SIGSYS and fails with EPERM in a builder. Neither can send a
/// signal but SIGABRT to itself, not by the settings of a descriptor either. Under a sanitizer,
/// whose runtime makes other calls, the allow-list is left out. kFailedPrecondition when the kernel
/// refuses.
Status EnterSandbox(SandboxKind kind, const SandboxLeave& leave = {});

/// Whether HideFiles works here. kUnimplemented: this kernel has no Landlock (before Linux 5.13, or
/// switched off), and keys are as safe as their owner's other processes leave them;
/// kFailedPrecondition: it has, and a filter around this process refuses it.
Status CanHideFiles();
/// No file can be opened by its name any more (Landlock), not even for reading, so that foreign
/// code finds no keys; what has no name, as code in memory, can, and `own` files and all within
/// `own` folders, which exist; within `read_only` folders, if they exist, files can be read. A
/// second call takes more away. Called before any thread is started: they inherit it. Errors: those
/// of CanHideFiles.
Status HideFiles(std::span<const std::string> own = {},
                 std::span<const std::string> read_only = {});

/// Ends this process when the thread that started it ends.
void DieWithParent();

/// Whether EnterSandbox restricts system calls in this build.
bool SandboxHasAllowList();

}  // namespace hone::measure
