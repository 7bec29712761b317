#pragma once

#include "absl/status/status.h"

#include "ir/target.h"
#include "schedule/plan.h"
#include "schedule/trace_writer.h"

namespace hone::schedule {

/// A Stage that algorithms/winograd.h can rewrite, or -1.
int FindWinogradStage(const ir::Workload& workload);
/// Writes the whole Trace of a convolution group by Winograd: three phases (input transform,
/// batched product, output transform with the epilogue) or one, with both transforms at blocks of
/// tile rows. InvalidArgument when the epilogue does not fit.
absl::Status PlanWinograd(TraceWriter& writer, const PlanChoice& choice, const ir::Target& target);

}  // namespace hone::schedule
