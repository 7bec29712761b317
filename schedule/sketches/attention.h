#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"

#include "ir/target.h"
#include "schedule/algorithms/attention_form.h"
#include "schedule/space.h"
#include "schedule/trace_writer.h"

namespace hone::schedule {

/// The attention in a Workload, from its structure; nothing when there is none.
std::optional<AttentionForm> FindAttention(const Schedule& schedule);

/// Ways to do the Workload's attention in one phase: Sketches of which every block of rows fits
/// half the Target's L2. Empty when it has none, or more around it than maps.
std::vector<Sketch> AttentionSketches(const ir::Workload& workload, const ir::Target& target);

/// Attention in one phase: blocks of `choice.query_rows` rows, each of which computes its scores,
/// their softmax and the product with the values in scratch. `choice.key_block` 0: all keys at
/// once; else online_softmax by blocks of so many. `choice.tile` is the register tile of
/// the scores. InvalidArgument when the Workload has none, or more around it than maps.
absl::Status PlanAttention(TraceWriter& writer, const PlanChoice& choice, const ir::Target& target);

}  // namespace hone::schedule
