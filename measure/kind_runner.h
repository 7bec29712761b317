#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "ir/per_kind.h"
#include "measure/guarded_buffer.h"
#include "measure/run_job.h"
#include "measure/timing.h"

// How candidates run on a kind of device. hone-runner asks, which runs them, and so does who
// started it, which does not believe what it says. std only: the runner has no Abseil.
namespace hone::measure {

/// A kernel with all its memory on an opened device. Not thread-safe.
class LoadedCandidate {
 public:
  virtual ~LoadedCandidate() = default;

  /// Runs once and leaves the outputs in `outputs`: poisoned memory of this process, which the
  /// supervisor sees. Errors: those of PrepareReply.
  virtual Status RunForCheck(const std::vector<GuardedBuffer>& outputs) = 0;
  /// TimeReply::part of that run.
  virtual double part_run() const { return 1; }
  /// Runs and times by the device's clock (RunRace), on outputs of its own. It was checked before.
  virtual Result<Race> Time(const TimingPolicy& policy) = 0;
};

/// A device, opened by a runner's process, with the tensors of one Workload and seed. Not
/// thread-safe.
class OpenDevice {
 public:
  virtual ~OpenDevice() = default;

  /// Makes the job's inputs and constants, in place of those before; nothing is loaded then.
  virtual Status MakeData(const PrepareJob& job) = 0;
  /// Loads the job's kernel and runs its prologue, on the data that was made for it. The device
  /// outlives what it loads. Errors: those of PrepareReply.
  virtual Result<std::unique_ptr<LoadedCandidate>> Load(PrepareJob job) = 0;
  /// Runs whole models in turns: times by package. Errors: as RunModelsInTurns; kUnimplemented
  /// where the kind has no such thing.
  virtual Result<std::vector<ModelTimes>> RunModels(const ModelJob& job);
  /// Time of a fixed piece of work, ns: how fast the device is just now.
  virtual int64_t SentinelNs() = 0;
  /// How the device does just now, in printing characters, for people: "1980 MHz, 41 C, 350 W";
  /// empty where it does not tell. Nothing is changed by asking.
  virtual std::string Conditions() const { return ""; }
};

/// Which device a runner opens.
struct DevicePlace {
  int number = 0;   ///< among those of its kind
  int threads = 1;  ///< of the host that run a kernel together
};

/// What a runner of a kind may do beside what code for the host needs.
struct RunnerNeeds {
  std::vector<std::string> folders;  ///< it opens these, or files in them; the paths must exist
  /// While the device is opened files in these may be read too, those that exist.
  std::vector<std::string> reads_to_open;
  /// Variables of who starts it that it gets.
  std::vector<std::string> environment;
  std::vector<int> system_calls;  ///< by number, with any arguments, once the device is open
  int open_files = 0;
  bool any_address_space = false;  ///< of a driver that maps more than there is memory
  /// Its driver works in this process: what SandboxLeave::drives_device says.
  bool drives_device = false;
};

/// A kind of device, as far as running candidates goes. Thread-safe.
class KindRunner {
 public:
  virtual ~KindRunner() = default;

  virtual RunnerNeeds needs() const = 0;
  /// Its times are of the host's CPUs: what keeps those busy meanwhile, a builder or another
  /// program, disturbs them.
  virtual bool runs_on_host() const { return true; }
  /// Heeds PrepareJob::part.
  virtual bool runs_parts() const { return false; }
  /// Before the sandbox is closed, but with files hidden. `clock` outlives it.
  virtual Result<std::unique_ptr<OpenDevice>> Open(const DevicePlace& place,
                                                   const MonotonicClock& clock) const = 0;

  /// Whether times that fit into the wait (CheckTimes) also fill it, but for what a run does beside
  /// being timed: it takes `flushed_bytes` out of the caches. They are far shorter:
  ///   kUnavailable       than the runner ran: a lie, or the machine's doing once
  ///   kDeadlineExceeded  than the wait, but it did not run for that long: the machine's doing
  virtual Status CheckWait(const TimeReply& reply, int64_t flushed_bytes,
                           const AnswerWait& wait) const = 0;
  /// The answer came so late that only other programs can explain it: its times are noisy.
  virtual bool CameLate(const TimeReply& reply, int64_t flushed_bytes,
                        const AnswerWait& wait) const = 0;
};

/// The kinds that candidates can be run on. ir::PerKind says how to add one.
ir::PerKind<KindRunner>& RunnersOfKinds();

/// The runner of the kind of a device ("cpu:0") or a target. kFailedPrecondition: this program runs
/// nothing on it.
Result<const KindRunner*> RunnerOf(std::string_view text);

/// KindRunner::runs_on_host of that kind; true for one that nothing runs on.
bool RunsOnHost(std::string_view text);

}  // namespace hone::measure
