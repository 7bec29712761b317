#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/npz.h"
#include "runtime/context.h"
#include "runtime/executable.h"

namespace hone::client {

/// A model with memory for its inputs and outputs. Not thread-safe.
class ModelSession {
 public:
  /// By default as many threads as the code can use, but no more than there are usable cores.
  /// Errors of runtime::Context::Create and of memory.
  static absl::StatusOr<ModelSession> Create(std::shared_ptr<const runtime::Executable> executable,
                                             runtime::Context::Options options);

  /// Copies all inputs in; they are those of the plan, in its order (ReadInputs gives them so).
  void SetInputs(const NamedTensors& inputs);

  /// Copies one in; the bytes are as many as it has.
  void SetInput(size_t index, std::span<const std::byte> bytes);

  absl::Status Run();

  /// The outputs of the last run; they refer to the session's memory.
  NamedTensors Outputs() const;
  std::span<const std::byte> OutputBytes(size_t index) const;

  const runtime::Context& context() const { return *context_; }
  const ir::Plan& plan() const { return context_->executable().plan(); }

 private:
  std::unique_ptr<runtime::Context> context_;
  std::vector<runtime::Region> inputs_, outputs_;
  std::vector<runtime::InputBuffer> input_buffers_;
  std::vector<runtime::OutputBuffer> output_buffers_;
};

}  // namespace hone::client
