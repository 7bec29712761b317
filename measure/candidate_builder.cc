#include "measure/candidate_builder.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

#include "base/core/hash128.h"
#include "base/status.h"
#include "ir/hash.h"
#include "ir/kept_panels.h"
#include "ir/target.h"
#include "ir/text.h"

namespace hone::measure {
namespace {

// Prologues run in untimed set-up; every machine that tunes runs this.
constexpr char kPrologueTarget[] = "cpu:avx2,threads=1";
constexpr size_t kMaxPrologues = 256;

Outcome OutcomeOfBuilder(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDeadlineExceeded: return Outcome::kBuildTimeout;
    case absl::StatusCode::kResourceExhausted: return Outcome::kOutOfMemory;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kDataLoss: return Outcome::kBuildCrashed;
    // No builder could be started, or the machine killed it: this says nothing about the candidate.
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied: return Outcome::kWorkerLost;
    default: return Outcome::kBuildFailed;
  }
}

Outcome OutcomeOfKernel(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument: return Outcome::kIllegal;
    // Without room to link nothing was learnt about the candidate.
    case absl::StatusCode::kUnavailable: return Outcome::kWorkerLost;
    default: return Outcome::kBuildFailed;
  }
}

AttemptError Refuse(Outcome outcome, const absl::Status& status) {
  return {outcome, StatusMessage(status)};
}

}  // namespace

std::vector<RunTensor> RunTensorsOf(const ir::Workload& workload, const std::vector<int>& tensors) {
  std::vector<RunTensor> result;
  for (const int id : tensors) {
    const ir::Tensor& tensor = workload.tensors[id];
    ir::ValueRange range = tensor.range;
    if (range == ir::ValueRange{}) {
      if (tensor.dtype == ir::DType::kI8) range = {-128, 128};
      if (tensor.dtype == ir::DType::kU8) range = {0, 256};
    }
    result.push_back(
        {tensor.dtype, tensor.Bytes(), range.low, range.high, ir::ZerosOf(tensor)});
  }
  return result;
}

void FillRunJob(const ir::Workload& workload, const ir::Target& target, uint64_t seed,
                PrepareJob* job) {
  job->seed = seed;
  job->threads = target.threads;
  job->data_key = fmt::format("{}/{}", ir::StructuralHash(workload).ToHex(), seed);
  job->inputs = RunTensorsOf(workload, workload.Inputs());
  job->constants = RunTensorsOf(workload, workload.Constants());
}

// The same prologue on the same constants gives the same results, in this order.
std::string PrologueKey(const ir::Artifact& artifact) {
  return fmt::format("{}/{}/{}", HashBytes(artifact.prologue_workload).ToHex(),
                     fmt::join(artifact.prologue_inputs, ","),
                     fmt::join(artifact.prologue_outputs, ","));
}

CandidateBuilder::CandidateBuilder(BuilderClient& client, const MonotonicClock& clock,
                                   BuildFor machines)
    : client_(client), clock_(clock), machines_(machines) {}

BuiltCandidate CandidateBuilder::Build(const ir::Workload& workload, const std::string& target,
                                       const std::string& trace, uint64_t seed,
                                       const std::string& hook, Keep keep, KillSwitch* stop) {
  BuiltCandidate built;
  const int64_t start_ns = clock_.NowNs();
  ir::Target parsed;
  std::string why;
  if (!ir::ParseTarget(target, &parsed, &why) ||
      (machines_ == BuildFor::kThisMachine && !ir::HostCanRun(parsed, &why))) {
    built.error = {Outcome::kIllegal, why};
    return built;
  }
  const BuildJob job{.target = target,
                     .kernels = {{ir::ToText(workload), trace, {}, "candidate"}},
                     .test_hook = hook};
  absl::StatusOr<BuildReply> reply = client_.Build(job, keep, stop);
  built.build_ns = clock_.NowNs() - start_ns;
  if (!reply.ok()) {
    built.error = Refuse(OutcomeOfBuilder(reply.status()), reply.status());
    return built;
  }
  BuiltKernel& kernel = reply->kernels.front();
  if (!kernel.status.ok()) {
    built.error = Refuse(OutcomeOfKernel(kernel.status), kernel.status);
    return built;
  }
  built.trace = std::move(kernel.trace);
  FillRunJob(workload, parsed, seed, &built.job);
  built.job.kernel = {std::move(kernel.artifact), std::move(reply->shared_object)};
  const ir::Artifact& artifact = built.job.kernel.artifact;
  if (!artifact.prologue.empty()) {
    const absl::StatusOr<std::shared_ptr<const Prologue>> prologue =
        BuildPrologue(artifact.prologue_workload, stop);
    built.build_ns = clock_.NowNs() - start_ns;
    if (!prologue.ok()) {
      built.error =
          Refuse(OutcomeOfBuilder(prologue.status()), Annotate(prologue.status(), "its prologue"));
      return built;
    }
    built.job.prologue = (*prologue)->kernel;
    built.job.prologue_key = PrologueKey(artifact);
    for (const int argument : (*prologue)->arguments) {
      built.job.prologue_arguments.push_back(
          artifact.prologue_inputs.at(static_cast<size_t>(argument)));
    }
  }
  built.error.outcome = Outcome::kOk;
  return built;
}

absl::StatusOr<std::shared_ptr<const CandidateBuilder::Prologue>> CandidateBuilder::BuildPrologue(
    const std::string& text, KillSwitch* stop) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = prologues_.find(text);
    if (known != prologues_.end()) return known->second;
  }
  HONE_ASSIGN_OR_RETURN(ir::Workload workload, ir::ParseWorkload(text));
  std::vector<int> ids = workload.Inputs();
  for (const int constant : workload.Constants()) ids.push_back(constant);
  // As inputs, constants need no prologue of their own.
  for (ir::Tensor& tensor : workload.tensors) {
    if (tensor.kind == ir::TensorKind::kConstant) tensor.kind = ir::TensorKind::kInput;
  }
  auto prologue = std::make_shared<Prologue>();
  for (const int tensor : workload.Inputs()) {
    prologue->arguments.push_back(static_cast<int>(std::ranges::find(ids, tensor) - ids.begin()));
  }
  HONE_ASSIGN_OR_RETURN(BuildReply reply,
                        client_.Build({.target = kPrologueTarget,
                                       .kernels = {{ir::ToText(workload), "", {}, "prologue"}}},
                                      Keep::kYes, stop));
  HONE_RETURN_IF_ERROR(reply.kernels.front().status);
  prologue->kernel = {std::move(reply.kernels.front().artifact), std::move(reply.shared_object)};
  const std::lock_guard lock(mutex_);
  if (prologues_.size() >= kMaxPrologues) prologues_.clear();
  return prologues_.try_emplace(text, std::move(prologue)).first->second;
}

}  // namespace hone::measure
