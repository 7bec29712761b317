#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

#include "ir/workload.h"
#include "schedule/schedule.h"

namespace hone::schedule {

/// Rewrites a 3×3 stride-1 convolution Stage (NHWC: spatial n, oh, ow, oc; body x[n, oh+kh, ow+kw,
/// ic] · w[…]) as Winograd's minimal filtering F(m×m, 3×3), m = 2 or 4 (Lavin and Gray 2016, "Fast
/// Algorithms for Convolutional Neural Networks", §4; the matrices stand in winograd.cc). With α =
/// m + 2 and tiles th = ⌈oh/m⌉, tw = ⌈ow/m⌉, new Stages in order from `first_name`:
///   sN    [n, th, tw, α, α, ic]   input transform, rows
///   sN+1  [α, α, n, th, tw, ic]   input transform, columns
///   sN+2  [α, 3, ic, oc]          weight transform, rows (of constants: made when packaging)
///   sN+3  [α, α, ic, oc]          weight transform, columns
///   sN+4  [α, α, n, th, tw, oc]   batched product
///   sN+5  [n, th, tw, m, α, oc]   output transform, rows
/// and the Stage itself becomes the output transform's columns. Errors: the Stage has another form,
/// m is neither.
absl::Status RewriteAsWinograd(Schedule& schedule, int stage, int64_t m,
                               const std::string& first_name);

/// The first Stage that RewriteAsWinograd can rewrite, or -1.
int FindWinogradStage(const ir::Workload& workload);

}  // namespace hone::schedule
