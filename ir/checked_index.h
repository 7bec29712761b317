#pragma once

#include <cstdint>
#include <vector>

#include "ir/workload.h"

// Indices that come from data. A Stage clamps them to the valid range, so that wrong data never
// read other memory. The kernel checks them once, before its loops, and ends the run with an error
// when one is out of range.
namespace hone::ir {

/// `raw` (i64) as an index into `extent` elements: negative ones count from the end, and those out
/// of range are clamped. CheckedIndices recognises this form.
Expr CheckedIndexOf(const Expr& raw, int64_t extent);

/// One index that a Stage takes from a Workload's inputs.
struct CheckedIndex {
  int stage = -1;  ///< over whose axes `value` and `condition` are
  Expr value;      ///< in range when 0 <= value < extent; loads inputs, constants, immediates only
  int64_t extent = 0;
  Expr condition;       ///< it is read where this holds; null: everywhere
  int tensor = -1;      ///< the input to blame
  bool direct = false;  ///< the index is an element of `tensor`, unchanged
};

/// All indices of a Workload that depend on an input's values and can be computed from inputs,
/// constants and element-wise Stages; each value once.
std::vector<CheckedIndex> CheckedIndices(const Workload& workload);

/// Whether a Stage draws an index inside that is none of these: what it is computed by reduces, or
/// is a longer way. Nobody would say that it is out of range.
bool HasUncheckedIndex(const Workload& workload);

}  // namespace hone::ir
