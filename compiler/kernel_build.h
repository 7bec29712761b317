#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "compiler/model_steps.h"
#include "compiler/trace_source.h"
#include "measure/builder_client.h"

namespace hone::compiler {

/// The kernels of a model as code.
struct BuiltKernels {
  std::string shared_object;                  ///< ELF with all of them; empty when there are none
  std::vector<measure::BuiltKernel> kernels;  ///< by ModelSteps::kernels; without objects
};

/// Looks up the Trace of each kernel, for the extensions of `target` that its dtypes can use, and
/// then calls traces.EndLookUps(). An error of `traces` is returned.
absl::StatusOr<std::vector<FoundTrace>> LookUpTraces(const std::vector<ModelKernel>& kernels,
                                                     const ir::Target& target, TraceSource& traces);

/// Builds kernel k from traces[k] with symbols kK_p0, kK_p1, …, side by side on all processes of
/// `builder`, and links them. Deterministic. A kernel that cannot be built is an error that names
/// it.
absl::StatusOr<BuiltKernels> BuildKernels(const std::vector<ModelKernel>& kernels,
                                          const std::vector<FoundTrace>& traces,
                                          const ir::Target& target,
                                          measure::BuilderClient& builder);

}  // namespace hone::compiler
