#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>
#include <utility>

#include "fmt/core.h"

#include "base/log.h"

namespace hone {
namespace {

constexpr int kFirstHighFd = 64;  // copies live above every descriptor a child is promised
constexpr int64_t kPollWithoutPidfdMs = 2;

struct FileActions {
  FileActions() { posix_spawn_file_actions_init(&actions); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { posix_spawn_file_actions_destroy(&actions); }

  posix_spawn_file_actions_t actions;
};

struct SpawnAttributes {
  SpawnAttributes() {
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(
        &attributes,
        static_cast<short>(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));
    posix_spawnattr_setpgroup(&attributes, 0);
    sigset_t signals;
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes); }

  posix_spawnattr_t attributes;
};

// Collects what the child's descriptors shall be. Every source is first copied to a high number, so
// that no dup2 overwrites the source of a later one.
class DescriptorPlan {
 public:
  absl::Status Add(int parent_fd, int child_fd) {
    UniqueFd copy(::fcntl(parent_fd, F_DUPFD_CLOEXEC, kFirstHighFd));
    if (!copy.valid()) return ErrnoStatus(errno, fmt::format("copy descriptor {}", parent_fd));
    targets_.emplace_back(copy.get(), child_fd);
    copies_.push_back(std::move(copy));
    return absl::OkStatus();
  }

  // Our end of a new pipe goes to `ours`; the child reads (fd 0) or writes (others) the other end.
  absl::Status AddPipe(int child_fd, UniqueFd* ours) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "make a pipe");
    UniqueFd read_end(ends[0]);
    UniqueFd write_end(ends[1]);
    UniqueFd& theirs = child_fd == STDIN_FILENO ? read_end : write_end;
    HONE_RETURN_IF_ERROR(Add(theirs.get(), child_fd));
    *ours = std::move(child_fd == STDIN_FILENO ? write_end : read_end);
    return absl::OkStatus();
  }

  absl::Status AddStream(ChildStream stream, int child_fd, UniqueFd* ours) {
    switch (stream) {
      case ChildStream::kPipe: return AddPipe(child_fd, ours);
      case ChildStream::kInherit: return Add(child_fd, child_fd);
      case ChildStream::kNull: break;
    }
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null.valid()) return ErrnoStatus(errno, "open '/dev/null'");
    return Add(null.get(), child_fd);
  }

  void Apply(posix_spawn_file_actions_t* actions) const {
    // Everything is closed first, also what some library opened without close-on-exec.
    for (int fd = 0; fd < kFirstHighFd; ++fd) posix_spawn_file_actions_addclose(actions, fd);
    for (const auto& [copy, child_fd] : targets_) {
      posix_spawn_file_actions_adddup2(actions, copy, child_fd);
    }
    posix_spawn_file_actions_addclosefrom_np(actions, kFirstHighFd);
  }

 private:
  std::vector<UniqueFd> copies_;
  std::vector<std::pair<int, int>> targets_;
};

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void SetLimits(pid_t pid, const SubprocessLimits& limits) {
  const auto set = [pid](__rlimit_resource resource, std::optional<int64_t> value) {
    if (!value) return;
    const rlimit limit{static_cast<rlim_t>(*value), static_cast<rlim_t>(*value)};
    ::prlimit(pid, resource, &limit, nullptr);  // fails only for a child that has already ended
  };
  set(RLIMIT_CORE, 0);
  set(RLIMIT_AS, limits.address_space_bytes);
  set(RLIMIT_CPU, limits.cpu_seconds);
  set(RLIMIT_FSIZE, limits.file_bytes);
  set(RLIMIT_NOFILE, limits.open_files);
}

int64_t TimevalNs(const timeval& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_usec} * 1'000;
}

// Milliseconds for poll until `deadline_ns` (negative: for ever), rounded up.
int PollTimeoutMs(const MonotonicClock& clock, int64_t deadline_ns) {
  if (deadline_ns < 0) return -1;
  const int64_t left_ns = std::max<int64_t>(0, deadline_ns - clock.NowNs());
  return static_cast<int>(
      std::min<int64_t>((left_ns + 999'999) / 1'000'000, std::numeric_limits<int>::max()));
}

int64_t DeadlineNs(const MonotonicClock& clock, int64_t timeout_ns) {
  return timeout_ns < 0 ? -1 : clock.NowNs() + timeout_ns;
}

enum class ChildState : uint8_t {
  kRuns,
  kZombie,
  kReaped,  ///< by the kernel, where we were started with SIGCHLD ignored
};

// Does not reap it.
ChildState StateOf(pid_t pid) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    return errno == ECHILD ? ChildState::kReaped : ChildState::kRuns;
  }
  return info.si_pid == pid ? ChildState::kZombie : ChildState::kRuns;
}

}  // namespace

std::string ExitState::ToString() const {
  if (code) return fmt::format("exit code {}", *code);
  if (signal) return fmt::format("signal {} ({})", *signal, ::strsignal(*signal));
  return "still running";
}

