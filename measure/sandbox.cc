#include "measure/sandbox.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <string>
#include <system_error>

#include "base/core/sanitizer.h"
#include "base/core/status_macros.h"
#include "base/core/unique_fd.h"

namespace hone::measure {
namespace {

Status Refused(const std::string& what, int error) {
  return Status(StatusCode::kFailedPrecondition,
                "the sandbox cannot be set up: " + what + ": " +
                    std::generic_category().message(error) +
                    "; 'hone doctor' says what this machine allows");
}

// What memory, the C library's start of a thread, dlopen from memory, pipes and clocks need.
constexpr int kAlways[] = {
    SCMP_SYS(read),
    SCMP_SYS(pread64),
    SCMP_SYS(write),
    SCMP_SYS(writev),
    SCMP_SYS(close),
    SCMP_SYS(fstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(lseek),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(mmap),
    SCMP_SYS(munmap),
    SCMP_SYS(mprotect),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    SCMP_SYS(brk),
    SCMP_SYS(futex),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(nanosleep),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_getres),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(getrandom),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigpending),
    SCMP_SYS(rt_sigtimedwait),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(readlink),
    SCMP_SYS(readlinkat),
    SCMP_SYS(getcwd),
    SCMP_SYS(access),
    SCMP_SYS(faccessat),
    SCMP_SYS(stat),
    SCMP_SYS(lstat),
    SCMP_SYS(statx),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(getrusage),
    SCMP_SYS(membarrier),
};

// LLD writes its result beside a temporary name; LLVM asks for the machine and starts threads.
constexpr int kBuilderToo[] = {
    SCMP_SYS(openat),     SCMP_SYS(open),
    SCMP_SYS(mkdir),      SCMP_SYS(mkdirat),
    SCMP_SYS(rmdir),      SCMP_SYS(unlink),
    SCMP_SYS(unlinkat),   SCMP_SYS(rename),
    SCMP_SYS(renameat),   SCMP_SYS(renameat2),
    SCMP_SYS(ftruncate),  SCMP_SYS(fallocate),
    SCMP_SYS(chmod),      SCMP_SYS(fchmod),
    SCMP_SYS(fchmodat),   SCMP_SYS(umask),
    SCMP_SYS(pwrite64),   SCMP_SYS(msync),
    SCMP_SYS(statfs),     SCMP_SYS(fstatfs),
    SCMP_SYS(getdents64), SCMP_SYS(uname),
    SCMP_SYS(sysinfo),    SCMP_SYS(dup),
    SCMP_SYS(dup2),       SCMP_SYS(dup3),
    SCMP_SYS(pipe2),      SCMP_SYS(memfd_create),
    SCMP_SYS(getuid),     SCMP_SYS(geteuid),
    SCMP_SYS(getgid),     SCMP_SYS(getegid),
    SCMP_SYS(rseq),       SCMP_SYS(set_robust_list),
};

using Filter = std::unique_ptr<void, decltype(&seccomp_release)>;

Status Add(const Filter& filter, uint32_t action, int call) {
  const int error = seccomp_rule_add(filter.get(), action, call, 0);
  return error == 0 ? Status() : Refused("system call " + std::to_string(call), -error);
}

template <typename... Conditions>
Status AllowIf(const Filter& filter, int call, Conditions... conditions) {
  const int error =
      seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, sizeof...(conditions), conditions...);
  return error == 0 ? Status() : Refused("system call " + std::to_string(call), -error);
}

// A process that may choose which signal a descriptor sends to whom (F_SETOWN, F_SETSIG, O_ASYNC)
// can have its parent killed by the next byte in a pipe: only what is named here is let through.
constexpr int kFcntlAlways[] = {F_ADD_SEALS, F_GETFD, F_GETFL};
constexpr int kFcntlBuilderToo[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_SETFD, F_GET_SEALS,
                                    F_GETLK, F_SETLK,         F_SETLKW};

Status AddFcntl(const Filter& filter, SandboxKind kind) {
  const auto allow = [&](int command) {
    return AllowIf(filter, SCMP_SYS(fcntl),
                   SCMP_A1(SCMP_CMP_EQ, static_cast<scmp_datum_t>(command)));
  };
  for (const int command : kFcntlAlways) HONE_RETURN_IF_ERROR(allow(command));
  if (kind == SandboxKind::kRunner) return {};
  for (const int command : kFcntlBuilderToo) HONE_RETURN_IF_ERROR(allow(command));
  return AllowIf(filter, SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_SETFL),
                 SCMP_A2(SCMP_CMP_MASKED_EQ, O_ASYNC, 0));
}

