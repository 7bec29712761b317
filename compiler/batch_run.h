#pragma once

#include "absl/status/statusor.h"

#include "compiler/model_steps.h"
#include "compiler/trace_source.h"
#include "graph/graph.h"
#include "ir/target.h"

// Whether the images of a batch run together, each kernel on all of them, or one after the other;
// and whether chains of layers are one kernel each.
namespace hone::compiler {

/// Groups and steps of a graph after its passes, concats placed. For a batch of N whose images are
/// computed apart (graph::OneImageOf) they may be those of one image (ModelSteps::images = N):
/// tensors between kernels are then those of one image, and kernels are those of the same model at
/// batch one. ModelSteps::batch says how it was decided. Deterministic, nothing is measured; kAuto
/// asks `traces`. Then chains of layers may become one kernel each (JoinCascades), as `cascades`
/// and `traces` say; ModelSteps::cascades says how that was decided. Errors: those of grouping,
/// BuildWorkload and `traces`; Unimplemented, which names what is in the way, where kEach cannot
/// be.
absl::StatusOr<ModelSteps> MakeSteps(graph::Graph graph, const ir::Target& target, BatchRun batch,
                                     CascadeRun cascades, TraceSource& traces);

/// The nominal time of a run of the model, ns: each step takes what its arithmetic takes at the
/// target's peak, or what moving its far tensors takes, whichever is longer. A tensor is far when
/// it does not fit into the last cache, a constant when all constants do not.
double NominalNs(const ModelSteps& model, const ir::Target& target);

}  // namespace hone::compiler
