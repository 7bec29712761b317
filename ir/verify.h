#pragma once

#include "base/status.h"
#include "ir/workload.h"

namespace hone::ir {

/// Most elements of a tensor, and of the spatial axes of a Stage.
inline constexpr int64_t kMaxElements = int64_t{1} << 40;

/// Whether a Workload means something; everything after this may rely on it:
///   extents are at least 1, at most kMaxRank dimensions, element counts below kMaxElements;
///   every Stage tensor is made by exactly one Stage, with the dtype and shape of its body and
///   axes; a Stage loads only from Stages before it, except that a scan's Stage loads its region's
///   tensors at t - c with c >= 1, and nothing else makes a cycle; a region's Stages stand together
///   and share T; every index of every load and store map is provably in range, or its load is in
///   the branch of a select whose condition says so; an index that is loaded has the range of its
///   tensor; store maps are on outputs that nobody reads, and injective (proved by trying all
///   points up to 2^14).
/// Errors: kInvalidArgument naming the Stage or tensor, what is wrong, and the expression.
absl::Status Verify(const Workload& workload);

}  // namespace hone::ir
