#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "measure/guarded_buffer.h"
#include "measure/run_job.h"
#include "measure/timing.h"
#include "runtime/crew.h"
#include "runtime/kernel.h"
#include "runtime/shared_object.h"

// What a runner holds of a candidate. None of this is thread-safe.
namespace hone::measure {

/// Inputs and constants of one Workload and seed, read-only, shared by its kernels.
struct RunData {
  std::string key;
  std::vector<GuardedBuffer> inputs, constants;
  /// Results of prologues by PrepareJob::prologue_key: candidates share them.
  std::map<std::string, std::shared_ptr<const std::vector<GuardedBuffer>>> prologues;
  int64_t prologue_bytes = 0;

  static Result<std::shared_ptr<RunData>> Make(const PrepareJob& job);
};

/// A loaded kernel with all its memory.
class PreparedKernel {
 public:
  /// Loads the code, runs the prologue. `crew` must outlive it.
  static Result<std::unique_ptr<PreparedKernel>> Make(PrepareJob job, std::shared_ptr<RunData> data,
                                                      runtime::Crew& crew);

  /// Runs once with poisoned outputs that lie in the memory file `output_fd`. `hook` is called with
  /// the outputs after the run, for tests (may be empty).
  using Hook = std::function<void(const std::vector<GuardedBuffer>& outputs)>;
  Status RunForCheck(int output_fd, const MonotonicClock& clock, const Hook& hook);

  /// Runs and times on outputs of its own. What a run returns was seen in the check.
  Result<Race> Time(const TimingPolicy& policy, const MonotonicClock& clock);

 private:
  PreparedKernel(std::shared_ptr<RunData> data, runtime::Crew& crew)
      : data_(std::move(data)), crew_(crew) {}

  Status TakePrologue(const PrepareJob& job, RunData& data);
  Result<std::vector<GuardedBuffer>> RunPrologue(const PrepareJob& job) const;
  Status AllocateWorkspace();
  std::vector<void*> Pointers(const std::vector<GuardedBuffer>& outputs) const;
  Status Run(const std::vector<void*>& pointers) const;
  void FlushConstants() const;

  std::shared_ptr<RunData> data_;
  runtime::Crew& crew_;
  ir::Artifact artifact_;
  runtime::SharedObject code_;
  runtime::Kernel kernel_;
  runtime::Scratch scratch_;
  std::shared_ptr<const std::vector<GuardedBuffer>> prologue_;
  std::vector<GuardedBuffer> workspace_, outputs_;
  int64_t check_ns_ = 0;
};

}  // namespace hone::measure
