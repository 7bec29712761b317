#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "bench/farm/client_load.h"
#include "bench/farm/honed_process.h"
#include "bench/farm/worker_load.h"

namespace hone::bench {

struct FarmBenchOptions {
  int workers = 100;
  int sessions = 16;
  int tasks = 48;         ///< of each target, shared out among its sessions
  double rate = 800;      ///< results a second that all workers together could give
  double warm_up_s = 10;  ///< after the last worker has dialled in
  double seconds = 20;
  bool kill = false;         ///< SIGKILL honed then, and see them come back
  double after_kill_s = 10;  ///< measured again
  std::string honed;         ///< another program than that of this build
  std::string folder;        ///< of the farm: authority, credentials, log; removed by nobody
  /// Keys that 32 clients look up, 2,000 a second, instead of a plain measurement.
  std::vector<db::RecordKey> questions;
  bool strict = false;  ///< the figures that are asked of a quiet machine are thresholds
};

/// What a run found wrong: empty when all is well.
using Faults = std::vector<std::string>;

/// A farm on this machine: honed, workers that simulate their runs, and sessions with watchers.
class FarmBench {
 public:
  FarmBench(FarmBenchOptions options, const MonotonicClock& clock);
  ~FarmBench();

  /// Starts everything and measures; prints as it goes.
  absl::StatusOr<Faults> Run();

 private:
  struct Moment;

  absl::Status Begin();
  absl::Status BeginSessions();
  void WaitForWorkers(double seconds);
  void Measure(const char* name, double seconds, bool strict);
  Moment Now();
  void PrintLine(const Moment& from, const Moment& to) const;
  void PrintCpu(const Moment& from, const Moment& to) const;
  absl::Status LookUp();
  absl::Status KillAndReturn();
  absl::Status End();
  absl::Status CompareWithLog();

  const FarmBenchOptions options_;
  const MonotonicClock& clock_;
  const int64_t start_ns_;
  HonedProcess honed_;
  std::unique_ptr<ProcessMeter> meter_;
  std::unique_ptr<WorkerLoad> workers_;
  std::unique_ptr<SessionLoad> clients_;
  std::vector<Hash128> sessions_;
  Faults faults_;
};

/// The credentials that HonedProcess::Issue made of a name.
absl::StatusOr<Credentials> CredentialsIn(const std::string& folder, const std::string& name);
/// "4+22.1": that of the honed of this build.
std::string BuilderVersion();

}  // namespace hone::bench
