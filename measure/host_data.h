#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "measure/guarded_buffer.h"
#include "measure/run_job.h"
#include "runtime/crew.h"
#include "runtime/kernel.h"

namespace hone::measure {

/// Inputs and constants of one Workload and seed in memory of the host, read-only, shared by its
/// kernels, with what prologues make of them: those are code for the host, whatever the device.
/// Not thread-safe.
struct HostData {
  using Buffers = std::vector<GuardedBuffer>;

  Buffers inputs, constants;

  /// kResourceExhausted.
  static Result<std::shared_ptr<HostData>> Make(const PrepareJob& job);

  /// Whether the job's kernel can be launched and reads no more than there is. kInvalidArgument.
  Status Check(const ir::Artifact& artifact) const;
  /// What the job's prologue makes for its kernel; candidates with one prologue_key share it.
  Result<std::shared_ptr<const Buffers>> PrologueOf(const PrepareJob& job, runtime::Crew& crew);
  /// Memory for the outputs and the workspace of a kernel of which parts are run, in this order:
  /// the same for all of them, so that what one has touched costs the next nothing. Valid until the
  /// next call.
  Result<std::vector<void*>> ForParts(const ir::Artifact& artifact);

 private:
  Result<Buffers> RunPrologue(const PrepareJob& job, runtime::Crew& crew) const;

  std::map<std::string, std::shared_ptr<const Buffers>> prologues_;  // by key
  int64_t prologue_bytes_ = 0;
  Buffers for_parts_;
};

/// What a kernel that stopped says of it. kOutOfRange, kInvalidArgument.
Status StatusOf(const runtime::KernelFailure& failure);

/// Poisoned memory for each.
Result<std::vector<GuardedBuffer>> AllocateAll(const std::vector<ir::ArtifactBuffer>& buffers);

}  // namespace hone::measure