absl::StatusOr<Subprocess> Subprocess::Spawn(const SubprocessOptions& options) {
  HONE_CHECK(!options.argv.empty());
  Subprocess child;
  DescriptorPlan plan;
  HONE_RETURN_IF_ERROR(
      plan.AddStream(options.standard_input, STDIN_FILENO, &child.standard_input_));
  HONE_RETURN_IF_ERROR(
      plan.AddStream(options.standard_output, STDOUT_FILENO, &child.standard_output_));
  HONE_RETURN_IF_ERROR(
      plan.AddStream(options.standard_error, STDERR_FILENO, &child.standard_error_));
  for (const InheritedFd& fd : options.inherited) {
    HONE_CHECK(fd.child_fd > STDERR_FILENO && fd.child_fd < kFirstHighFd) << fd.child_fd;
    HONE_RETURN_IF_ERROR(plan.Add(fd.parent_fd, fd.child_fd));
  }

  FileActions actions;
  if (options.working_directory) {
    posix_spawn_file_actions_addchdir_np(&actions.actions, options.working_directory->c_str());
  }
  plan.Apply(&actions.actions);
  SpawnAttributes attributes;
  const std::vector<char*> argv = Pointers(options.argv);
  std::vector<char*> environment;
  if (options.environment) environment = Pointers(*options.environment);
  for (char** value = environ; options.environment && *value != nullptr; ++value) {
    const std::string_view name(*value, std::strcspn(*value, "="));
    if (std::ranges::find(options.kept, name) == options.kept.end()) continue;
    environment.insert(environment.end() - 1, *value);
  }
  const int error =
      ::posix_spawn(&child.pid_, options.argv[0].c_str(), &actions.actions, &attributes.attributes,
                    argv.data(), options.environment ? environment.data() : environ);
  if (error != 0) {
    child.pid_ = -1;
    return ErrnoStatus(error, fmt::format("start program '{}'", options.argv[0]));
  }
  child.program_ = options.argv[0];
  child.on_unkillable_ = options.on_unkillable;
  child.kill_patience_ns_ = options.kill_patience_ns;
  SetLimits(child.pid_, options.limits);
  // glibc 2.36 declares pidfd_open without extern "C". A pidfd is close-on-exec by definition.
  child.exit_fd_.Reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0)));
  return child;
}

Subprocess::Subprocess(Subprocess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      program_(std::move(other.program_)),
      on_unkillable_(std::move(other.on_unkillable_)),
      kill_patience_ns_(other.kill_patience_ns_),
      exit_fd_(std::move(other.exit_fd_)),
      standard_input_(std::move(other.standard_input_)),
      standard_output_(std::move(other.standard_output_)),
      standard_error_(std::move(other.standard_error_)),
      exit_state_(std::exchange(other.exit_state_, std::nullopt)) {}

Subprocess::~Subprocess() {
  if (pid_ > 0) static_cast<void>(End());
}

void Subprocess::Kill(int signal) const {
  if (pid_ > 0 && !exit_state_) ::kill(-pid_, signal);
}

absl::StatusOr<std::optional<ExitState>> Subprocess::Wait(const MonotonicClock& clock,
                                                          int64_t timeout_ns) {
  if (exit_state_) return exit_state_;
  if (!AwaitEnd(clock, DeadlineNs(clock, timeout_ns))) return std::nullopt;
  HONE_ASSIGN_OR_RETURN(const ExitState state, Reap());
  return std::optional<ExitState>(state);
}

absl::StatusOr<ExitState> Subprocess::End() {
  if (exit_state_) return *exit_state_;
  if (StateOf(pid_) == ChildState::kRuns) {
    Kill(SIGKILL);
    const SystemMonotonicClock clock;
    if (kill_patience_ns_ == 0 || !AwaitEnd(clock, DeadlineNs(clock, kill_patience_ns_))) {
      TellUnkillable();
    }
  }
  return Reap();
}

void Subprocess::TellUnkillable() const {
  LogError(
      "process {} ('{}') was killed {:.0f} s ago and has not ended: the kernel waits for something "
      "on its behalf (/proc/{}/stack, as root, says for what). Bring that back, or start the "
      "machine again; until then this program waits for it",
      pid_, program_, static_cast<double>(kill_patience_ns_) * 1e-9, pid_);
  if (on_unkillable_) on_unkillable_(pid_);
}

bool Subprocess::AwaitEnd(const MonotonicClock& clock, int64_t deadline_ns) const {
  while (StateOf(pid_) == ChildState::kRuns) {
    if (deadline_ns >= 0 && clock.NowNs() >= deadline_ns) return false;
    int timeout_ms = PollTimeoutMs(clock, deadline_ns);
    if (!exit_fd_.valid()) {
      timeout_ms =
          timeout_ms < 0 ? kPollWithoutPidfdMs : std::min<int>(timeout_ms, kPollWithoutPidfdMs);
    }
    pollfd entry{.fd = exit_fd_.get(), .events = POLLIN, .revents = 0};
    ::poll(&entry, 1, timeout_ms);
  }
  return true;
}

absl::StatusOr<ExitState> Subprocess::Reap() {
  // Before the child is reaped its number cannot be given to another group.
  if (StateOf(pid_) == ChildState::kZombie) Kill(SIGKILL);
  int status = 0;
  rusage usage{};
  while (::wait4(pid_, &status, 0, &usage) < 0) {
    if (errno != EINTR) return ErrnoStatus(errno, fmt::format("wait for process {}", pid_));
  }
  ExitState state;
  if (WIFEXITED(status)) state.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) state.signal = WTERMSIG(status);
  state.user_ns = TimevalNs(usage.ru_utime);
  state.system_ns = TimevalNs(usage.ru_stime);
  state.peak_memory_bytes = int64_t{usage.ru_maxrss} * 1024;
  exit_state_ = state;
  return state;
}

}  // namespace hone
