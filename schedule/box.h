#pragma once

#include <cstdint>
#include <optional>

#include "ir/index/simplify.h"
#include "ir/workload.h"

// Rectangles of numbers in memory, which a machine copies by itself.
namespace hone::schedule {

/// A box of a matrix of all of a tensor's elements, `pitch` of them in a row.
struct Box {
  int64_t pitch = 0;
  ir::Expr row, column;  ///< of its first element
};

/// `flat`: the index of an element; `outer` and `inner`: variables of which it is a sum, of an
/// axis that runs over rows of a box and one that runs along them. `first`: where along `inner`'s
/// axis the box begins, of `extent` points. Nothing where elements do not lie so in a tensor of
/// `elements` numbers of 16 bits.
std::optional<Box> FindBox(const ir::Expr& flat, int outer, int inner, const ir::Expr& first,
                           int64_t extent, int64_t elements, const ir::VarRanges& ranges);

/// Whether a Stage's slices of this tensor along two of its axes will be boxes, where tensors lie
/// in memory without gaps.
bool AreBoxes(const ir::Workload& workload, const ir::Stage& stage, int tensor, int outer,
              int inner);

}  // namespace hone::schedule
