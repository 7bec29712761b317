#include "runtime/kernel.h"

#include <algorithm>

#include "base/core/status_macros.h"

namespace hone::runtime {

Result<Kernel> Kernel::Resolve(const ir::Artifact& artifact, const SharedObject& code) {
  Kernel kernel;
  kernel.artifact_ = &artifact;
  for (const ir::ArtifactPhase& phase : artifact.phases) {
    HONE_ASSIGN_OR_RETURN(void* const address, code.Symbol(phase.symbol));
    kernel.phases_.push_back(reinterpret_cast<ir::PhaseFunction>(address));
  }
  kernel.sweeps_ = std::make_unique<Sweep[]>(kernel.phases_.size());
  return kernel;
}

int64_t Kernel::scratch_bytes() const {
  int64_t bytes = 0;
  for (const ir::ArtifactPhase& phase : artifact_->phases) {
    bytes = std::max(bytes, phase.scratch_bytes);
  }
  return bytes;
}

KernelFailure Kernel::Run(const Arguments& arguments, Crew& crew) const {
  crew.AskForThreads();
  for (const ir::ArtifactStep& step : artifact_->steps) {
    const KernelFailure failure = RunStep(step, arguments, crew);
    if (!failure.ok()) return failure;
  }
  return {};
}

KernelFailure Kernel::RunStep(const ir::ArtifactStep& step, const Arguments& arguments,
                              Crew& crew) const {
  for (int64_t repeat = 0; repeat < step.repeats; ++repeat) {
    for (int32_t number = step.first; number < step.first + step.count; ++number) {
      const auto i = static_cast<size_t>(number);
      const ir::ArtifactPhase& phase = artifact_->phases[i];
      const Sweep::Link link = {phases_[i], arguments.buffers};
      const Sweep::Failure failure =
          sweeps_[i].Run({.links = {&link, 1},
                          .extent = phase.parallel_extent,
                          .threads = std::min(phase.threads, arguments.max_threads),
                          .scratch = arguments.scratch,
                          .nodes = arguments.nodes,
                          .repeat = repeat,
                          .fixed = arguments.fixed},
                         crew);
      if (failure.ok()) [[likely]]
        continue;
      return {.result = failure.result, .phase = number};
    }
  }
  return {};
}

}  // namespace hone::runtime
