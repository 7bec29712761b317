#include "measure/built_artifact.h"

#include <utility>

#include "fmt/format.h"

#include "base/core/byte_stream.h"
#include "base/core/hash128.h"
#include "base/sha256.h"
#include "base/status.h"
#include "base/versions.h"
#include "ir/hash.h"
#include "ir/target.h"
#include "measure/artifact_wire.h"
#include "schedule/trace.h"

namespace hone::measure {
namespace {

// What the form is; a reader of another one refuses it.
constexpr uint32_t kArtifactForm = 2;

absl::Status Refuse(std::string_view what, std::string_view made, std::string_view wanted) {
  return absl::DataLossError(
      fmt::format("the artifact was made for {} '{}', not '{}'", what, made, wanted));
}

absl::Status CheckBuffers(const ir::Workload& workload, const std::vector<int>& tensors,
                          const std::vector<ir::ArtifactBuffer>& buffers, std::string_view what) {
  bool same = tensors.size() == buffers.size();
  for (size_t k = 0; same && k < tensors.size(); ++k) {
    const ir::Tensor& tensor = workload.tensors[static_cast<size_t>(tensors[k])];
    same = buffers[k].dtype == tensor.dtype && buffers[k].bytes == tensor.Bytes();
  }
  if (same) return absl::OkStatus();
  return absl::DataLossError(fmt::format("the artifact's {} are not those of its workload", what));
}

// The builder is another machine: what it says of its artifact is compared with what was asked for.
absl::Status CheckArtifact(const ir::Workload& workload, const std::string& target,
                           const std::string& trace, const BuiltArtifact& made) {
  const ir::Artifact& artifact = made.kernel.artifact;
  if (artifact.builder != kBuilderVersion) {
    return Refuse("builder", std::to_string(artifact.builder), std::to_string(kBuilderVersion));
  }
  if (artifact.target != target) return Refuse("target", artifact.target, target);
  const std::string hash = ir::StructuralHash(workload).ToHex();
  if (artifact.workload_hash != hash) return Refuse("workload", artifact.workload_hash, hash);
  if (artifact.trace_hash != HashBytes(made.trace).ToHex()) {
    return Refuse("trace", artifact.trace_hash, HashBytes(made.trace).ToHex());
  }
  if (!trace.empty() && made.trace != trace) {
    HONE_ASSIGN_OR_RETURN(const schedule::Trace wanted, schedule::ParseTrace(trace));
    if (schedule::ToText(wanted) != made.trace) {
      return absl::DataLossError("the artifact was made for another trace");
    }
  }
  if (!artifact.binding_hash.empty()) return Refuse("binding", artifact.binding_hash, "");
  HONE_RETURN_IF_ERROR(
      CheckBuffers(workload, workload.Outputs(), artifact.outputs, "output buffers"));
  return CheckBuffers(workload, workload.Inputs(), artifact.inputs, "input buffers");
}

}  // namespace

BuiltArtifact ArtifactOf(const BuiltCandidate& built) {
  return {.trace = built.trace,
          .kernel = built.job.kernel,
          .prologue = built.job.prologue,
          .prologue_arguments = built.job.prologue_arguments};
}

std::string EncodeBuiltArtifact(const BuiltArtifact& artifact) {
  ByteWriter writer;
  writer.Put(kArtifactForm);
  writer.PutText(artifact.trace);
  PutRunKernel(writer, artifact.kernel);
  PutRunKernel(writer, artifact.prologue);
  writer.PutList(artifact.prologue_arguments);
  return writer.Take();
}

absl::StatusOr<BuiltArtifact> DecodeBuiltArtifact(std::string_view bytes) {
  ByteReader reader(bytes);
  BuiltArtifact artifact;
  if (reader.Get<uint32_t>() != kArtifactForm) reader.Fail("another form");
  artifact.trace = reader.GetText();
  artifact.kernel = GetRunKernel(reader);
  artifact.prologue = GetRunKernel(reader);
  artifact.prologue_arguments = GetPositions(reader, artifact.kernel.artifact.constants.size());
  HONE_RETURN_IF_ERROR(ToAbsl(reader.Finish("artifact")));
  return artifact;
}

BuiltCandidate CandidateFrom(const ir::Workload& workload, const std::string& target,
                             const std::string& trace, uint64_t seed, std::string_view bytes) {
  BuiltCandidate built;
  ir::Target parsed;
  std::string why;
  if (!ir::ParseTarget(target, &parsed, &why) || !ir::HostCanRun(parsed, &why)) {
    built.error = {Outcome::kIllegal, why};
    return built;
  }
  absl::StatusOr<BuiltArtifact> made = DecodeBuiltArtifact(bytes);
  absl::Status fits = made.status();
  if (fits.ok()) fits = CheckArtifact(workload, target, trace, *made);
  if (!fits.ok()) {
    built.error = {Outcome::kWorkerLost, StatusMessage(fits)};
    return built;
  }
  FillRunJob(workload, parsed, seed, &built.job);
  built.trace = std::move(made->trace);
  built.job.kernel = std::move(made->kernel);
  if (!built.job.kernel.artifact.prologue.empty()) {
    // Prologues are shared by this name: only those that are the same to the byte.
    ByteWriter prologue;
    PutRunKernel(prologue, made->prologue);
    built.job.prologue_key =
        PrologueKey(built.job.kernel.artifact) + "/" + Sha256Hex(prologue.bytes());
    built.job.prologue = std::move(made->prologue);
    built.job.prologue_arguments = std::move(made->prologue_arguments);
  }
  built.error.outcome = Outcome::kOk;
  return built;
}

}  // namespace hone::measure