Status AddBuilderRules(const Filter& filter) {
  for (const int call : kBuilderToo) HONE_RETURN_IF_ERROR(Add(filter, SCMP_ACT_ALLOW, call));
  // Whether something is a terminal, and what a thread is called; not FIOASYNC, nor the rest.
  HONE_RETURN_IF_ERROR(AllowIf(filter, SCMP_SYS(ioctl), SCMP_A1(SCMP_CMP_EQ, TCGETS)));
  HONE_RETURN_IF_ERROR(AllowIf(filter, SCMP_SYS(prctl), SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME)));
  HONE_RETURN_IF_ERROR(AllowIf(filter, SCMP_SYS(prctl), SCMP_A0(SCMP_CMP_EQ, PR_GET_NAME)));
  // Its own, and only to look: a limit of CPU time on its parent is a signal to it.
  HONE_RETURN_IF_ERROR(
      AllowIf(filter, SCMP_SYS(prlimit64), SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A2(SCMP_CMP_EQ, 0)));
  // Threads only. The C library falls back to clone, whose flags can be looked at.
  HONE_RETURN_IF_ERROR(Add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3)));
  return AllowIf(filter, SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
}

// The orders of NVIDIA's kernel driver: those of its device files carry the letter F, those of its
// unified memory are small numbers, but for two. No others: not those of terminals (TIOCSTI), not
// FIOASYNC. Sources: gVisor's nvproxy, and the driver's nv-ioctl-numbers.h and uvm_ioctl.h.
Status AddDriverRules(const Filter& filter) {
  constexpr scmp_datum_t kLetter = 0xff00, kFrontend = 'F' << 8;
  constexpr scmp_datum_t kUvmStarts = 0x30000001, kUvmEnds = 0x30000002, kMostUvm = 0xff;
  constexpr scmp_datum_t kOrder = 0xffffffff;
  const auto order = [&](scmp_datum_t mask, scmp_datum_t value) {
    return AllowIf(filter, SCMP_SYS(ioctl), SCMP_A1(SCMP_CMP_MASKED_EQ, mask, value));
  };
  HONE_RETURN_IF_ERROR(order(kLetter, kFrontend));
  HONE_RETURN_IF_ERROR(order(kOrder & ~kMostUvm, 0));
  HONE_RETURN_IF_ERROR(order(kOrder, kUvmStarts));
  HONE_RETURN_IF_ERROR(order(kOrder, kUvmEnds));
  // Nothing is made: what is there is opened, and Landlock says what that may be.
  constexpr scmp_datum_t kMaking = O_CREAT | O_TRUNC | O_APPEND;
  HONE_RETURN_IF_ERROR(AllowIf(filter, SCMP_SYS(openat), SCMP_A2(SCMP_CMP_MASKED_EQ, kMaking, 0)));
  HONE_RETURN_IF_ERROR(AllowIf(filter, SCMP_SYS(open), SCMP_A1(SCMP_CMP_MASKED_EQ, kMaking, 0)));
  HONE_RETURN_IF_ERROR(AllowIf(filter, SCMP_SYS(prctl), SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME)));
  HONE_RETURN_IF_ERROR(AllowIf(filter, SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_SETFD)));
  HONE_RETURN_IF_ERROR(Add(filter, SCMP_ACT_ALLOW, SCMP_SYS(rseq)));
  HONE_RETURN_IF_ERROR(Add(filter, SCMP_ACT_ALLOW, SCMP_SYS(set_robust_list)));
  // Threads only, as in a builder.
  HONE_RETURN_IF_ERROR(Add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3)));
  return AllowIf(filter, SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
}

