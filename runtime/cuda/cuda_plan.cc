#include "runtime/cuda/cuda_plan.h"

#include <algorithm>
#include <utility>

#include "base/core/status_macros.h"
#include "runtime/cuda/phase_launch.h"
#include "runtime/message.h"
#include "runtime/plan_check.h"
#include "runtime/plan_error.h"

namespace hone::runtime {
namespace {

constexpr int kCaptureThreadLocal = 1;        // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
constexpr unsigned kStreamNonBlocking = 1;    // CU_STREAM_NON_BLOCKING
constexpr unsigned kEventRecordExternal = 1;  // CU_EVENT_RECORD_EXTERNAL
// CU_POINTER_ATTRIBUTE_MEMORY_TYPE and _DEVICE_ORDINAL, CU_MEMORYTYPE_DEVICE
constexpr int kMemoryType = 2, kDeviceOrdinal = 9;
constexpr unsigned kMemoryTypeDevice = 2;
constexpr CuPointer kAlignment = 64;  // that code may count on
constexpr unsigned char kPoison = 0xff;

size_t SizeOf(const ir::PlanValue& value) {
  return static_cast<size_t>(*DenseBytes(value.dtype, value.shape));  // the loader has checked it
}

/// Whether the first phase of the step's kernel looks whether indices lie in their range.
bool ChecksIndices(const ir::Plan& plan, size_t step) {
  return std::any_of(plan.names.begin(), plan.names.end(), [&](const ir::PlanName& name) {
    return static_cast<size_t>(name.step) == step && name.input >= 0;
  });
}

}  // namespace

CudaPlan::CudaPlan(const CudaModel& model, const RunOptions& options)
    : model_(model),
      driver_(*model.driver),
      poison_(options.poison),
      profiles_(options.profile_clock != nullptr) {}

CudaPlan::~CudaPlan() {
  driver_.cuCtxSetCurrent(model_.context);
  if (callers_ != nullptr) driver_.cuStreamSynchronize(callers_);
  DropGraphs();
  if (stream_ != nullptr) driver_.cuStreamDestroy_v2(stream_);
}

Result<std::unique_ptr<PreparedPlan>> CudaPlan::Create(const CudaModel& model,
                                                       const RunOptions& options) {
  std::unique_ptr<CudaPlan> plan(new CudaPlan(model, options));
  const CudaDriver& driver = *model.driver;
  HONE_RETURN_IF_ERROR(driver.Check(driver.cuCtxSetCurrent(model.context), "the GPU's context"));
  HONE_RETURN_IF_ERROR(plan->Allocate());
  plan->ListLaunches();
  std::vector<Place> own(plan->io_.size());
  for (size_t i = 0; i < own.size(); ++i) own[i].at = plan->io_[i].at();
  HONE_RETURN_IF_ERROR(plan->Use(std::move(own)));
  return std::unique_ptr<PreparedPlan>(std::move(plan));
}

Status CudaPlan::Allocate() {
  HONE_RETURN_IF_ERROR(
      driver_.Check(driver_.cuStreamCreate(&stream_, kStreamNonBlocking), "a stream"));
  const ir::Plan& plan = *model_.plan;
  HONE_ASSIGN_OR_RETURN(
      arena_, CudaMemory::Allocate(driver_, static_cast<size_t>(plan.arena_bytes), "the arena"));
  found_.resize(plan.steps.size());
  HONE_ASSIGN_OR_RETURN(results_, CudaMemory::Allocate(driver_, found_.size() * sizeof(int32_t),
                                                       "the results of kernels"));
  for (const auto* values : {&plan.inputs, &plan.outputs}) {
    for (const ir::PlanValue& value : *values) {
      HONE_ASSIGN_OR_RETURN(CudaMemory memory,
                            CudaMemory::Allocate(driver_, SizeOf(value), "inputs and outputs"));
      io_.push_back(std::move(memory));
    }
  }
  if (profiles_) step_times_ns_.resize(plan.steps.size());
  return {};
}

void CudaPlan::ListLaunches() {
  const ir::Plan& plan = *model_.plan;
  parts_.push_back({});
  for (size_t number = 0; number < plan.steps.size(); ++number) {
    const ir::Artifact& kernel = plan.kernels[static_cast<size_t>(plan.steps[number].kernel)];
    const bool checks = ChecksIndices(plan, number);
    for (const ir::ArtifactStep& step : kernel.steps) {
      for (int64_t repeat = 0; repeat < step.repeats; ++repeat) {
        for (int32_t phase = step.first; phase < step.first + step.count; ++phase) {
          launches_.push_back({number, phase, repeat});
          if (!checks || phase != 0) continue;
          parts_.back().end = launches_.size();
          parts_.push_back({.first = launches_.size()});
        }
      }
    }
  }
  parts_.back().end = launches_.size();
}

// In a graph as a step of its own: the device notes when it comes there.
Status CudaPlan::MarkTime() {
  if (!profiles_) return {};
  HONE_RETURN_IF_ERROR(
      driver_.Check(driver_.cuEventCreate(&events_.emplace_back(), 0), "an event"));
  return driver_.Check(
      driver_.cuEventRecordWithFlags(events_.back(), stream_, kEventRecordExternal), "an event");
}

Status CudaPlan::MakeGraphs() {
  for (Part& part : parts_) {
    if (part.first == part.end) continue;
    part.event = events_.size();
    HONE_RETURN_IF_ERROR(driver_.Check(
        driver_.cuStreamBeginCapture_v2(stream_, kCaptureThreadLocal), "a graph of the plan"));
    Status status;
    for (size_t i = part.first; i < part.end && status.ok(); ++i) {
      status = MarkTime();
      if (status.ok()) status = Submit(launches_[i]);
    }
    if (status.ok()) status = MarkTime();
    CuHandle graph = nullptr;
    const CuResult captured = driver_.cuStreamEndCapture(stream_, &graph);
    if (status.ok()) status = driver_.Check(captured, "a graph of the plan");
    if (status.ok()) {
      status = driver_.Check(driver_.cuGraphInstantiateWithFlags(&part.graph, graph, 0),
                             "a graph of the plan");
    }
    if (graph != nullptr) driver_.cuGraphDestroy(graph);
    HONE_RETURN_IF_ERROR(status);
  }
  return {};
}

void CudaPlan::DropGraphs() {
  for (Part& part : parts_) {
    if (part.graph != nullptr) driver_.cuGraphExecDestroy(std::exchange(part.graph, nullptr));
  }
  for (CuHandle event : events_) driver_.cuEventDestroy_v2(event);
  events_.clear();
}

Status CudaPlan::Use(std::vector<Place> places) {
  const auto same = [](const Place& a, const Place& b) { return a.at == b.at; };
  const bool made = std::equal(places.begin(), places.end(), places_.begin(), places_.end(), same);
  if (!made && !places_.empty()) {
    // The graphs may still run.
    HONE_RETURN_IF_ERROR(driver_.Check(driver_.cuStreamSynchronize(stream()), "an earlier run"));
    DropGraphs();
  }
  places_ = std::move(places);
  if (made) return {};
  const Status status = MakeGraphs();
  // Half of the graphs are none.
  if (!status.ok()) places_.clear();
  return status;
}

Result<std::vector<CudaPlan::Place>> CudaPlan::PlacesOf(
    std::span<const InputBuffer> inputs, std::span<const OutputBuffer> outputs) const {
  std::vector<Place> places;
  for (const InputBuffer& input : inputs) places.push_back({.caller = input.data});
  for (const OutputBuffer& output : outputs) places.push_back({.caller = output.data});
  for (size_t i = 0; i < places.size(); ++i) {
    Place& place = places[i];
    place.at = io_[i].at();
    const auto address = reinterpret_cast<CuPointer>(place.caller);
    unsigned type = 0;
    int device = 0;
    // An error says that the driver does not know it: memory of the host.
    place.on_device = driver_.cuPointerGetAttribute(&type, kMemoryType, address) == 0 &&
                      type == kMemoryTypeDevice;
    if (!place.on_device) continue;
    if (driver_.cuPointerGetAttribute(&device, kDeviceOrdinal, address) == 0 && device != 0) {
      return Invalid("buffer ", i, " lies on GPU ", device, ", the model runs on GPU 0");
    }
    if (address % kAlignment == 0) place.at = address;
  }
  return places;
}

Status CudaPlan::SetStream(void* stream) {
  if (stream == callers_) return {};
  HONE_RETURN_IF_ERROR(driver_.Check(driver_.cuCtxSetCurrent(model_.context), "the GPU's context"));
  // Arena and graphs are those of runs in the stream of before.
  HONE_RETURN_IF_ERROR(
      driver_.Check(driver_.cuStreamSynchronize(this->stream()), "an earlier run"));
  callers_ = stream;
  return {};
}

CuPointer CudaPlan::AddressOf(int32_t id) const {
  if (id == ir::kNoPlanBuffer) return 0;
  const ir::Plan& plan = *model_.plan;
  const ir::PlanBuffer& buffer = plan.buffers[static_cast<size_t>(id)];
  const auto offset = static_cast<size_t>(buffer.offset);
  switch (buffer.kind) {
    case ir::PlanBufferKind::kArena: return arena_.at() + offset;
    case ir::PlanBufferKind::kConstant: return model_.constants + offset;
    case ir::PlanBufferKind::kInput: return places_[offset].at;
    case ir::PlanBufferKind::kOutput: return places_[plan.inputs.size() + offset].at;
  }
  return 0;
}

Status CudaPlan::Submit(const Launch& launch) const {
  const ir::PlanStep& step = model_.plan->steps[launch.step];
  const auto kernel = static_cast<size_t>(step.kernel);
  const auto phase = static_cast<size_t>(launch.phase);
  std::vector<uint64_t> values;
  for (const int32_t id : step.buffers) values.push_back(AddressOf(id));
  values.push_back(static_cast<uint64_t>(launch.repeat));
  values.push_back(results_.at() + launch.step * sizeof(int32_t));
  return driver_.Check(
      LaunchPhase(driver_, model_.functions[kernel][phase],
                  model_.plan->kernels[kernel].phases[phase].launch, std::move(values), stream_),
      "launching a kernel");
}

Status CudaPlan::Finish() {
  HONE_RETURN_IF_ERROR(
      driver_.Check(driver_.cuMemcpyDtoHAsync_v2(found_.data(), results_.at(),
                                                 found_.size() * sizeof(int32_t), stream()),
                    "the results of kernels"));
  HONE_RETURN_IF_ERROR(driver_.Check(driver_.cuStreamSynchronize(stream()), "running the model"));
  for (size_t step = 0; step < found_.size(); ++step) {
    if (found_[step] != 0) {
      return KernelError(*model_.plan, step, {.result = found_[step], .phase = 0});
    }
  }
  return {};
}

Status CudaPlan::RunParts() {
  for (const Part& part : parts_) {
    if (part.graph == nullptr) continue;
    HONE_RETURN_IF_ERROR(
        driver_.Check(driver_.cuGraphLaunch(part.graph, stream()), "launching the plan"));
    if (&part != &parts_.back()) HONE_RETURN_IF_ERROR(Finish());
  }
  return {};
}

Status CudaPlan::ReadTimes() {
  std::fill(step_times_ns_.begin(), step_times_ns_.end(), 0);
  int64_t total_ns = 0;
  for (const Part& part : parts_) {
    for (size_t i = part.first; i < part.end; ++i) {
      const CuHandle* const event = &events_[part.event + i - part.first];
      float milliseconds = 0;
      HONE_RETURN_IF_ERROR(
          driver_.Check(driver_.cuEventElapsedTime(&milliseconds, event[0], event[1]), "an event"));
      const auto took_ns = static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
      step_times_ns_[launches_[i].step] += took_ns;
      total_ns += took_ns;
    }
  }
  device_ns_ = total_ns;
  return {};
}

Status CudaPlan::Prepare() {
  const auto bytes = static_cast<size_t>(model_.plan->arena_bytes);
  if (poison_ && bytes > 0) {
    HONE_RETURN_IF_ERROR(driver_.Check(
        driver_.cuMemsetD8Async(arena_.at(), kPoison, bytes, stream()), "filling the arena"));
  }
  if (found_.empty()) return {};
  return driver_.Check(
      driver_.cuMemsetD8Async(results_.at(), 0, found_.size() * sizeof(int32_t), stream()),
      "the results of kernels");
}

Status CudaPlan::CopyIn(std::span<const InputBuffer> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto from = reinterpret_cast<CuPointer>(inputs[i].data);
    if (inputs[i].bytes == 0 || places_[i].at == from) continue;
    const CuResult copied =
        places_[i].on_device
            ? driver_.cuMemcpyDtoDAsync_v2(io_[i].at(), from, inputs[i].bytes, stream())
            : driver_.cuMemcpyHtoDAsync_v2(io_[i].at(), inputs[i].data, inputs[i].bytes, stream());
    HONE_RETURN_IF_ERROR(driver_.Check(copied, "copying an input"));
  }
  return {};
}

