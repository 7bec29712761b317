#pragma once

#include <cstdint>
#include <vector>

#include "ir/index/simplify.h"
#include "ir/workload.h"

namespace hone::schedule {

/// A load in a Stage's body and how far one step along each axis moves it; `linear` false: no
/// constant stride.
struct Access {
  int tensor = -1;
  std::vector<ir::Expr> indices;
  std::vector<int64_t> stride;  ///< elements, per axis of the Stage
  std::vector<bool> linear;     ///< per axis
  /// Per axis: over how many consecutive iterations, from a multiple of that many on, the load
  /// stays where it is (as the input of a grouped convolution along its output channels); 1: moves.
  std::vector<int64_t> block;
  bool guarded = false;           ///< stands under a select
  std::vector<bool> guard_moves;  ///< per axis: whether a condition that it stands under does
  bool DependsOn(int axis) const { return !linear[axis] || stride[axis] != 0; }
  /// Whether the lanes of a vector along this axis read one element.
  bool SharedAlong(int axis) const { return !DependsOn(axis) || block[axis] % kSharedBlock == 0; }
  static constexpr int64_t kSharedBlock = 8;
};
std::vector<Access> AccessesOf(const ir::Workload& workload, const ir::Stage& stage);
/// The axes of a Stage's body as variables: spatial ones, then reduce axes.
ir::VarRanges RangesOf(const ir::Stage& stage);

}  // namespace hone::schedule
