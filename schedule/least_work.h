#pragma once

#include "ir/target.h"
#include "ir/workload.h"

// Lower bounds of the work of any schedule of a Workload. Unlike a roofline they allow for what
// schedules can save (Winograd), and they need no probes, so the numbers are the same on every
// machine.
namespace hone::schedule {

/// Arithmetic as time of an f32 multiply-add unit: two for each multiply-add of the Workload's
/// contractions, a quarter of that where Winograd's F(4×4) may be used or where the factors are
/// integers (one instruction multiplies four times as many), half where they are narrow floats.
/// Products whose scores a causal mask hides may be left out.
/// What else it computes is not counted, and no memory. 0: it has no contraction.
double LeastFlop(const ir::Workload& workload);

/// A time that no schedule is below, ns, by the target's nominal peaks: LeastFlop, or moving each
/// byte once from what a generous cache holds. What tasks are chosen by, here and on a farm.
double LeastNs(const ir::Workload& workload, const ir::Target& target);

}  // namespace hone::schedule
