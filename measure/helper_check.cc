#include "measure/helper_check.h"

#include <algorithm>
#include <string>

#include "fmt/core.h"

#include "base/status.h"

namespace hone::measure {
namespace {

constexpr int64_t kAnswerNs = 10'000'000'000;

absl::Status Unusable(const char* program, const absl::Status& why) {
  return absl::FailedPreconditionError(fmt::format(
      "{} does not work, and nothing can be measured without it: {}; install Hone as a whole (its "
      "helper programs belong in ../libexec/hone beside the folder of hone) and let `hone doctor` "
      "check this machine",
      program, StatusMessage(why)));
}

}  // namespace

absl::Status CheckBuilder(const BuilderOptions& builder, const MonotonicClock& clock) {
  BuilderOptions build = builder;
  build.processes = 1;
  build.job_timeout_ns = std::min(build.job_timeout_ns, kAnswerNs);
  const absl::Status builds = BuilderClient(build, clock).Build({}).status();
  return builds.ok() ? builds : Unusable("hone-builder", builds);
}

absl::Status CheckRunner(const RunnerOptions& runner, const MonotonicClock& clock) {
  RunnerOptions run = runner;
  run.time_timeout_ns = std::min(run.time_timeout_ns, kAnswerNs);
  const absl::Status runs = RunnerClient(run, clock).Ping();
  return runs.ok() ? runs : Unusable("hone-runner", runs);
}

absl::Status CheckHelpers(const BuilderOptions& builder, const RunnerOptions& runner,
                          const MonotonicClock& clock) {
  const absl::Status builds = CheckBuilder(builder, clock);
  return builds.ok() ? CheckRunner(runner, clock) : builds;
}

}  // namespace hone::measure
