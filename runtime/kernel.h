#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/core/result.h"
#include "ir/artifact.h"
#include "runtime/crew.h"
#include "runtime/scratch.h"
#include "runtime/shared_object.h"
#include "runtime/sweep.h"

// Running one compiled kernel: all its phases, in order, on many threads. The executable runs a
// model with it, the runner of measurements a candidate.
namespace hone::runtime {

/// Why a kernel stopped: what the phase returned (0: it did not stop).
struct KernelFailure {
  int32_t result = 0;
  int32_t phase = 0;  ///< number of the phase that stopped

  bool ok() const { return result == 0; }
  /// ir::kPhaseBadIndex: an index in `input()` is out of range; others are unknown to this runtime.
  int32_t code() const { return result >> 16; }
  /// Position among the kernel's buffers.
  int32_t input() const { return result & 0xffff; }
};

/// A kernel with its phases' addresses. `artifact` and the shared object must outlive it.
/// Immutable, but for what it learns of the time its phases take.
class Kernel {
 public:
  /// Resolves the phases' symbols; kInvalidArgument when one is missing.
  static Result<Kernel> Resolve(const ir::Artifact& artifact, const SharedObject& code);

  const ir::Artifact& artifact() const { return *artifact_; }

  /// Scratch bytes that each thread needs.
  int64_t scratch_bytes() const;

  /// What one run is given; `buffers` in Artifact order, `scratch` for all threads of the crew.
  struct Arguments {
    void* const* buffers = nullptr;
    const Scratch* scratch = nullptr;
    NodeStride nodes = {};  ///< of `buffers`
    int max_threads = 1;    ///< beside each phase's own number and the crew's
    /// Thread i of n gets [floor(i E / n), floor((i+1) E / n)) of a phase's extent E and all are
    /// waited for: for measurements. Else the threads claim parts of it as they come.
    bool fixed = false;
  };

  /// Runs every step: all its phases, a barrier after each, `repeats` times with HoneCall::step =
  /// the repeat. Stops after the first phase that fails. What it computes does not depend on who
  /// computes which part. Safe from many threads at once on different buffers, scratch and crews.
  KernelFailure Run(const Arguments& arguments, Crew& crew) const;
  /// One of the steps.
  KernelFailure RunStep(const ir::ArtifactStep& step, const Arguments& arguments, Crew& crew) const;

  ir::PhaseFunction phase(int32_t number) const { return phases_[static_cast<size_t>(number)]; }

 private:
  const ir::Artifact* artifact_ = nullptr;
  std::vector<ir::PhaseFunction> phases_;
  std::unique_ptr<Sweep[]> sweeps_;  // by phase
};

}  // namespace hone::runtime
