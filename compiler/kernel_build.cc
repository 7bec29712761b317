#include "compiler/kernel_build.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "fmt/core.h"

#include "base/status.h"
#include "ir/narrow_target.h"

namespace hone::compiler {
namespace {

absl::Status BuildOne(const ModelKernel& kernel, const FoundTrace& trace, measure::BuildJob job,
                      measure::BuilderClient& builder, measure::BuiltKernel* built) {
  absl::StatusOr<measure::BuildReply> reply = builder.Build(job);
  absl::Status status = reply.ok() ? reply->kernels.front().status : reply.status();
  if (status.ok()) {
    *built = std::move(reply->kernels.front());
    return status;
  }
  return Annotate(status, fmt::format("kernel '{}' (workload {}, {} schedule)", kernel.name,
                                      kernel.hash, trace.rung));
}

}  // namespace

absl::StatusOr<std::vector<FoundTrace>> LookUpTraces(const std::vector<ModelKernel>& kernels,
                                                     const ir::Target& target,
                                                     TraceSource& traces) {
  std::vector<FoundTrace> found;
  traces.BeginModel(kernels);
  for (const ModelKernel& kernel : kernels) {
    HONE_ASSIGN_OR_RETURN(
        found.emplace_back(),
        traces.Find(kernel.workload, kernel.hash, ir::NarrowedTo(target, kernel.workload)));
  }
  traces.EndLookUps();
  return found;
}

absl::StatusOr<BuiltKernels> BuildKernels(const std::vector<ModelKernel>& kernels,
                                          const std::vector<FoundTrace>& traces,
                                          const ir::Target& target,
                                          measure::BuilderClient& builder) {
  HONE_CHECK(kernels.size() == traces.size());
  BuiltKernels result;
  if (kernels.empty()) return result;
  result.kernels.resize(kernels.size());
  std::vector<absl::Status> statuses(kernels.size());
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  const auto work = [&] {
    // Taken in order, so the first failure in this order is found whatever the threads do.
    for (size_t k = next++; k < kernels.size() && !failed; k = next++) {
      measure::BuildJob job{.target = ir::NarrowedTo(target, kernels[k].workload).text,
                            .output = measure::BuildOutput::kObjects};
      job.kernels.push_back(
          {kernels[k].text, traces[k].trace, kernels[k].binding, fmt::format("k{}", k)});
      statuses[k] = BuildOne(kernels[k], traces[k], std::move(job), builder, &result.kernels[k]);
      if (!statuses[k].ok()) failed = true;
    }
  };
  std::vector<std::thread> threads;
  const size_t others = std::min(static_cast<size_t>(builder.processes()), kernels.size()) - 1;
  for (size_t i = 0; i < others; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) HONE_RETURN_IF_ERROR(status);

  measure::LinkJob link{.target = target.text, .objects = {}};
  for (measure::BuiltKernel& kernel : result.kernels) {
    link.objects.push_back(std::move(kernel.object));
    kernel.object.clear();
  }
  HONE_ASSIGN_OR_RETURN(result.shared_object, builder.Link(link));
  return result;
}

}  // namespace hone::compiler
