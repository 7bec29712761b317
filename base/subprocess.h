#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/unique_fd.h"
#include "base/status.h"

// Child processes. They start by posix_spawn (safe beside threads, OpenMP and gRPC), lead a process
// group of their own, have default signal handling, and see no descriptor of ours but those named.
namespace hone {

/// Resource limits of a child, soft and hard; unset means as the parent. Set right after the start,
/// before Spawn returns, so a child that waits for its job runs the job under them. Core dumps are
/// always off. Leave address space unset for programs with AddressSanitizer.
struct SubprocessLimits {
  std::optional<int64_t> address_space_bytes;
  std::optional<int64_t> cpu_seconds;
  std::optional<int64_t> file_bytes;
  std::optional<int64_t> open_files;
};

enum class ChildStream { kPipe, kNull, kInherit };

struct InheritedFd {
  int parent_fd = -1;
  int child_fd = -1;  ///< at least 3
};

inline constexpr int64_t kKillPatienceNs = 10'000'000'000;

struct SubprocessOptions {
  std::vector<std::string> argv;  ///< argv[0] is the path of the program; PATH is not searched
  std::optional<std::vector<std::string>> environment;  ///< "NAME=value"; unset: the parent's
  std::vector<std::string> kept;  ///< names: beside `environment` the parent's values of these
  std::optional<std::string> working_directory;
  ChildStream standard_input = ChildStream::kPipe;
  ChildStream standard_output = ChildStream::kPipe;
  ChildStream standard_error = ChildStream::kPipe;
  std::vector<InheritedFd> inherited;
  SubprocessLimits limits;
  /// Told once, on the thread that ends the child, when it lives on so long after SIGKILL: the
  /// kernel waits on its behalf (for a dead disk, a driver), nobody knows how long.
  std::function<void(pid_t)> on_unkillable;
  /// 0: it is told at once, also of a child that is about to end.
  int64_t kill_patience_ns = kKillPatienceNs;
};

/// How a child ended and what it used.
struct ExitState {
  std::optional<int> code;    ///< exit code, if it exited
  std::optional<int> signal;  ///< signal number, if one killed it
  int64_t user_ns = 0;
  int64_t system_ns = 0;
  int64_t peak_memory_bytes = 0;

  bool success() const { return code == 0; }

  /// "exit code 3" or "signal 11 (Segmentation fault)".
  std::string ToString() const;
};

/// A running child. Its destructor is End. Not thread-safe, except that Kill may be called while
/// another thread waits.
class Subprocess {
 public:
  /// Fails with ErrnoStatus codes when the program is missing or cannot start.
  static absl::StatusOr<Subprocess> Spawn(const SubprocessOptions& options);

  Subprocess(Subprocess&& other) noexcept;
  Subprocess& operator=(Subprocess&&) = delete;
  ~Subprocess();

  pid_t pid() const { return pid_; }

  /// Our ends of the pipes, blocking, close-on-exec; invalid for streams that are not kPipe.
  /// Writing to a child that is gone raises SIGPIPE: ignore it in main, as RunSubprocess does by
  /// itself.
  UniqueFd& standard_input() { return standard_input_; }
  UniqueFd& standard_output() { return standard_output_; }
  UniqueFd& standard_error() { return standard_error_; }

  /// Sends `signal` to the child's process group; nothing once it was reaped.
  void Kill(int signal) const;

  /// Waits until the child ends (nullopt: not within `timeout_ns`; negative: for ever), then kills
  /// what is left of its group and reaps it. May be called again for the same answer.
  absl::StatusOr<std::optional<ExitState>> Wait(const MonotonicClock& clock, int64_t timeout_ns);

  /// Kills the whole process group, waits until the child has ended, however long that takes (see
  /// SubprocessOptions::on_unkillable; it is logged as well), and reaps it.
  absl::StatusOr<ExitState> End();

  /// Readable when the child has ended (a pidfd); -1 where the kernel has none.
  int exit_fd() const { return exit_fd_.get(); }

 private:
  Subprocess() = default;
  absl::StatusOr<ExitState> Reap();
  /// False: it runs on at `deadline_ns` (negative: there is none).
  bool AwaitEnd(const MonotonicClock& clock, int64_t deadline_ns) const;
  void TellUnkillable() const;

  pid_t pid_ = -1;
  std::string program_;
  std::function<void(pid_t)> on_unkillable_;
  int64_t kill_patience_ns_ = kKillPatienceNs;
  UniqueFd exit_fd_;
  UniqueFd standard_input_, standard_output_, standard_error_;
  std::optional<ExitState> exit_state_;
};

struct RunOptions {
  std::string_view input;              ///< given on standard input, which is then closed
  int64_t timeout_ns = -1;             ///< then the group is killed; negative: none
  int64_t max_output_bytes = 1 << 26;  ///< of each stream; what is beyond is read and dropped
};

struct RunResult {
  ExitState exit_state;
  bool timed_out = false;
  std::string standard_output, standard_error;  ///< empty unless kPipe
};

/// Runs a program to its end, feeding and draining its pipes at the same time.
absl::StatusOr<RunResult> RunSubprocess(const SubprocessOptions& options, const RunOptions& run,
                                        const MonotonicClock& clock);

}  // namespace hone
