#include "client/model_session.h"

#include <algorithm>
#include <cstring>

#include "base/core/cpu.h"
#include "base/status.h"
#include "runtime/spin_budget.h"

namespace hone::client {
namespace {

size_t NumBytes(const ir::PlanValue& value) {
  return static_cast<size_t>(graph::TensorType{value.dtype, value.shape}.Bytes());
}

}  // namespace

absl::StatusOr<ModelSession> ModelSession::Create(
    std::shared_ptr<const runtime::Executable> executable,
    runtime::Context::Options options) {
  if (options.threads == 0) options.threads = std::min(executable->threads(), UsableCores());
  // A measurement on fixed shares waits as a model does on a quiet machine.
  if (!options.fixed_shares) {
    options.spin_ns = runtime::SpinWithin(options.spin_ns, options.threads, CgroupCpuLimit());
  }
  ModelSession session;
  auto context = runtime::Context::Create(std::move(executable), options);
  if (!context.ok()) return ToAbsl(context.status());
  session.context_ = *std::move(context);
  for (const ir::PlanValue& value : session.plan().inputs) {
    auto region = runtime::Region::Allocate(NumBytes(value), "input " + value.name);
    if (!region.ok()) return ToAbsl(region.status());
    session.input_buffers_.push_back({region->data(), NumBytes(value)});
    session.inputs_.push_back(*std::move(region));
  }
  for (const ir::PlanValue& value : session.plan().outputs) {
    auto region = runtime::Region::Allocate(NumBytes(value), "output " + value.name);
    if (!region.ok()) return ToAbsl(region.status());
    session.output_buffers_.push_back({region->data(), NumBytes(value)});
    session.outputs_.push_back(*std::move(region));
  }
  return session;
}

void ModelSession::SetInputs(const NamedTensors& inputs) {
  HONE_CHECK(inputs.size() == inputs_.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const graph::TensorData& tensor = inputs[i].second;
    const ir::PlanValue& value = plan().inputs[i];
    HONE_CHECK(inputs[i].first == value.name && tensor.bytes.size() == NumBytes(value))
        << value.name;
    if (!tensor.bytes.empty()) {
      std::memcpy(inputs_[i].data(), tensor.bytes.data(), tensor.bytes.size());
    }
  }
}

void ModelSession::SetInput(size_t index, std::span<const std::byte> bytes) {
  HONE_CHECK(bytes.size() == NumBytes(plan().inputs[index])) << plan().inputs[index].name;
  if (!bytes.empty()) std::memcpy(inputs_[index].data(), bytes.data(), bytes.size());
}

absl::Status ModelSession::Run() { return ToAbsl(context_->Run(input_buffers_, output_buffers_)); }

std::span<const std::byte> ModelSession::OutputBytes(size_t index) const {
  return outputs_[index].span().first(NumBytes(plan().outputs[index]));
}

NamedTensors ModelSession::Outputs() const {
  NamedTensors tensors;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const ir::PlanValue& value = plan().outputs[i];
    graph::TensorData tensor;
    tensor.type = {value.dtype, value.shape};
    tensor.bytes = outputs_[i].span().first(NumBytes(value));
    tensors.emplace_back(value.name, std::move(tensor));
  }
  return tensors;
}

}  // namespace hone::client
