#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/core/clock.h"
#include "measure/cpu/part_run.h"
#include "measure/host_data.h"
#include "measure/kind_runner.h"
#include "runtime/crew.h"
#include "runtime/kernel.h"
#include "runtime/shared_object.h"

namespace hone::measure {

/// A kernel for the CPU with all its memory.
class CpuCandidate final : public LoadedCandidate {
 public:
  /// `crew` and `clock` must outlive it.
  static Result<std::unique_ptr<CpuCandidate>> Load(const PrepareJob& job,
                                                    std::shared_ptr<HostData> data,
                                                    runtime::Crew& crew,
                                                    const MonotonicClock& clock);

  Status RunForCheck(const std::vector<GuardedBuffer>& outputs) override;
  double part_run() const override { return part_run_; }
  Result<Race> Time(const TimingPolicy& policy) override;

 private:
  CpuCandidate(std::shared_ptr<HostData> data, runtime::Crew& crew, const MonotonicClock& clock)
      : data_(std::move(data)), crew_(crew), clock_(clock) {}

  Status AllocateWorkspace();
  std::vector<void*> Pointers(const std::vector<GuardedBuffer>& outputs) const;
  Status Run(const std::vector<void*>& pointers) const;
  Result<Race> TimePart(const TimingPolicy& policy);
  Result<PartTimes> RunPartAt(double place, const std::vector<GuardedBuffer>* outputs) const;
  void FlushConstants() const;

  const std::shared_ptr<HostData> data_;
  runtime::Crew& crew_;
  const MonotonicClock& clock_;
  int threads_ = 1;      // of the crew's
  double part_ = 1;      // of the work
  double part_run_ = 1;  // of a whole run's time
  ir::Artifact artifact_;
  runtime::SharedObject code_;
  runtime::Kernel kernel_;
  runtime::Scratch scratch_;
  std::shared_ptr<const HostData::Buffers> prologue_;
  std::vector<GuardedBuffer> workspace_, outputs_;
  int64_t check_ns_ = 0;
};

}  // namespace hone::measure
