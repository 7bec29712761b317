#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/descriptor.h"
#include "ir/dtype.h"

// Plain structs of the kernel interface and the package. std only: the runtime includes this file.
namespace hone::ir {

/// The argument of every generated function `int32_t phase(const HoneCall*)`. Layout is ABI: do not
/// reorder.
struct HoneCall {
  void* const*
      buffers;    ///< inputs, constants, prologue results, outputs, workspace, in Artifact order
  void* scratch;  ///< this thread's scratch, 64-aligned, at least the phase's scratch_bytes
  int64_t begin;  ///< part [begin, end) of the parallel loop
  int64_t end;
  int64_t step;  ///< iteration of the step loop (scan)
  int32_t thread;
};

/// Result of a phase: 0, or code<<16 | input (1<<16: an index in that input is out of range).
using PhaseFunction = int32_t (*)(const HoneCall*);
inline constexpr int32_t kPhaseBadIndex = 1;

/// How a GPU runs a phase: a grid of blocks, the threads of each, the blocks that are neighbours in
/// one cluster (which divides the grid), bytes of shared memory that a block gets beside what the
/// code declares, and what the kernel is told of arguments beside their addresses.
struct Launch {
  int64_t grid_x = 1, grid_y = 1, grid_z = 1;
  int64_t block_x = 1, block_y = 1, block_z = 1;
  int64_t cluster_x = 1, cluster_y = 1, cluster_z = 1;
  int64_t shared_bytes = 0;
  std::vector<Descriptor> descriptors = {};
  bool operator==(const Launch&) const = default;
};

/// Memory of an argument that a phase touches: iteration i of its parallel loop at most the bytes
/// [begin + i * stride, end + i * stride).
struct PhaseAccess {
  int32_t argument = 0;  ///< of HoneCall.buffers
  bool writes = false;
  int64_t stride = 0;
  int64_t begin = 0, end = 0;
  bool operator==(const PhaseAccess&) const = default;
};

struct ArtifactPhase {
  std::string symbol;
  int64_t parallel_extent = 1;
  int64_t scratch_bytes = 0;
  int32_t threads = 1;  ///< of a CPU that share the parallel loop
  Launch launch;        ///< for a GPU, in place of parallel loop and threads
  /// What it touches of all arguments; none where the phase is not parallel or may stop with an
  /// error. Used when the plan is made, not stored in packages.
  std::vector<PhaseAccess> accesses = {};
};

struct ArtifactStep {
  int32_t first = 0;
  int32_t count = 1;
  int64_t repeats = 1;
};

/// One buffer of the kernel's interface.
struct ArtifactBuffer {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};

/// A compiled kernel without its code (the ELF shared object travels beside it: one object may hold
/// many kernels, told apart by their symbols).
struct Artifact {
  std::string target;         ///< resolved target text
  int32_t builder = 0;        ///< builder version
  std::string workload_hash;  ///< 32 hex digits
  std::string trace_hash;
  std::string binding_hash;  ///< empty: dense
  std::vector<ArtifactPhase> phases;
  std::vector<ArtifactStep> steps;
  std::vector<ArtifactBuffer> inputs, constants, prologue, outputs, workspace;
  /// Text of the prologue Workload, empty when there is none. Its input k is
  /// constants[prologue_inputs[k]]; prologue[k] is its output prologue_outputs[k]. A constant with
  /// bytes 0 is read by the prologue only.
  std::string prologue_workload;
  std::vector<int32_t> prologue_inputs, prologue_outputs;
  bool may_alias = false;
};

}  // namespace hone::ir
