#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

#include "schedule/schedule.h"

namespace hone::schedule {

/// Rewrites attention (algorithms/attention_form.h; `product` is its contraction with the values)
/// so that the product is divided by the sum of each row's exponentials, and not its weights. With
/// L the sums and P the product's axes, new Stages in order from `first_name`:
///   sN    as L  1/L
///   sN+1  [P]   sum of exponentials · values
/// and `product` becomes sN+1 · sN of its row, or 0 where that is NaN and the weights are 0 there.
/// Errors: no attention, or weights that are not
/// divided.
absl::Status RewriteWithLateQuotient(Schedule& schedule, int product, int64_t number,
                                     const std::string& first_name);
inline constexpr int kStagesOfLateQuotient = 2;

}  // namespace hone::schedule
