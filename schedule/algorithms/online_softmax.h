#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

#include "schedule/schedule.h"

namespace hone::schedule {

/// Rewrites attention (algorithms/attention_form.h; `product` is its contraction with the values)
/// as a scan over T = ⌈keys/B⌉ blocks of keys, which carries each row's maximum m, sum l and output
/// o (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"; Rabe and Staats
/// 2021). With rows R = the axes of the scores but the last, and P = those of the product, new
/// Stages in order from `first_name`, t being the first axis:
///   sN …     [T, R, B]  the scores' contraction and each map of it, a block at a time
///   then     [T, R]     maximum of the block
///            [T, R]     m = max(that, m before)                                (scan)
///            [T, R]     m, or 0 while every key was masked                     (scan)
///            [T, R, B]  p = exp(scores - that)                                 (scan)
///            [T, R]     sum of p                                               (scan)
///            [T, R]     f = exp(m before - m) · l before                       (scan)
///            [T, R]     l = that sum + f                                       (scan)
///            [T, R]     1/l, or 0 while every key was masked                   (scan)
///            [T, P]     p · values                                             (scan)
///            [T, P]     o = (that + f · o before) / l                          (scan)
/// `product` becomes what the last block leaves: o, or o · l where its readers divide; then the sum
/// becomes l. Keys beyond the last one (B does not divide them) score -inf; where keys and values
/// were packed in blocks of B before, with zeros there, both products have no conditions. A row of
/// which every score is -inf gives NaN, as it does as written, or zeros (AttentionForm::zero_nan).
/// Errors: no attention, B outside of 1..keys.
absl::Status RewriteAsOnlineSoftmax(Schedule& schedule, int product, int64_t block,
                                    const std::string& first_name);

}  // namespace hone::schedule
