#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

#include "schedule/schedule.h"

namespace hone::schedule {

/// Rewrites a product by a matrix of weights (ir/panel_product.h) of which is known how many values
/// are not zero (ir/kept_panels.h): of each panel of `width` (16) columns those values alone are
/// stored, one behind the other, and for each four terms a word of 64 bits that says which of them
/// there are (ir/bit_rank.h). It reads less and computes as much: good for what waits for memory.
/// With P panels, C words a panel, G groups of 32 words, and L the most values of a panel, new
/// Stages in order from `first_name`, all of them of constants and made when packaging:
///   sN    [P, C, 64]  the weights, as words have them: value 16·t + c is term t's, column c's
///   sN+1  [P, C]      the words
///   sN+2  [P, C]      values of a word
///   sN+3  [P, G]      values of a group of words
///   sN+4  [P, G]      values up to the end of a group
///   sN+5  [P, C]      values before a word
///   sN+6  [P, L]      the group of a panel's l-th value
///   sN+7  [P, L]      the word of a panel's l-th value
///   sN+8  [P, C, 64]  values before each in its word
///   sN+9  [P, L]      the values, zeros behind the last
/// and the Stage itself becomes the sum over words and the four terms of each. Where the other
/// factor is infinite or no number, zero times it counts, as in the dense product. Errors: as
/// RewriteAsKeptPanels has them.
absl::Status RewriteAsKeptValues(Schedule& schedule, int stage, int64_t width,
                                 const std::string& first_name);
inline constexpr int kStagesOfKeptValues = 10;

}  // namespace hone::schedule
