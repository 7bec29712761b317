#include "measure/host_data.h"

#include <cstring>
#include <utility>

#include "base/core/status_macros.h"
#include "measure/fill.h"
#include "runtime/launch_check.h"
#include "runtime/shared_object.h"

namespace hone::measure {
namespace {

constexpr int64_t kMaxPrologueBytes = int64_t{256} << 20;

Status Invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

Status MakeTensors(const std::vector<RunTensor>& tensors, uint64_t seed, int first,
                   std::vector<GuardedBuffer>* buffers) {
  for (const RunTensor& tensor : tensors) {
    HONE_ASSIGN_OR_RETURN(GuardedBuffer buffer, GuardedBuffer::Allocate(tensor.bytes));
    FillTensor(tensor.dtype, tensor.low, tensor.high, seed,
               first + static_cast<int>(buffers->size()), buffer.span());
    FillZeros(tensor.zeros, seed, first + static_cast<int>(buffers->size()), buffer.span());
    HONE_RETURN_IF_ERROR(buffer.Protect());
    buffers->push_back(std::move(buffer));
  }
  return {};
}

// The kernel's buffers are those of the tensors; a constant without bytes is the prologue's alone.
Status CheckBuffers(const std::vector<ir::ArtifactBuffer>& wanted,
                    const std::vector<GuardedBuffer>& given, const char* what) {
  if (wanted.size() != given.size()) {
    return Invalid("the kernel has " + std::to_string(wanted.size()) + " " + what +
                   ", its workload " + std::to_string(given.size()));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].bytes > static_cast<int64_t>(given[i].span().size())) {
      return Invalid("the kernel's " + std::string(what) + " are larger than its workload's");
    }
  }
  return {};
}

}  // namespace

Status StatusOf(const runtime::KernelFailure& failure) {
  if (failure.ok()) return {};
  if (failure.code() == ir::kPhaseBadIndex) {
    return Status(StatusCode::kOutOfRange, "phase " + std::to_string(failure.phase) +
                                               " found an index out of range in buffer " +
                                               std::to_string(failure.input()));
  }
  return Invalid("phase " + std::to_string(failure.phase) + " returned " +
                 std::to_string(failure.result));
}

Result<std::vector<GuardedBuffer>> AllocateAll(const std::vector<ir::ArtifactBuffer>& buffers) {
  std::vector<GuardedBuffer> result;
  for (const ir::ArtifactBuffer& buffer : buffers) {
    HONE_ASSIGN_OR_RETURN(GuardedBuffer memory, GuardedBuffer::Allocate(buffer.bytes));
    Poison(buffer.dtype, memory.span());
    result.push_back(std::move(memory));
  }
  return result;
}

Result<std::shared_ptr<HostData>> HostData::Make(const PrepareJob& job) {
  auto data = std::make_shared<HostData>();
  HONE_RETURN_IF_ERROR(MakeTensors(job.inputs, job.seed, 0, &data->inputs));
  HONE_RETURN_IF_ERROR(
      MakeTensors(job.constants, job.seed, static_cast<int>(job.inputs.size()), &data->constants));
  return data;
}

Status HostData::Check(const ir::Artifact& artifact) const {
  for (const ir::ArtifactPhase& phase : artifact.phases) {
    HONE_RETURN_IF_ERROR(runtime::CheckLaunch(artifact, phase.launch));
  }
  HONE_RETURN_IF_ERROR(CheckBuffers(artifact.inputs, inputs, "inputs"));
  return CheckBuffers(artifact.constants, constants, "constants");
}

