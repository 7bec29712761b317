#include "runtime/context.h"

#include <utility>

#include "base/core/status_macros.h"
#include "runtime/message.h"
#include "runtime/plan_check.h"

namespace hone::runtime {
namespace {

bool Overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto a_begin = reinterpret_cast<uintptr_t>(a);
  const auto b_begin = reinterpret_cast<uintptr_t>(b);
  return a_bytes > 0 && b_bytes > 0 && a_begin < b_begin + b_bytes && b_begin < a_begin + a_bytes;
}

size_t SizeOf(const ir::PlanValue& value) {
  return static_cast<size_t>(*DenseBytes(value.dtype, value.shape));  // the loader has checked it
}

template <typename Buffer>
Status CheckSizes(const std::vector<ir::PlanValue>& values, std::span<const Buffer> buffers,
                  const char* what) {
  if (buffers.size() != values.size()) {
    return Invalid("the model has ", values.size(), " ", what, "s, ", buffers.size(),
                   " were given");
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t bytes = SizeOf(values[i]);
    if (buffers[i].bytes != bytes) {
      return Invalid(what, " '", values[i].name, "' takes ", bytes, " bytes, ", buffers[i].bytes,
                     " were given");
    }
    if (bytes > 0 && buffers[i].data == nullptr) {
      return Invalid(what, " '", values[i].name, "' is a null pointer");
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Context>> Context::Create(std::shared_ptr<const Executable> executable,
                                                 const Options& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return Invalid(options.threads, " threads; 0 (as the package says) to ", kMaxThreads,
                   " are possible");
  }
  std::unique_ptr<Context> context(new Context);
  HONE_ASSIGN_OR_RETURN(context->prepared_, executable->loaded().Prepare(options));
  context->executable_ = std::move(executable);
  return context;
}

Status Context::CheckBuffers(std::span<const InputBuffer> inputs,
                             std::span<const OutputBuffer> outputs) const {
  const ir::Plan& plan = executable_->plan();
  HONE_RETURN_IF_ERROR(CheckSizes(plan.inputs, inputs, "input"));
  HONE_RETURN_IF_ERROR(CheckSizes(plan.outputs, outputs, "output"));
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (Overlap(outputs[i].data, outputs[i].bytes, inputs[j].data, inputs[j].bytes)) {
        return Invalid("the memory of output '", plan.outputs[i].name, "' overlaps that of input '",
                       plan.inputs[j].name, "'");
      }
    }
    for (size_t j = 0; j < i; ++j) {
      if (Overlap(outputs[i].data, outputs[i].bytes, outputs[j].data, outputs[j].bytes)) {
        return Invalid("the memory of output '", plan.outputs[i].name,
                       "' overlaps that of output '", plan.outputs[j].name, "'");
      }
    }
  }
  return {};
}

Status Context::SetStream(void* stream) {
  const std::lock_guard<std::mutex> lock(run_mutex_);
  return prepared_->SetStream(stream);
}

Status Context::Run(std::span<const InputBuffer> inputs, std::span<const OutputBuffer> outputs) {
  HONE_RETURN_IF_ERROR(CheckBuffers(inputs, outputs));
  const std::lock_guard<std::mutex> lock(run_mutex_);
  return prepared_->Run(inputs, outputs);
}

}  // namespace hone::runtime
