#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "base/core/sanitizer.h"
#include "base/core/unique_fd.h"
#include "base/subprocess.h"
#include "measure/kill_switch.h"
#include "measure/process_load.h"
#include "measure/run_job.h"
#include "measure/wire.h"

namespace hone::measure {

struct RunnerOptions {
  /// Program to start; empty: hone-runner beside this program (FindHelperProgram).
  std::string program;
  /// What it runs candidates on: a kind and a number among the devices of that kind.
  std::string device = "cpu:0";
  int64_t prepare_timeout_ns = 15'000'000'000;  ///< loading, filling, prologue and one run
  int64_t time_timeout_ns = 15'000'000'000;     ///< all repeats
  /// Address space of a runner; unset: unlimited (AddressSanitizer needs that, and some kinds).
  std::optional<int64_t> address_space_bytes =
      kSanitized ? std::nullopt : std::optional(int64_t{8} << 30);
  /// Then a fresh one is started. 1: a candidate, and the default that candidates are compared
  /// with, have each a process of their own; those that are compared with each other share one.
  int jobs_per_process = 2000;
  bool test_hooks = false;  ///< heed PrepareJob::test_hook
  /// Go on where the sandbox is refused: whoever made the candidates is trusted.
  bool unsafe_no_sandbox = false;
  /// Called with a runner that was killed and does not end, as in SubprocessOptions.
  std::function<void(pid_t)> on_unkillable;
  int64_t kill_patience_ns = kKillPatienceNs;
};

/// Sends jobs to one hone-runner process, which starts when first needed, stays for later jobs and
/// ends with this object. Not thread-safe; the process also ends with the thread that first called
/// Prepare.
///
/// Every failure of the process costs the job it had (and what was prepared), and nothing else:
///   kDeadlineExceeded   the job took too long (the process was killed)
///   kResourceExhausted  it ran out of memory
///   kAborted            it crashed or made a forbidden system call
///   kUnavailable        its process was killed from outside: by Interrupt, or by the machine,
///   below
///                       the limit of memory that it has; not the kernel's doing
///   kDataLoss           it answered what is no answer (it was killed)
///   kOutOfRange         the kernel says that an index in its inputs is out of range
///   kInvalidArgument    the kernel cannot be loaded, or is for another kind of device
///   kNotFound, kPermissionDenied, kFailedPrecondition  no runner could be started
class RunnerClient {
 public:
  /// `clock` must outlive the client.
  RunnerClient(RunnerOptions options, const MonotonicClock& clock);
  ~RunnerClient();
  RunnerClient(const RunnerClient&) = delete;
  RunnerClient& operator=(const RunnerClient&) = delete;

  /// Prepares a kernel and runs it once. The result is its outputs, in memory shared with the
  /// runner; it stays valid until the next call of Prepare.
  absl::StatusOr<std::vector<std::span<const std::byte>>> Prepare(const PrepareJob& job);
  /// What the runner says that the one run of the last Prepare took, and TimeReply::part of it.
  int64_t run_ns() const { return run_ns_; }
  double part_run() const { return part_run_; }
  /// Where a part of the work, prepared last, has touched its outputs, by output: whole pages.
  std::vector<std::vector<ByteRange>> Touched(const PrepareJob& job) const;

  /// Whether a runner starts, gives up its rights and answers.
  absl::Status Ping();

  /// Times what was prepared in a slot and not lost since.
  absl::StatusOr<TimeReply> Time(const TimeJob& job);

  /// Runs whole models in turns, in a process of its own: times by package. What was prepared is
  /// lost.
  absl::StatusOr<std::vector<ModelTimes>> RunModels(const ModelJob& job);

  /// How its process gets CPUs from now on; nullopt: there is none.
  std::optional<CpuShare> ShareCpu() const;

  /// From any thread: the call under way and later ones end at once with kUnavailable, and the
  /// process of the kernel is killed, until Resume.
  void Interrupt() { switch_.Pull(); }
  void Resume() { switch_.Reset(); }

  /// Ends the process, and with it everything that is prepared; the next job gets a new one.
  void EndProcess();

  /// How often since it last gave times the device itself failed, in whatever process: it could not
  /// be opened, or was lost. A process that used it and cannot be ended counts kBadDevice times.
  int device_failures() const { return device_failures_; }
  static constexpr int kBadDevice = 3;  ///< from here on it is of no use
  /// What the last of these said.
  const std::string& device_failure() const { return device_failure_; }

  /// Processes started so far; grows with crashes.
  int64_t num_started() const { return num_started_; }

 private:
  struct Process;

  /// The process says what nobody asked for.
  bool SpeaksUnasked() const;
  absl::Status MakeRoom(int64_t bytes);
  absl::Status Start(int threads);
  void NoteFailure(std::string_view why, int times = 1);
  /// A device that failed stays so until its process is gone: kUnavailable, kAborted.
  absl::Status Told(const Status& status);
  void LimitFilesFor(const PrepareJob& job);
  /// Memory files of at most `bytes` each, of so many kernels.
  void LimitFilesTo(int kernels, size_t bytes);
  absl::StatusOr<TimeReply> AskForTimes(const TimeJob& job);
  absl::StatusOr<std::string> Call(FrameType request, std::string_view payload, FrameType reply,
                                   int64_t timeout_ns);
  absl::Status Explain(const Status& failure, int64_t timeout_ns);

  const RunnerOptions options_;
  const MonotonicClock& clock_;
  UniqueFd output_file_;
  std::span<const std::byte> mapped_;
  std::unique_ptr<Process> process_;
  int64_t num_started_ = 0;
  int64_t run_ns_ = 0;
  double part_run_ = 1;
  int device_failures_ = 0;
  std::string device_failure_;
  KillSwitch switch_;
};

}  // namespace hone::measure
