#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "measure/run_job.h"
#include "runtime/thread_pool.h"

namespace hone::measure {

/// Runs whole models in turns (A B, B A, A B, …), each on inputs from the job's seed: by package
/// the times of a run, one sample a round, and those of its kernels, unless a package has branches
/// that run side by side. A turn is as many runs as
/// reach a millisecond; the first of several is not counted, for another model has just had the
/// caches. Samples of one round pair. `pool` lends the threads. `timed` says whose time it is: the
/// host's clock from the call to the answer, or PreparedPlan::device_ns. Errors: those of
/// SeededPackage::Make and Context::Run.
enum class TimedBy { kHost, kDevice };
Result<std::vector<ModelTimes>> RunModelsInTurns(const ModelJob& job,
                                                 const std::shared_ptr<runtime::ThreadPool>& pool,
                                                 const MonotonicClock& clock,
                                                 TimedBy timed = TimedBy::kHost);

}  // namespace hone::measure
