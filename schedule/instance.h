#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"

#include "ir/expr.h"
#include "ir/index/simplify.h"
#include "schedule/schedule.h"

namespace hone::schedule {

/// Where an index may lie: [low, low + width), low an expression over the loop variables in force.
struct Span {
  ir::Expr low;
  int64_t width = 1;
};

/// One Stage being lowered at one place: the part of its domain to compute and which of its loops
/// are entered.
struct Instance {
  int stage = -1;
  std::vector<ir::Expr> low;    ///< per axis: where its part begins (reduce axes: 0)
  std::vector<int64_t> extent;  ///< per axis: how much of it
  struct Bound {
    bool fixed = false;
    ir::Expr value;  ///< in the loop's own units; for a two_sizes outer loop: where its part
                     ///< begins, in the parent's units
    int64_t inner_extent = 0;  ///< two_sizes outer loop: size of this part
  };
  std::vector<Bound> bound;  ///< per loop of the StageSchedule

  Instance(const Schedule& schedule, int stage_id);
};

/// One of the sibling loops that a loop becomes: [first, first + count) in units of the loop's
/// index.
struct Segment {
  int64_t first = 0;
  int64_t count = 0;
  int64_t start = 0;   ///< two_sizes: where the first iteration begins, in the parent's units
  int64_t height = 0;  ///< two_sizes: elements per part
  int64_t inside = 1;  ///< a fusion: iterations for each of the slowest loop, whose siblings it has
};

/// Extent of a loop in this instance, given the enclosing loops entered so far.
int64_t ExtentOf(const Schedule& schedule, const Instance& instance, int loop);
/// The siblings that a loop becomes (one when it is plain). InvalidArgument when an exact split
/// does not divide.
absl::StatusOr<std::vector<Segment>> SegmentsOf(const Schedule& schedule, const Instance& instance,
                                                int loop);
/// Enters one of them; `index` runs in [first, first + count).
void EnterLoop(const Schedule& schedule, Instance& instance, int loop, const Segment& segment,
               const ir::Expr& index);
void LeaveLoop(const Schedule& schedule, Instance& instance, int loop);
/// Where a loop's value lies now: one point when all that it was split or fused into is entered.
Span SpanOfLoop(const Schedule& schedule, const Instance& instance, int loop,
                const ir::VarRanges& ranges);
/// Where an axis's value lies now, its part's beginning included.
Span SpanOfAxis(const Schedule& schedule, const Instance& instance, int axis,
                const ir::VarRanges& ranges);

/// Bounds of an index expression whose variables 0…n-1 lie in `axes`; nothing when no bound with
/// constant width is known. `ranges` describes the loop variables inside the axes' lows; its list
/// is used as scratch and restored.
std::optional<Span> SpanOfIndex(const ir::Expr& index, const std::vector<Span>& axes,
                                ir::VarRanges& ranges);

}  // namespace hone::schedule
