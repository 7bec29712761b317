#pragma once

#include <cstdint>
#include <optional>

#include "db/lookup.h"
#include "schedule/space.h"

namespace hone::search {

/// The point of `space` with the nearest values to those of a near Workload's record; nothing where
/// the record's Trace is no point of its own Space any more, or `space` has no such Sketch. Whether
/// the point can be lowered is not checked.
std::optional<uint64_t> TransplantPoint(const db::NearCandidate& candidate,
                                        const schedule::Space& space);

}  // namespace hone::search
