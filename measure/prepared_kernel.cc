#include "measure/prepared_kernel.h"

#include <cpuid.h>
#include <immintrin.h>

#include <cstring>
#include <utility>

#include "base/core/status_macros.h"
#include "measure/fill.h"

namespace hone::measure {
namespace {

constexpr size_t kLineBytes = 64;
// More than this leaves the caches by itself.
constexpr size_t kMaxFlushBytes = size_t{64} << 20;
constexpr int64_t kMaxPrologueBytes = int64_t{256} << 20;

Status Invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

bool HasClflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1U << 23)) != 0;
}

__attribute__((target("clflushopt"))) void FlushLinesFast(const std::byte* data, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kLineBytes) {
    _mm_clflushopt(const_cast<std::byte*>(data + at));
  }
}

void FlushLines(std::span<const std::byte> span) {
  static const bool fast = HasClflushopt();
  if (fast) return FlushLinesFast(span.data(), span.size());
  for (size_t at = 0; at < span.size(); at += kLineBytes) _mm_clflush(span.data() + at);
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

Status MakeTensors(const std::vector<RunTensor>& tensors, uint64_t seed, int first,
                   std::vector<GuardedBuffer>* buffers) {
  for (const RunTensor& tensor : tensors) {
    HONE_ASSIGN_OR_RETURN(GuardedBuffer buffer, GuardedBuffer::Allocate(tensor.bytes));
    FillTensor(tensor.dtype, tensor.low, tensor.high, seed,
               first + static_cast<int>(buffers->size()), buffer.span());
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

Status Failure(const runtime::KernelFailure& failure) {
  if (failure.ok()) return {};
  if (failure.code() == ir::kPhaseBadIndex) {
    return Status(StatusCode::kOutOfRange, "phase " + std::to_string(failure.phase) +
                                               " found an index out of range in buffer " +
                                               std::to_string(failure.input()));
  }
  return Invalid("phase " + std::to_string(failure.phase) + " returned " +
                 std::to_string(failure.result));
}

}  // namespace

Result<std::shared_ptr<RunData>> RunData::Make(const PrepareJob& job) {
  auto data = std::make_shared<RunData>();
  data->key = job.data_key;
  HONE_RETURN_IF_ERROR(MakeTensors(job.inputs, job.seed, 0, &data->inputs));
  HONE_RETURN_IF_ERROR(
      MakeTensors(job.constants, job.seed, static_cast<int>(job.inputs.size()), &data->constants));
  return data;
}

Result<std::unique_ptr<PreparedKernel>> PreparedKernel::Make(PrepareJob job,
                                                             std::shared_ptr<RunData> data,
                                                             runtime::Crew& crew) {
  std::unique_ptr<PreparedKernel> prepared(new PreparedKernel(std::move(data), crew));
  prepared->artifact_ = std::move(job.kernel.artifact);
  const ir::Artifact& artifact = prepared->artifact_;
  HONE_RETURN_IF_ERROR(CheckBuffers(artifact.inputs, prepared->data_->inputs, "inputs"));
  HONE_RETURN_IF_ERROR(CheckBuffers(artifact.constants, prepared->data_->constants, "constants"));
  HONE_ASSIGN_OR_RETURN(
      prepared->code_,
      runtime::SharedObject::Load(std::as_bytes(std::span(job.kernel.shared_object)), "candidate"));
  HONE_ASSIGN_OR_RETURN(prepared->kernel_, runtime::Kernel::Resolve(artifact, prepared->code_));
  HONE_RETURN_IF_ERROR(prepared->TakePrologue(job, *prepared->data_));
  HONE_RETURN_IF_ERROR(prepared->AllocateWorkspace());
  return prepared;
}

Status PreparedKernel::TakePrologue(const PrepareJob& job, RunData& data) {
  if (artifact_.prologue.empty()) {
    prologue_ = std::make_shared<const std::vector<GuardedBuffer>>();
    return {};
  }
  const auto known = data.prologues.find(job.prologue_key);
  if (known != data.prologues.end()) {
    prologue_ = known->second;
    return {};
  }
  HONE_ASSIGN_OR_RETURN(std::vector<GuardedBuffer> made, RunPrologue(job));
  prologue_ = std::make_shared<const std::vector<GuardedBuffer>>(std::move(made));
  int64_t bytes = 0;
  for (const GuardedBuffer& buffer : *prologue_)
    bytes += static_cast<int64_t>(buffer.span().size());
  if (data.prologue_bytes + bytes > kMaxPrologueBytes) {
    data.prologues.clear();
    data.prologue_bytes = 0;
  }
  data.prologues[job.prologue_key] = prologue_;
  data.prologue_bytes += bytes;
  return {};
}

Result<std::vector<GuardedBuffer>> PreparedKernel::RunPrologue(const PrepareJob& job) const {
  HONE_ASSIGN_OR_RETURN(std::vector<GuardedBuffer> results, AllocateAll(artifact_.prologue));
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
    pointers.push_back(data_->constants[static_cast<size_t>(constant)].data());
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<GuardedBuffer> outputs, AllocateAll(prologue.outputs));
  HONE_ASSIGN_OR_RETURN(const std::vector<GuardedBuffer> workspace,
                        AllocateAll(prologue.workspace));
  for (const auto* list : {&outputs, &workspace}) {
    for (const GuardedBuffer& buffer : *list) pointers.push_back(buffer.data());
  }
  HONE_ASSIGN_OR_RETURN(const runtime::Scratch scratch,
                        runtime::Scratch::AllocateGuarded(crew_.threads(), kernel.scratch_bytes()));
  HONE_RETURN_IF_ERROR(Failure(kernel.Run({.buffers = pointers.data(),
                                           .scratch = &scratch,
                                           .max_threads = crew_.threads(),
                                           .fixed = true},
                                          crew_)));
  for (size_t i = 0; i < results.size(); ++i) {
    const auto output = static_cast<size_t>(artifact_.prologue_outputs.at(i));
    if (output >= outputs.size() || outputs[output].span().size() < results[i].span().size()) {
      return Invalid("a result of the prologue is smaller than the kernel reads");
    }
    std::memcpy(results[i].data(), outputs[output].data(), results[i].span().size());
    HONE_RETURN_IF_ERROR(results[i].Protect());
  }
  return results;
}

Status PreparedKernel::AllocateWorkspace() {
  HONE_ASSIGN_OR_RETURN(workspace_, AllocateAll(artifact_.workspace));
  const int64_t bytes = kernel_.scratch_bytes();
  HONE_ASSIGN_OR_RETURN(scratch_, runtime::Scratch::AllocateGuarded(crew_.threads(), bytes));
  for (int thread = 0; thread < crew_.threads(); ++thread) {
    Poison(ir::DType::kF32,
           {static_cast<std::byte*>(scratch_.Of(thread)), static_cast<size_t>(bytes)});
  }
  return {};
}

std::vector<void*> PreparedKernel::Pointers(const std::vector<GuardedBuffer>& outputs) const {
  std::vector<void*> pointers;
  using List = const std::vector<GuardedBuffer>*;
  for (List list : {List(&data_->inputs), List(&data_->constants), prologue_.get(), &outputs,
                    List(&workspace_)}) {
    for (const GuardedBuffer& buffer : *list) pointers.push_back(buffer.data());
  }
  return pointers;
}

Status PreparedKernel::Run(const std::vector<void*>& pointers) const {
  // What a sample times is the work of so many threads, each with its share, whoever else runs.
  return Failure(kernel_.Run({.buffers = pointers.data(),
                              .scratch = &scratch_,
                              .max_threads = crew_.threads(),
                              .fixed = true},
                             crew_));
}

Status PreparedKernel::RunForCheck(int output_fd, const MonotonicClock& clock, const Hook& hook) {
  std::vector<GuardedBuffer> outputs;
  const std::vector<SharedBuffer> places = PlaceOutputs(artifact_.outputs);
  for (size_t i = 0; i < places.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(GuardedBuffer buffer, GuardedBuffer::MapShared(output_fd, places[i]));
    Poison(artifact_.outputs[i].dtype, buffer.span());
    outputs.push_back(std::move(buffer));
  }
  const std::vector<void*> pointers = Pointers(outputs);
  const int64_t start_ns = clock.NowNs();
  HONE_RETURN_IF_ERROR(Run(pointers));
  check_ns_ = clock.NowNs() - start_ns;
  if (hook) hook(outputs);
  return {};
}

void PreparedKernel::FlushConstants() const {
  size_t total = 0;
  for (const ir::ArtifactBuffer& constant : artifact_.constants) {
    total += static_cast<size_t>(constant.bytes);
  }
  for (const GuardedBuffer& buffer : *prologue_) total += buffer.span().size();
  if (total > kMaxFlushBytes) return;
  for (size_t i = 0; i < artifact_.constants.size(); ++i) {
    FlushLines(data_->constants[i].span().first(static_cast<size_t>(artifact_.constants[i].bytes)));
  }
  for (const GuardedBuffer& buffer : *prologue_) FlushLines(buffer.span());
  _mm_mfence();
}

Result<Race> PreparedKernel::Time(const TimingPolicy& policy, const MonotonicClock& clock) {
  if (outputs_.size() != artifact_.outputs.size()) {
    HONE_ASSIGN_OR_RETURN(outputs_, AllocateAll(artifact_.outputs));
  }
  const std::vector<void*> pointers = Pointers(outputs_);
  return RunRace(policy, check_ns_, [&] {
    if (policy.cold_constants) FlushConstants();
    // In a model the workers have just left another kernel: they are awake.
    if (crew_.threads() > 1) crew_.RunOnEach(crew_.threads(), [](int) {});
    const int64_t start_ns = clock.NowNs();
    static_cast<void>(Run(pointers));
    return clock.NowNs() - start_ns;
  });
}

}  // namespace hone::measure
