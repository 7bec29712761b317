#pragma once

#include <cstdint>
#include <optional>

#include "schedule/algorithms/attention_form.h"

namespace hone::schedule {

/// The scores of row i of an axis are what was computed for keys up to i + offset, and elsewhere so
/// low that nothing is left of them in the softmax.
struct CausalForm {
  int axis = -1;       ///< of the scores
  int64_t offset = 0;  ///< at least 0: every row sees a key
};

/// What an attention's scores say of it. A hidden score of -inf hides whatever the others are; the
/// lowest float only beside sums of products times constants, to which nothing as low is added.
std::optional<CausalForm> FindCausal(const ir::Workload& workload, const AttentionForm& form);

/// Which share of all scores is seen.
double SeenShare(const CausalForm& causal, int64_t rows, int64_t keys);

}  // namespace hone::schedule
