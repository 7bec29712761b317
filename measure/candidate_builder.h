#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "ir/target.h"
#include "ir/workload.h"
#include "measure/builder_client.h"
#include "measure/measurer.h"
#include "measure/run_job.h"

namespace hone::measure {

/// A candidate as the runner takes it, or why there is none.
struct BuiltCandidate {
  AttemptError error;  ///< outcome kOk: `job` is complete but for its slot and test hook
  PrepareJob job;
  std::string trace;  ///< the text that was built (the default's when none was given)
  int64_t build_ns = 0;
};

/// The tensors that a runner makes up for a Workload. A range that says nothing (the default one)
/// is widened to all values for 8-bit integers.
std::vector<RunTensor> RunTensorsOf(const ir::Workload& workload, const std::vector<int>& tensors);

/// What a runner needs beside the kernel, made up from the Workload: tensors, seed, threads.
void FillRunJob(const ir::Workload& workload, const ir::Target& target, uint64_t seed,
                PrepareJob* job);
/// PrepareJob::prologue_key of prologues that this machine built.
std::string PrologueKey(const ir::Artifact& artifact);

/// Whether what is built must be code that this machine can run.
enum class BuildFor : uint8_t { kThisMachine, kAny };

/// Builds candidates with their prologues. Thread-safe; as many calls side by side as the client
/// has processes.
class CandidateBuilder {
 public:
  /// Both must outlive it.
  CandidateBuilder(BuilderClient& client, const MonotonicClock& clock,
                   BuildFor machines = BuildFor::kThisMachine);

  /// `trace` empty: the default schedule. `hook`: BuildJob::test_hook. `keep`: of the candidate;
  /// prologues, which candidates share, are always kept. `stop`: as BuilderClient::Build's.
  BuiltCandidate Build(const ir::Workload& workload, const std::string& target,
                       const std::string& trace, uint64_t seed, const std::string& hook,
                       Keep keep = Keep::kYes, KillSwitch* stop = nullptr);

 private:
  struct Prologue {
    RunKernel kernel;
    std::vector<int> arguments;  ///< kernel input i is argument arguments[i] of the Workload
  };

  absl::StatusOr<std::shared_ptr<const Prologue>> BuildPrologue(const std::string& text,
                                                                KillSwitch* stop);

  BuilderClient& client_;
  const MonotonicClock& clock_;
  const BuildFor machines_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Prologue>> prologues_;  // by text; guarded by mutex_
};

}  // namespace hone::measure
