#include "compiler/kernel_evaluator.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "fmt/core.h"

#include "base/status.h"
#include "ir/text.h"
#include "runtime/kernel.h"
#include "runtime/region.h"
#include "runtime/shared_object.h"

namespace hone::compiler {
namespace {

using graph::ConstantPtr;

int64_t SaturatingProduct(const std::vector<int64_t>& factors, int64_t start) {
  int64_t product = start;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product))
      return std::numeric_limits<int64_t>::max();
  }
  return product;
}

graph::TensorType TypeOf(const ir::Tensor& tensor) { return {tensor.dtype, tensor.shape}; }

// Tensor ids in the order of Evaluate's arguments.
std::vector<int> ArgumentIds(const ir::Workload& workload) {
  std::vector<int> ids = workload.Inputs();
  const std::vector<int> constants = workload.Constants();
  ids.insert(ids.end(), constants.begin(), constants.end());
  return ids;
}

absl::Status CheckArguments(const ir::Workload& workload, const std::vector<ConstantPtr>& tensors) {
  const std::vector<int> ids = ArgumentIds(workload);
  if (ids.size() != tensors.size()) {
    return absl::InternalError(
        fmt::format("a workload of {} arguments is evaluated on {}", ids.size(), tensors.size()));
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    const ir::Tensor& wanted = workload.tensors[ids[i]];
    if (tensors[i]->type != TypeOf(wanted) ||
        static_cast<int64_t>(tensors[i]->bytes.size()) != wanted.Bytes()) {
      return absl::InternalError(
          fmt::format("argument {} ({}) has another type than given", i, wanted.name));
    }
  }
  return absl::OkStatus();
}

// Memory for one buffer of a kernel, 64-aligned and zero; a constant's bytes may be no multiple of
// it.
absl::StatusOr<runtime::Region> Allocate(int64_t bytes) {
  Result<runtime::Region> region =
      runtime::Region::Allocate(static_cast<size_t>(bytes), "a tensor while compiling");
  if (!region.ok()) return ToAbsl(region.status());
  return *std::move(region);
}

ConstantPtr TakeResult(graph::TensorType type, runtime::Region region) {
  auto owner = std::make_shared<runtime::Region>(std::move(region));
  auto data = std::make_shared<graph::TensorData>();
  data->bytes = owner->span().first(static_cast<size_t>(type.Bytes()));
  data->type = std::move(type);
  data->owner = std::move(owner);
  return data;
}

}  // namespace

struct KernelEvaluator::Compiled {
  ir::Artifact artifact;
  std::vector<int> arguments;  ///< kernel input k is argument arguments[k] of Evaluate
  runtime::SharedObject code;
};

int64_t CountOperations(const ir::Workload& workload) {
  int64_t total = 0;
  for (const ir::Stage& stage : workload.stages) {
    const int64_t points = SaturatingProduct(stage.reduce, SaturatingProduct(stage.spatial, 1));
    if (__builtin_add_overflow(total, points, &total)) return std::numeric_limits<int64_t>::max();
  }
  return total;
}

KernelEvaluator::KernelEvaluator(measure::BuilderClient& builder) : builder_(builder) {}
KernelEvaluator::~KernelEvaluator() = default;

absl::StatusOr<std::vector<ConstantPtr>> KernelEvaluator::Evaluate(
    const ir::Workload& workload, const std::vector<ConstantPtr>& tensors) {
  HONE_RETURN_IF_ERROR(CheckArguments(workload, tensors));
  if (CountOperations(workload) < kCompileFromOperations) {
    return interpreter_.Evaluate(workload, tensors);
  }
  return RunCompiled(workload, tensors);
}

