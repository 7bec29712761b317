#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"

#include "ir/target.h"
#include "schedule/algorithms/attention_form.h"
#include "schedule/cpu/rules.h"
#include "schedule/trace_writer.h"

namespace hone::schedule {

/// The attention in a Workload, from its structure; nothing when there is none.
std::optional<AttentionForm> FindAttention(const Schedule& schedule);

/// Attention over so many keys and rows and more is by blocks of keys by default: all scores of a
/// block of rows would not stay in the caches.
inline constexpr int64_t kLongKeys = 256, kLongQueries = 64;

/// What is decided of attention in one phase.
struct AttentionChoice {
  TileChoice tile;         ///< of the scores
  int64_t query_rows = 0;  ///< rows of a block
  int64_t key_block = 0;   ///< keys at a time; 0: all of them
  bool lanes = false;      ///< all keys; rows lie in the lanes of the scores' vectors
};

/// Attention in one phase: blocks of `query_rows` rows, each of which computes its scores, their
/// softmax and the product with the values in scratch, all keys at once or by online_softmax in
/// blocks of `key_block`. InvalidArgument when the Workload has none, or more around it than maps.
absl::Status PlanAttention(TraceWriter& writer, const AttentionChoice& choice,
                           const ir::Target& target);

}  // namespace hone::schedule
