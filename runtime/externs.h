#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/core/status.h"
#include "ir/plan.h"

// Routines for the operators that no loop nest expresses; a closed list. A step of the Plan states
// the routine's name, its attributes (all of them, in order) and the dense tensors it reads and
// writes:
//
//   TopK             {axis, largest, sorted}      x[..,n,..] -> values[..,k,..], indices i64
//   [..,k,..]
//       k is the output's extent. Equal values: the lower index first. NaN counts as the greatest.
//   ScatterElements  {axis, reduction}            data, indices i32|i64, updates -> y like data
//   ScatterND        {reduction}                  data, indices i32|i64 [.., q], updates -> y like
//   data
//       reduction: 0 none, 1 add, 2 mul, 3 max, 4 min. Negative indices count from the end; updates
//       are applied in order of their position; sums of f16 and bf16 are rounded after each.
//
// Axes are not negative. bool tensors take no reduction.
namespace hone::runtime {

/// A routine's way to run: `buffers` are the step's pointers, inputs then outputs.
/// kOutOfRange when an index points outside; the message names value and limits.
using ExternFunction = Status (*)(const ir::PlanStep& step, void* const* buffers);

struct ExternRoutine {
  std::string_view name;
  /// kInvalidArgument when attributes, ranks, shapes or element types do not fit together. Sizes
  /// have been checked before (CheckPlan).
  Status (*check)(const ir::PlanStep& step);
  ExternFunction run;
};

/// The routine of this name, or null. Thread-safe (an immutable table).
const ExternRoutine* FindExtern(std::string_view name);

/// The names of all of them, for messages: "TopK, ...".
std::string ExternNames();

// One source file each.
Status CheckTopK(const ir::PlanStep& step);
Status RunTopK(const ir::PlanStep& step, void* const* buffers);
Status CheckScatterElements(const ir::PlanStep& step);
Status RunScatterElements(const ir::PlanStep& step, void* const* buffers);
Status CheckScatterNd(const ir::PlanStep& step);
Status RunScatterNd(const ir::PlanStep& step, void* const* buffers);

}  // namespace hone::runtime