absl::StatusOr<const KernelEvaluator::Compiled*> KernelEvaluator::Compile(
    const ir::Workload& workload) {
  // As inputs, constants need no prologue.
  ir::Workload all_inputs = workload;
  for (ir::Tensor& tensor : all_inputs.tensors) {
    if (tensor.kind == ir::TensorKind::kConstant) tensor.kind = ir::TensorKind::kInput;
  }
  const std::string text = ir::ToText(all_inputs);
  const auto known = compiled_.find(text);
  if (known != compiled_.end()) return known->second.get();

  auto compiled = std::make_unique<Compiled>();
  const std::vector<int> ids = ArgumentIds(workload);
  for (const int tensor : all_inputs.Inputs()) {
    const auto found = std::find(ids.begin(), ids.end(), tensor);
    compiled->arguments.push_back(static_cast<int>(found - ids.begin()));
  }
  measure::BuildJob job{.target = kEvaluatorTarget, .kernels = {{text, "", {}, "evaluate"}}};
  HONE_ASSIGN_OR_RETURN(measure::BuildReply reply, builder_.Build(job));
  HONE_RETURN_IF_ERROR(reply.kernels.front().status);
  compiled->artifact = std::move(reply.kernels.front().artifact);
  if (!compiled->artifact.constants.empty() || !compiled->artifact.prologue.empty()) {
    return absl::InternalError("a workload without constants got a prologue");
  }
  Result<runtime::SharedObject> code =
      runtime::SharedObject::Load(std::as_bytes(std::span(reply.shared_object)), "hone-evaluate");
  HONE_RETURN_IF_ERROR(ToAbsl(code.status()));
  compiled->code = *std::move(code);
  return compiled_.emplace(text, std::move(compiled)).first->second.get();
}

absl::StatusOr<std::vector<ConstantPtr>> KernelEvaluator::RunCompiled(
    const ir::Workload& workload, const std::vector<ConstantPtr>& tensors) {
  HONE_ASSIGN_OR_RETURN(const Compiled* compiled, Compile(workload));
  const ir::Artifact& artifact = compiled->artifact;
  if (crew_ == nullptr) {
    Result<std::unique_ptr<runtime::Crew>> crew = runtime::Crew::Create({.threads = 1, .cpus = {}});
    HONE_RETURN_IF_ERROR(ToAbsl(crew.status()));
    crew_ = *std::move(crew);
  }
  Result<runtime::Kernel> kernel = runtime::Kernel::Resolve(artifact, compiled->code);
  HONE_RETURN_IF_ERROR(ToAbsl(kernel.status()));

  std::vector<void*> buffers;
  std::vector<runtime::Region> regions;
  for (const int argument : compiled->arguments) {
    // Copied: constants of a model file are neither aligned nor followed by memory of ours.
    const std::span<const std::byte> bytes = tensors[argument]->bytes;
    HONE_ASSIGN_OR_RETURN(regions.emplace_back(), Allocate(static_cast<int64_t>(bytes.size())));
    if (!bytes.empty()) std::memcpy(regions.back().data(), bytes.data(), bytes.size());
    buffers.push_back(regions.back().data());
  }
  const size_t first_output = regions.size();
  for (const auto* list : {&artifact.outputs, &artifact.workspace}) {
    for (const ir::ArtifactBuffer& buffer : *list) {
      HONE_ASSIGN_OR_RETURN(regions.emplace_back(), Allocate(buffer.bytes));
      buffers.push_back(regions.back().data());
    }
  }
  Result<runtime::Scratch> scratch = runtime::Scratch::Allocate(1, kernel->scratch_bytes());
  HONE_RETURN_IF_ERROR(ToAbsl(scratch.status()));
  const runtime::KernelFailure failure =
      kernel->Run({.buffers = buffers.data(), .scratch = &*scratch, .max_threads = 1}, *crew_);
  if (!failure.ok()) {
    return absl::OutOfRangeError(
        fmt::format("an index in operand {} is out of range", failure.input()));
  }
  std::vector<ConstantPtr> results;
  const std::vector<int> outputs = workload.Outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    results.push_back(
        TakeResult(TypeOf(workload.tensors[outputs[i]]), std::move(regions[first_output + i])));
  }
  return results;
}

}  // namespace hone::compiler
