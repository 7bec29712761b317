#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "compiler/model_steps.h"
#include "compiler/trace_source.h"
#include "ir/target.h"

// Attention is one Workload where versions before made two: the product and softmax of its scores,
// and the product with its values. Nothing looks up their records any more.
namespace hone::compiler {

/// The Workloads that kernels of attention would be in two, of those kernels for whose hash
/// `wanted` holds; by kernel, as index into `model.kernels`, those that the model has no kernel of.
/// Only a model with such kernels is grouped again. Errors: those of grouping and BuildWorkload.
struct SplitAttention {
  int kernel = -1;
  std::vector<ModelKernel> parts;
};
absl::StatusOr<std::vector<SplitAttention>> SplitAttentions(
    const ModelSteps& model, const ir::Target& target,
    const std::function<bool(int kernel)>& wanted);

/// How many kernels of attention `traces` has no exact answer for (`found`, by kernel) but exact
/// records of the two that they were. 0 without a look at the model where `traces` keeps no
/// records. Errors: those of SplitAttentions and `traces`.
absl::StatusOr<int> CountStaleAttention(const ModelSteps& model, const ir::Target& target,
                                        const std::vector<FoundTrace>& found, TraceSource& traces);

}  // namespace hone::compiler
