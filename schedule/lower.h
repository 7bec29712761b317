#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/artifact.h"
#include "ir/stmt.h"
#include "ir/target.h"
#include "ir/workload.h"
#include "schedule/trace.h"

namespace hone::schedule {

/// Strides, offsets and alignment of the kernel's buffers, given by the memory plan. Empty: dense.
struct BufferBinding {
  std::vector<int64_t> strides;  ///< elements, one per dimension
  int64_t offset = 0;            ///< elements
  int64_t alignment = 64;        ///< bytes
};
struct Binding {
  /// By buffer order: inputs, constants, outputs of the Workload. Empty: all dense.
  std::vector<BufferBinding> buffers;
};

/// A lowered kernel: code for codegen, its interface for plan and package, but for launches: who
/// makes code knows those (codegen/kind_code.h).
/// `artifact.phases[k].symbol` and `nest.phases[k].symbol` are `prefix` + "_p" + k.
struct Lowered {
  ir::LoopNest nest;
  ir::Artifact artifact;
  /// Stages that depend on constants only, as a canonical Workload; artifact.prologue_inputs and
  /// prologue_outputs map it. No stages when there are none.
  ir::Workload prologue;
};

/// Replays `trace` on `workload` and lowers. InvalidArgument: the trace is illegal here, with the
/// instruction and the reason. Deterministic.
absl::StatusOr<Lowered> LowerTrace(const ir::Workload& workload, const Trace& trace,
                                   const ir::Target& target, const Binding& binding,
                                   const std::string& prefix);

/// The schedule used when nothing better is known: a function of the texts of workload and target
/// only.
absl::StatusOr<Trace> DefaultTrace(const ir::Workload& workload, const ir::Target& target);

}  // namespace hone::schedule
