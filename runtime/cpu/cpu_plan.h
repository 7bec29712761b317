#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/crew.h"
#include "runtime/device.h"
#include "runtime/kernel.h"
#include "runtime/region.h"

namespace hone::runtime {

/// A plan with its code resolved.
struct CpuModel {
  const ir::Plan* plan = nullptr;
  std::span<const std::byte> constants;
  std::vector<Kernel> kernels;  ///< of the plan's
  int threads = 1;              ///< that the code was made for
};

/// What a run of a plan needs on a CPU: arena, scratch and a crew. In a child process after fork it
/// starts threads of its own.
class CpuPlan final : public PreparedPlan {
 public:
  /// `model` must outlive it. kResourceExhausted without memory or threads.
  static Result<std::unique_ptr<PreparedPlan>> Create(const CpuModel& model,
                                                      const RunOptions& options);

  int threads() const override { return crew_->threads(); }
  Status Run(std::span<const InputBuffer> inputs, std::span<const OutputBuffer> outputs) override;
  std::span<const int64_t> step_times_ns() const override { return step_times_ns_; }

 private:
  CpuPlan(const CpuModel& model, const RunOptions& options);
  Status Allocate(const RunOptions& options);
  Status MakeCrew(const RunOptions& options, int threads);
  Status RenewAfterFork();
  void PrepareSteps();
  Status BindBuffers(std::span<const InputBuffer> inputs, std::span<const OutputBuffer> outputs);
  void Poison(std::span<const OutputBuffer> outputs);
  Status RunSteps();
  Status RunStep(size_t step);

  /// An aligned stand-in for a buffer of the caller, made when first needed.
  Result<void*> Stage(size_t io, size_t bytes);

  /// A pointer of a step that depends on the caller's buffers. `io` counts inputs, then outputs.
  struct Patch {
    size_t pointer = 0;
    size_t io = 0;
  };

  const CpuModel& model_;
  std::unique_ptr<Crew> crew_;
  Region arena_;
  Scratch scratch_;
  bool poison_ = false;
  bool fixed_shares_ = false;
  const MonotonicClock* clock_ = nullptr;
  pid_t owner_ = 0;

  std::vector<void*> pointers_;        // of all steps, one after the other
  std::vector<size_t> first_pointer_;  // by step
  std::vector<Patch> patches_;
  std::vector<Region> stages_;  // by io
  std::vector<void*> io_;       // by io, for this run

  std::vector<int64_t> step_times_ns_;
};

}  // namespace hone::runtime