Status CudaPlan::CopyOut(std::span<const OutputBuffer> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Place& place = places_[model_.plan->inputs.size() + i];
    const auto to = reinterpret_cast<CuPointer>(outputs[i].data);
    if (outputs[i].bytes == 0 || place.at == to) continue;
    const CuResult copied =
        place.on_device
            ? driver_.cuMemcpyDtoDAsync_v2(to, place.at, outputs[i].bytes, stream())
            : driver_.cuMemcpyDtoHAsync_v2(outputs[i].data, place.at, outputs[i].bytes, stream());
    HONE_RETURN_IF_ERROR(driver_.Check(copied, "copying an output"));
  }
  return {};
}

Status CudaPlan::Run(std::span<const InputBuffer> inputs, std::span<const OutputBuffer> outputs) {
  HONE_RETURN_IF_ERROR(driver_.Check(driver_.cuCtxSetCurrent(model_.context), "the GPU's context"));
  HONE_ASSIGN_OR_RETURN(std::vector<Place> places, PlacesOf(inputs, outputs));
  const bool all_there =
      std::all_of(places.begin(), places.end(), [](const Place& place) { return place.on_device; });
  HONE_RETURN_IF_ERROR(Use(std::move(places)));
  HONE_RETURN_IF_ERROR(Prepare());
  HONE_RETURN_IF_ERROR(CopyIn(inputs));
  HONE_RETURN_IF_ERROR(RunParts());
  HONE_RETURN_IF_ERROR(CopyOut(outputs));
  // Kernels stop for bad indices alone, which the host has looked at between parts.
  if (callers_ != nullptr && all_there && !profiles_) return {};
  HONE_RETURN_IF_ERROR(
      found_.empty() ? driver_.Check(driver_.cuStreamSynchronize(stream()), "running the model")
                     : Finish());
  return profiles_ ? ReadTimes() : Status();
}

}  // namespace hone::runtime
