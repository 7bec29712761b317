#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/core/result.h"
#include "runtime/device.h"
#include "runtime/executable.h"

namespace hone::runtime {

/// What one model needs to run: memory and threads of its own. Contexts of one executable
/// are independent, so concurrent runs use one each; runs of one context take turns. In a child
/// process after fork it starts threads of its own.
class Context {
 public:
  using Options = RunOptions;

  /// Errors: kInvalidArgument for options out of range, kResourceExhausted without memory or
  /// threads.
  static Result<std::unique_ptr<Context>> Create(std::shared_ptr<const Executable> executable,
                                                 const Options& options);

  const Executable& executable() const { return *executable_; }
  int threads() const { return prepared_->threads(); }

  /// Runs the model once. Buffers in the order of the plan's inputs and outputs, dense, row-major,
  /// of exactly its sizes; outputs overlap nothing. 64-aligned buffers are used in place, others
  /// are copied. For a package of a GPU a buffer may lie in that GPU's memory: those alone are used
  /// in place; with a stream of the caller's (SetStream) and all buffers there, Run returns when
  /// the work is submitted, unless the host has to check indices that lie in an input. Results do
  /// not depend on the number of threads, nor on the caller's rounding mode. Errors:
  /// kInvalidArgument (count, size, null, overlap), kOutOfRange (an index in an input's values is
  /// out of range: names it), kResourceExhausted (threads, after fork). Outputs are undefined after
  /// an error.
  Status Run(std::span<const InputBuffer> inputs, std::span<const OutputBuffer> outputs);

  /// PreparedPlan::SetStream.
  Status SetStream(void* stream);

  /// Time of each of the plan's steps in the last run, ns, in order; empty without a profile clock.
  /// Not while a run is in progress.
  std::span<const int64_t> step_times_ns() const { return prepared_->step_times_ns(); }
  /// PreparedPlan::device_ns. Not while a run is in progress.
  std::optional<int64_t> device_ns() const { return prepared_->device_ns(); }

 private:
  Context() = default;
  Status CheckBuffers(std::span<const InputBuffer> inputs,
                      std::span<const OutputBuffer> outputs) const;

  std::shared_ptr<const Executable> executable_;
  std::unique_ptr<PreparedPlan> prepared_;
  std::mutex run_mutex_;
};

}  // namespace hone::runtime
