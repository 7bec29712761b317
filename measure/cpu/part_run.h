#pragma once

#include <cstdint>

#include "base/core/clock.h"
#include "runtime/crew.h"
#include "runtime/kernel.h"

namespace hone::measure {

/// What a part of a kernel's work took.
struct PartTimes {
  int64_t ns = 0;
  double whole_ns = 0;  ///< what all of it takes, if the rest of each phase is like its part
};

/// Which part: `share` of the iterations that a thread has of each phase, at least one, one after
/// another; of a step that is repeated, such a share of the repeats, the first ones.
struct PartPlace {
  double share = 1;
  /// Where among a thread's iterations they begin: 0 with its first one, 1 so that they end with
  /// its last one.
  double place = 0.5;
};

/// Runs a part of the kernel, each thread with its share as in a fixed run. What a phase reads of
/// an earlier one may lie outside the part: its values are whatever is there.
runtime::KernelFailure RunPart(const runtime::Kernel& kernel, const PartPlace& part,
                               const runtime::Kernel::Arguments& arguments, runtime::Crew& crew,
                               const MonotonicClock& clock, PartTimes* times);

}  // namespace hone::measure
