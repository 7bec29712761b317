#include "client/emitted_code.h"

#include <utility>

#include "base/status.h"
#include "ir/stmt.h"
#include "ir/text.h"
#include "schedule/lower.h"

namespace hone::client {
namespace {

absl::StatusOr<std::string> LoopNestText(const ir::Workload& workload, const std::string& text,
                                         const ir::Target& target) {
  HONE_ASSIGN_OR_RETURN(const schedule::Trace trace, text.empty()
                                                         ? schedule::DefaultTrace(workload, target)
                                                         : schedule::ParseTrace(text));
  HONE_ASSIGN_OR_RETURN(const schedule::Lowered lowered,
                        schedule::LowerTrace(workload, trace, target, {}, "kernel"));
  return ir::ToText(lowered.nest);
}

}  // namespace

absl::StatusOr<std::string> EmittedCode(const std::string& form, const ir::Workload& workload,
                                        const std::string& trace, const ir::Target& target,
                                        measure::BuilderClient& builder) {
  if (form == "nest") return LoopNestText(workload, trace, target);
  measure::BuildJob job;
  job.target = target.text;
  job.kernels = {{ir::ToText(workload), trace, {}, "kernel"}};
  job.output = measure::BuildOutput::kAssembly;
  HONE_ASSIGN_OR_RETURN(measure::BuildReply reply, builder.Build(job));
  if (reply.kernels.empty()) return absl::InternalError("the builder answered nothing");
  HONE_RETURN_IF_ERROR(reply.kernels[0].status);
  return std::move(reply.kernels[0].object);
}

}  // namespace hone::client
