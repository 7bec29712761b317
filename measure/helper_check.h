#pragma once

#include "absl/status/status.h"

#include "base/core/clock.h"
#include "measure/builder_client.h"
#include "measure/runner_client.h"

namespace hone::measure {

/// Starts a helper program once and has it answer: whether anything can be measured here at all,
/// known before hours are spent. kFailedPrecondition names the program, why it does not work (it is
/// absent, broken, of another build, or the sandbox is refused) and what to do.
absl::Status CheckBuilder(const BuilderOptions& builder, const MonotonicClock& clock);
absl::Status CheckRunner(const RunnerOptions& runner, const MonotonicClock& clock);
/// Both.
absl::Status CheckHelpers(const BuilderOptions& builder, const RunnerOptions& runner,
                          const MonotonicClock& clock);

}  // namespace hone::measure
