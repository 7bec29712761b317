#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

#include "ir/workload.h"
#include "schedule/schedule.h"

namespace hone::schedule {

/// Terms that a panel's sum takes at a time: where a panel has no more, it ends.
inline constexpr int64_t kTermsAtOnce = 4;

/// Rewrites a product by a matrix of weights (ir/panel_product.h) of which is known how much is not
/// zero (ir/kept_panels.h) as sums over the kept groups of each panel alone. With P panels of
/// `width` columns, K terms, L the most terms that a panel keeps, in whole kTermsAtOnce, and B
/// blocks of 32 terms, new Stages in order from `first_name`, all of them of constants and made
/// when packaging:
///   sN    [P, K]         1 where a group is kept
///   sN+1  [P, K]         kept groups of the same block up to this one
///   sN+2  [P, B]         kept groups of a block
///   sN+3  [P, B]         kept groups up to the end of a block
///   sN+4  [P, L]         the block of a panel's l-th kept group
///   sN+5  [P, L]         the term of a panel's l-th kept group; 0 behind the last
///   sN+6  [P, L, width]  the values of the kept groups; zeros behind the last
///   sN+7  [P]            how many times kTermsAtOnce terms a panel has less than L
/// and the Stage itself becomes, over the axes l / kTermsAtOnce and l % kTermsAtOnce of its
/// reduction, the sum of the other factor at the term of sN+5, times sN+6. Where the other factor
/// is infinite or no number, what a zero weight would have made of it is left out. Errors: the
/// Stage is no such product, nothing is known of its weights, or of panels of another width.
absl::Status RewriteAsKeptPanels(Schedule& schedule, int stage, int64_t width,
                                 const std::string& first_name);
inline constexpr int kStagesOfKeptPanels = 8;

/// The first Stage that RewriteAsKeptPanels can rewrite, or -1.
int FindPanelsStage(const ir::Workload& workload);

}  // namespace hone::schedule