Result<std::shared_ptr<const HostData::Buffers>> HostData::PrologueOf(const PrepareJob& job,
                                                                      runtime::Crew& crew) {
  if (job.kernel.artifact.prologue.empty()) return std::make_shared<const Buffers>();
  const auto known = prologues_.find(job.prologue_key);
  if (known != prologues_.end()) return known->second;
  HONE_ASSIGN_OR_RETURN(Buffers made, RunPrologue(job, crew));
  int64_t bytes = 0;
  for (const GuardedBuffer& buffer : made) bytes += static_cast<int64_t>(buffer.span().size());
  if (prologue_bytes_ + bytes > kMaxPrologueBytes) {
    prologues_.clear();
    prologue_bytes_ = 0;
  }
  prologue_bytes_ += bytes;
  return prologues_[job.prologue_key] = std::make_shared<const Buffers>(std::move(made));
}

Result<std::vector<void*>> HostData::ForParts(const ir::Artifact& artifact) {
  std::vector<void*> pointers;
  for (const auto* list : {&artifact.outputs, &artifact.workspace}) {
    for (const ir::ArtifactBuffer& buffer : *list) {
      const size_t i = pointers.size();
      if (i == for_parts_.size()) for_parts_.emplace_back();
      if (static_cast<int64_t>(for_parts_[i].span().size()) < buffer.bytes) {
        for_parts_[i] = {};
        HONE_ASSIGN_OR_RETURN(for_parts_[i], GuardedBuffer::Allocate(buffer.bytes));
        Poison(buffer.dtype, for_parts_[i].span());
      }
      // Its end is where the guard page follows.
      const size_t aligned = (static_cast<size_t>(buffer.bytes) + 63) / 64 * 64;
      const size_t all = (for_parts_[i].span().size() + 63) / 64 * 64;
      pointers.push_back(for_parts_[i].data() + (all - aligned));
    }
  }
  return pointers;
}

Result<HostData::Buffers> HostData::RunPrologue(const PrepareJob& job, runtime::Crew& crew) const {
  const ir::Artifact& artifact = job.kernel.artifact;
  HONE_ASSIGN_OR_RETURN(std::vector<GuardedBuffer> results, AllocateAll(artifact.prologue));
  const ir::Artifact& prologue = job.prologue.artifact;
  if (job.prologue_arguments.size() != prologue.inputs.size() || !prologue.constants.empty() ||
      !prologue.prologue.empty()) {
    return Invalid("the prologue does not fit its kernel");
  }
  HONE_ASSIGN_OR_RETURN(const runtime::SharedObject code,
                        runtime::SharedObject::Load(
                            std::as_bytes(std::span(job.prologue.shared_object)), "prologue"));
  HONE_ASSIGN_OR_RETURN(const runtime::Kernel kernel, runtime::Kernel::Resolve(prologue, code));
  std::vector<void*> pointers;
  for (const int32_t constant : job.prologue_arguments) {
    pointers.push_back(constants[static_cast<size_t>(constant)].data());
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<GuardedBuffer> outputs, AllocateAll(prologue.outputs));
  HONE_ASSIGN_OR_RETURN(const std::vector<GuardedBuffer> workspace,
                        AllocateAll(prologue.workspace));
  for (const auto* list : {&outputs, &workspace}) {
    for (const GuardedBuffer& buffer : *list) pointers.push_back(buffer.data());
  }
  HONE_ASSIGN_OR_RETURN(const runtime::Scratch scratch,
                        runtime::Scratch::AllocateGuarded(crew.threads(), kernel.scratch_bytes()));
  HONE_RETURN_IF_ERROR(StatusOf(kernel.Run({.buffers = pointers.data(),
                                            .scratch = &scratch,
                                            .max_threads = crew.threads(),
                                            .fixed = true},
                                           crew)));
  for (size_t i = 0; i < results.size(); ++i) {
    const auto output = static_cast<size_t>(artifact.prologue_outputs.at(i));
    if (output >= outputs.size() || outputs[output].span().size() < results[i].span().size()) {
      return Invalid("a result of the prologue is smaller than the kernel reads");
    }
    std::memcpy(results[i].data(), outputs[output].data(), results[i].span().size());
    HONE_RETURN_IF_ERROR(results[i].Protect());
  }
  return results;
}

}  // namespace hone::measure
