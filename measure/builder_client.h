#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "base/core/sanitizer.h"
#include "base/subprocess.h"
#include "measure/build_job.h"
#include "measure/disk_cache.h"
#include "measure/kill_switch.h"
#include "measure/wire.h"

namespace hone::measure {

struct BuilderOptions {
  /// Program to start; empty: hone-builder beside this program (FindHelperProgram).
  std::string program;
  int processes = 1;           ///< most jobs under way at once
  int jobs_per_process = 500;  ///< then a fresh one is started: LLVM's memory only grows
  int64_t job_timeout_ns = 120'000'000'000;
  /// Address space of a builder; unset: unlimited (AddressSanitizer needs that).
  std::optional<int64_t> address_space_bytes =
      kSanitized ? std::nullopt : std::optional(int64_t{4} << 30);
  int64_t max_reply_bytes = int64_t{1} << 29;
  bool test_hooks = false;  ///< heed BuildJob::test_hook
  /// Go on where the sandbox is refused: whoever made the jobs is trusted.
  bool unsafe_no_sandbox = false;
  /// Called with a builder that was killed and does not end, as in SubprocessOptions; on the
  /// caller's thread.
  std::function<void(pid_t)> on_unkillable;
  int64_t kill_patience_ns = kKillPatienceNs;
  /// For LinkLibrary, whose job names files to read and write: the process is not confined to
  /// folders of its own.
  bool named_files = false;
  /// Answers jobs that it has seen before, by Workloads, Traces, Bindings, target and builder
  /// program; null: none.
  std::shared_ptr<DiskCache> cache;
};

/// Whether the answer goes into the cache; it is looked for there in any case.
enum class Keep : uint8_t { kNo, kYes };

/// Sends jobs to hone-builder processes and reads their answers. The processes start when first
/// needed, stay for later jobs and end with this object. Thread-safe: callers run side by side, up
/// to `processes` of them; more wait.
///
/// Every failure of the process costs the job it had and nothing else; the next job gets a new one:
///   kDeadlineExceeded   the job took longer than job_timeout_ns (the process was killed)
///   kResourceExhausted  the process ran out of memory
///   kAborted            it crashed, with its signal and last words
///   kUnavailable        it was killed from outside: by a KillSwitch, or below the limit of memory
///                       that it has
///   kDataLoss           it answered what is no answer (it was killed)
///   kNotFound, kPermissionDenied  it could not be started
///   kFailedPrecondition  it could not give up its rights
class BuilderClient {
 public:
  /// `clock` must outlive the client.
  BuilderClient(BuilderOptions options, const MonotonicClock& clock);
  ~BuilderClient();
  BuilderClient(const BuilderClient&) = delete;
  BuilderClient& operator=(const BuilderClient&) = delete;

  /// Compiles kernels. The reply has one BuiltKernel per KernelJob, each with its own status.
  /// One from the cache took no time: its durations are 0. `stop` ends it, with its process.
  absl::StatusOr<BuildReply> Build(const BuildJob& job, Keep keep = Keep::kYes,
                                   KillSwitch* stop = nullptr);

  /// Links objects; the answer's own status is folded in.
  absl::StatusOr<std::string> Link(const LinkJob& job);

  /// Links a library for C programs, on this disk.
  absl::Status LinkLibrary(const LibraryJob& job);

  int processes() const { return options_.processes; }
  /// Processes started so far; grows with crashes and recycling.
  int64_t num_started() const;

 private:
  struct Process;

  absl::StatusOr<BuildReply> BuildNow(const BuildJob& job, std::string_view request,
                                      KillSwitch* stop);
  std::string CacheKey(std::string_view what, std::string_view payload) const;
  absl::StatusOr<std::string> Call(FrameType request, std::string_view payload, FrameType reply,
                                   KillSwitch* stop = nullptr);
  absl::StatusOr<std::unique_ptr<Process>> TakeProcess();
  absl::StatusOr<std::unique_ptr<Process>> StartProcess();
  void GiveBack(std::unique_ptr<Process> process);
  absl::Status Explain(Process& process, const Status& failure);

  const BuilderOptions options_;
  DiskCache* cache_ = nullptr;    // options_.cache, where the builder's program is known
  std::string builder_identity_;  // of the program
  const MonotonicClock& clock_;

  std::once_flag swept_;  ///< with the first process: what killed ones left
  mutable std::mutex mutex_;
  std::condition_variable slot_free_;
  std::vector<std::unique_ptr<Process>> idle_;  // guarded by mutex_
  int busy_ = 0;                                // guarded by mutex_
  int64_t num_started_ = 0;                     // guarded by mutex_
};

}  // namespace hone::measure
