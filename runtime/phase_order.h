#pragma once

#include <cstdint>
#include <vector>

#include "ir/plan.h"

namespace hone::runtime {

/// What runs between two barriers of a plan.
struct PhaseGroup {
  enum class Kind : uint8_t {
    kPhases,    ///< one or several that are joined
    kRepeated,  ///< an ArtifactStep with a barrier after each of its phases, repeats times
    kExtern,
  };
  Kind kind = Kind::kPhases;
  int32_t step = 0;                  ///< index into Plan::steps, of the first phase
  int32_t number = 0;                ///< kRepeated: of the ArtifactStep
  std::vector<ir::PlanJoin> phases;  ///< kPhases, kRepeated: in order
  int64_t extent = 1;                ///< kPhases: of the parallel loop of each
  int32_t threads = 1;               ///< kPhases: the most that one of them is worth

  bool is_parallel() const { return kind == Kind::kPhases && extent > 1 && threads > 1; }
  /// Whether what another group does can follow part by part, as far as loops tell.
  bool Fits(const PhaseGroup& next) const {
    return is_parallel() && next.is_parallel() && extent == next.extent;
  }
};

/// A plan that refers only to what it has, in the order in which it runs. Joins of phases that do
/// not fit, or between which a loop or a branch begins or ends, are passed over; without
/// `across_steps`, so are those of different steps.
std::vector<PhaseGroup> PhaseOrder(const ir::Plan& plan, bool across_steps = true);

/// How often threads wait for each other in a run, and how often they need not, because a phase is
/// joined to the one before.
struct BarrierCount {
  int64_t barriers = 0;
  int64_t left_out = 0;
};
BarrierCount CountBarriers(const ir::Plan& plan);

}  // namespace hone::runtime
