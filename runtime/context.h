#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "runtime/crew.h"
#include "runtime/executable.h"
#include "runtime/kernel.h"
#include "runtime/region.h"

namespace hone::runtime {

/// Memory of the caller: a model's input (only read) or output.
struct InputBuffer {
  const void* data = nullptr;
  size_t bytes = 0;
};
struct OutputBuffer {
  void* data = nullptr;
  size_t bytes = 0;
};

/// What one model needs to run: arena, scratch and a crew of its own. Contexts of one executable
/// are independent, so concurrent runs use one each; runs of one context take turns. In a child
/// process after fork it starts threads of its own.
class Context {
 public:
  struct Options {
    int threads = 0;  ///< 0: what the code was made for, but no more than the usable cores
    /// Binds each worker to a physical core of its own, thread 0 (the caller of Run) excepted: run
    /// it on the first allowed CPU.
    bool pin = false;
    /// Lends the threads, as many as it has at most; null: the context starts its own.
    std::shared_ptr<ThreadPool> pool;
    /// Does the work instead, if it has a parallel_for.
    Executor executor;
    /// For how long a thread of its own spins at most before it sleeps.
    int64_t spin_ns = ThreadPool::kSpinNs;
    /// Every thread computes a fixed share of each phase and is waited for: for measurements.
    bool fixed_shares = false;
    /// Takes the time of each step with this clock, which must outlive the context. Null: no times.
    const MonotonicClock* profile_clock = nullptr;
    /// Fills arena, scratch and outputs with 0xff (NaN, -1) before each run, so that a read of
    /// something never written shows.
    bool poison = false;
  };

  /// Errors: kInvalidArgument for options out of range, kResourceExhausted without memory or
  /// threads.
  static Result<std::unique_ptr<Context>> Create(std::shared_ptr<const Executable> executable,
                                                 const Options& options);

  const Executable& executable() const { return *executable_; }
  int threads() const { return crew_->threads(); }

  /// Runs the model once. Buffers in the order of the plan's inputs and outputs, dense, row-major,
  /// of exactly its sizes; outputs overlap nothing. 64-aligned buffers are used in place, others
  /// are copied. Results do not depend on the number of threads, nor on the caller's rounding mode.
  /// Errors: kInvalidArgument (count, size, null, overlap), kOutOfRange (an index in an input's
  /// values is out of range: names it), kResourceExhausted (threads, after fork). Outputs are
  /// undefined after an error.
  Status Run(std::span<const InputBuffer> inputs, std::span<const OutputBuffer> outputs);

  /// Time of each of the plan's steps in the last run, ns, in order; empty without a profile clock.
  /// Not while a run is in progress.
  std::span<const int64_t> step_times_ns() const { return step_times_ns_; }

 private:
  Context() = default;
  Status Allocate(const Options& options);
  Status MakeCrew(const Options& options, int threads);
  Status RenewAfterFork();
  void PrepareSteps();
  Status CheckBuffers(std::span<const InputBuffer> inputs,
                      std::span<const OutputBuffer> outputs) const;
  Status BindBuffers(std::span<const InputBuffer> inputs, std::span<const OutputBuffer> outputs);
  void Poison(std::span<const OutputBuffer> outputs);
  Status RunSteps();
  Status RunStep(size_t step);
  Status KernelError(size_t step, const KernelFailure& failure) const;
  /// The model's words for a step (-1) or an input of it; null where the package has none.
  const ir::PlanName* NameOf(size_t step, int32_t input) const;

  /// An aligned stand-in for a buffer of the caller, made when first needed.
  Result<void*> Stage(size_t io, size_t bytes);

  /// A pointer of a step that depends on the caller's buffers. `io` counts inputs, then outputs.
  struct Patch {
    size_t pointer = 0;
    size_t io = 0;
  };

  std::shared_ptr<const Executable> executable_;
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

  std::mutex run_mutex_;
  std::vector<int64_t> step_times_ns_;
};

}  // namespace hone::runtime