Status AddRules(const Filter& filter, SandboxKind kind, const SandboxLeave& leave) {
  for (const int call : kAlways) HONE_RETURN_IF_ERROR(Add(filter, SCMP_ACT_ALLOW, call));
  for (const int call : leave.more_calls) HONE_RETURN_IF_ERROR(Add(filter, SCMP_ACT_ALLOW, call));
  // abort() signals its own thread. No other signal: a candidate that kills itself would pass as
  // one that the machine killed for memory, at nobody's cost.
  const auto self = static_cast<scmp_datum_t>(::getpid());
  HONE_RETURN_IF_ERROR(
      AllowIf(filter, SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_EQ, self), SCMP_A2(SCMP_CMP_EQ, SIGABRT)));
  if (leave.may_kill_itself) {
    HONE_RETURN_IF_ERROR(AllowIf(filter, SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_EQ, self),
                                 SCMP_A2(SCMP_CMP_EQ, SIGKILL)));
  }
  HONE_RETURN_IF_ERROR(AddFcntl(filter, kind));
  if (kind == SandboxKind::kBuilder) return AddBuilderRules(filter);
  if (leave.drives_device) HONE_RETURN_IF_ERROR(AddDriverRules(filter));
  // Code, in pages of the usual size: huge ones would count towards no limit.
  HONE_RETURN_IF_ERROR(AllowIf(filter, SCMP_SYS(memfd_create),
                               SCMP_A1(SCMP_CMP_EQ, MFD_CLOEXEC | MFD_ALLOW_SEALING)));
  // The loader opens code by its name in /proc/self/fd; nothing is opened for writing or made.
  constexpr scmp_datum_t kWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
  HONE_RETURN_IF_ERROR(AllowIf(filter, SCMP_SYS(openat), SCMP_A2(SCMP_CMP_MASKED_EQ, kWriting, 0)));
  return AllowIf(filter, SCMP_SYS(open), SCMP_A1(SCMP_CMP_MASKED_EQ, kWriting, 0));
}

Status LoadAllowList(SandboxKind kind, const SandboxLeave& leave) {
  // A candidate has no business with other calls; libraries may try one and do without.
  const bool kills = kind == SandboxKind::kRunner && !leave.drives_device;
  const uint32_t others = kills ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(EPERM);
  const Filter filter(seccomp_init(others), &seccomp_release);
  if (filter == nullptr) return Refused("seccomp", ENOMEM);
  // Threads that run already come under it too.
  int error = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1);
  if (error == 0) error = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  if (error != 0) return Refused("seccomp", -error);
  HONE_RETURN_IF_ERROR(AddRules(filter, kind, leave));
  error = seccomp_load(filter.get());
  return error == 0 ? Status() : Refused("seccomp", -error);
}

constexpr uint64_t kEveryAccess = (uint64_t{LANDLOCK_ACCESS_FS_MAKE_SYM} << 1) - 1;

constexpr uint64_t kFileAccess =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE;
constexpr uint64_t kReading =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;

Status AllowWithin(int ruleset, const std::string& path, uint64_t access) {
  const UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat facts {};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return Refused("'" + path + "'", errno);
  landlock_path_beneath_attr rule{};
  rule.allowed_access = S_ISDIR(facts.st_mode) ? access : access & kFileAccess;
  rule.parent_fd = fd.get();
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
    return Refused("Landlock for '" + path + "'", errno);
  }
  return {};
}

}  // namespace

Status CanHideFiles() {
  if (::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0) {
    return {};
  }
  if (errno == ENOSYS || errno == EOPNOTSUPP) {
    return Status(StatusCode::kUnimplemented,
                  "candidates can read its user's files: this kernel has no Landlock (Linux 5.13)");
  }
  return Refused("Landlock", errno);
}

Status HideFiles(std::span<const std::string> own, std::span<const std::string> read_only) {
  if (!SandboxHasAllowList()) return {};
  HONE_RETURN_IF_ERROR(CanHideFiles());
  // All that the first version knows.
  landlock_ruleset_attr rules{};
  rules.handled_access_fs = kEveryAccess;
  const UniqueFd ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0)));
  if (!ruleset.valid()) return Refused("Landlock", errno);
  for (const std::string& path : own) {
    HONE_RETURN_IF_ERROR(AllowWithin(ruleset.get(), path, kEveryAccess));
  }
  for (const std::string& path : read_only) {
    if (::access(path.c_str(), F_OK) != 0) continue;
    HONE_RETURN_IF_ERROR(AllowWithin(ruleset.get(), path, kReading));
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Refused("no_new_privs", errno);
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
    return Refused("Landlock", errno);
  }
  return {};
}

bool SandboxHasAllowList() { return !kSanitized; }

Status EnterSandbox(SandboxKind kind, const SandboxLeave& leave) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Refused("no_new_privs", errno);
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_CORE, &none) != 0) return Refused("core limit", errno);
  if (!SandboxHasAllowList()) return {};
  const bool starts_none = kind == SandboxKind::kRunner && !leave.drives_device;
  if (starts_none && ::setrlimit(RLIMIT_NPROC, &none) != 0) {
    return Refused("process limit", errno);
  }
  return LoadAllowList(kind, leave);
}

void DieWithParent() { ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); }

}  // namespace hone::measure
