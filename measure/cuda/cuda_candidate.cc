#include "measure/cuda/cuda_candidate.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/core/status_macros.h"
#include "ir/cuda/cuda_code.h"
#include "runtime/cuda/phase_launch.h"

namespace hone::measure {
namespace {

using runtime::CuHandle;
using runtime::CuPointer;
using runtime::CuResult;

// CUresult, cuda.h.
constexpr CuResult kInvalidValue = 1, kNoImage = 200, kNoBinary = 209, kInvalidPtx = 218,
                   kUnsupportedPtx = 222, kNotFound = 500, kIllegalAddress = 700,
                   kOutOfResources = 701, kTimeout = 702, kLaunchFailed = 719;
constexpr int kCaptureThreadLocal = 1;

// A graph takes about so long where its kernel is short: events tell half a microsecond.
constexpr int64_t kGraphNs = 200'000;
// From here on weights in the caches are no part that counts, and one launch is long enough.
constexpr int64_t kLongNs = 1'000'000;
// CheckTimes believes no more runs of a sample.
constexpr int64_t kMostRuns = 64, kMostCopies = 16;
constexpr int64_t kMostLaunches = 8192;

int64_t BytesOf(const std::vector<DeviceBuffer>& buffers) {
  int64_t bytes = 0;
  for (const DeviceBuffer& buffer : buffers) bytes += static_cast<int64_t>(buffer.bytes());
  return bytes;
}

}  // namespace

Status CudaCard::Check(CuResult code, const char* what) const {
  if (code == 0) return {};
  const Status status = driver->Check(code, what);
  const auto with = [&](StatusCode kind) { return Status(kind, status.message()); };
  switch (code) {
    case kInvalidValue:
    case kNoImage:
    case kNoBinary:
    case kInvalidPtx:
    case kUnsupportedPtx:
    case kNotFound:
    case kOutOfResources: return with(StatusCode::kInvalidArgument);
    case kTimeout: return with(StatusCode::kDeadlineExceeded);
    default: break;
  }
  if (code >= kIllegalAddress && code <= kLaunchFailed) return with(StatusCode::kAborted);
  if (status.code() == StatusCode::kResourceExhausted) return status;
  return with(StatusCode::kUnavailable);
}

Status CudaCard::Wait(const char* what) const {
  return Check(driver->cuStreamSynchronize(stream), what);
}

Result<std::unique_ptr<CudaStopwatch>> CudaStopwatch::Create(const CudaCard& card) {
  std::unique_ptr<CudaStopwatch> watch(new CudaStopwatch(card));
  for (CuHandle* event : {&watch->begin_, &watch->end_}) {
    HONE_RETURN_IF_ERROR(card.Check(card.driver->cuEventCreate(event, 0), "an event"));
  }
  return watch;
}

CudaStopwatch::~CudaStopwatch() {
  for (CuHandle event : {begin_, end_}) {
    if (event != nullptr) card_.driver->cuEventDestroy_v2(event);
  }
}

Status CudaStopwatch::Begin() const {
  return card_.Check(card_.driver->cuEventRecord(begin_, card_.stream), "an event");
}

Result<int64_t> CudaStopwatch::End() const {
  HONE_RETURN_IF_ERROR(card_.Check(card_.driver->cuEventRecord(end_, card_.stream), "an event"));
  HONE_RETURN_IF_ERROR(card_.Wait("running the kernel"));
  float milliseconds = 0;
  HONE_RETURN_IF_ERROR(
      card_.Check(card_.driver->cuEventElapsedTime(&milliseconds, begin_, end_), "an event"));
  return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6));
}

Result<std::shared_ptr<CudaData>> CudaData::Make(const PrepareJob& job, const CudaCard& card) {
  auto data = std::make_shared<CudaData>();
  HONE_ASSIGN_OR_RETURN(data->host, HostData::Make(job));
  for (const GuardedBuffer& input : data->host->inputs) {
    HONE_ASSIGN_OR_RETURN(
        DeviceBuffer buffer,
        DeviceBuffer::Allocate(*card.driver, static_cast<int64_t>(input.span().size()),
                               card.stream));
    HONE_RETURN_IF_ERROR(buffer.Upload(input.span(), card.stream));
    data->inputs.push_back(std::move(buffer));
  }
  return data;
}

Status CudaData::CheckUnchanged(const CudaCard& card) const {
  std::vector<std::byte> found;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::span<const std::byte> want = host->inputs[i].span();
    found.resize(want.size());
    HONE_RETURN_IF_ERROR(inputs[i].Download(found, card.stream));
    if (!std::equal(found.begin(), found.end(), want.begin())) {
      return Status(StatusCode::kAborted, "the kernel wrote to an input");
    }
    HONE_RETURN_IF_ERROR(inputs[i].CheckZones(card.stream));
  }
  return {};
}

Result<std::unique_ptr<CudaCandidate>> CudaCandidate::Load(const PrepareJob& job,
                                                           std::shared_ptr<CudaData> data,
                                                           const CudaCard& card,
                                                           runtime::Crew& crew) {
  std::unique_ptr<CudaCandidate> loaded(new CudaCandidate(std::move(data), card));
  loaded->artifact_ = job.kernel.artifact;
  HONE_RETURN_IF_ERROR(loaded->data_->host->Check(loaded->artifact_));
  HONE_RETURN_IF_ERROR(loaded->LoadCode(job.kernel.shared_object));
  HONE_ASSIGN_OR_RETURN(loaded->prologue_, loaded->data_->host->PrologueOf(job, crew));
  HONE_RETURN_IF_ERROR(loaded->AllocateOwn());
  return loaded;
}

CudaCandidate::~CudaCandidate() {
  if (graph_ != nullptr) card_.driver->cuGraphExecDestroy(graph_);
  if (module_ != nullptr) card_.driver->cuModuleUnload(module_);
}

Status CudaCandidate::LoadCode(const std::string& packed) {
  std::vector<std::string_view> modules;
  if (!ir::UnpackCudaModules(packed, &modules) || modules.size() != 1) {
    return Status(StatusCode::kInvalidArgument, "the code is no module for a GPU");
  }
  // The driver wants a text to end with a zero.
  const std::string image(modules.front());
  HONE_RETURN_IF_ERROR(
      card_.Check(card_.driver->cuModuleLoadDataEx(&module_, image.c_str(), 0, nullptr, nullptr),
                  "loading the kernel"));
  for (const ir::ArtifactPhase& phase : artifact_.phases) {
    CuHandle function = nullptr;
    HONE_RETURN_IF_ERROR(
        card_.Check(card_.driver->cuModuleGetFunction(&function, module_, phase.symbol.c_str()),
                    phase.symbol.c_str()));
    HONE_RETURN_IF_ERROR(card_.Check(runtime::PermitLaunch(*card_.driver, function, phase.launch),
                                     "the shared memory of its blocks"));
    functions_.push_back(function);
  }
  return {};
}

Status CudaCandidate::AllocateOwn() {
  const auto allocate = [&](int64_t bytes, Buffers* buffers) -> Status {
    HONE_ASSIGN_OR_RETURN(DeviceBuffer buffer,
                          DeviceBuffer::Allocate(*card_.driver, bytes, card_.stream));
    buffers->push_back(std::move(buffer));
    return {};
  };
  for (const ir::ArtifactBuffer& output : artifact_.outputs) {
    HONE_RETURN_IF_ERROR(allocate(output.bytes, &outputs_));
  }
  for (const ir::ArtifactBuffer& buffer : artifact_.workspace) {
    HONE_RETURN_IF_ERROR(allocate(buffer.bytes, &workspace_));
  }
  HONE_ASSIGN_OR_RETURN(result_,
                        DeviceBuffer::Allocate(*card_.driver, sizeof(int32_t), card_.stream));
  HONE_ASSIGN_OR_RETURN(Buffers constants, CopyConstants());
  constants_.push_back(std::move(constants));
  HONE_ASSIGN_OR_RETURN(stopwatch_, CudaStopwatch::Create(card_));
  return {};
}

Result<CudaCandidate::Buffers> CudaCandidate::CopyConstants() const {
  Buffers copies;
  const auto copy = [&](std::span<const std::byte> bytes) -> Status {
    HONE_ASSIGN_OR_RETURN(
        DeviceBuffer buffer,
        DeviceBuffer::Allocate(*card_.driver, static_cast<int64_t>(bytes.size()), card_.stream));
    HONE_RETURN_IF_ERROR(buffer.Upload(bytes, card_.stream));
    copies.push_back(std::move(buffer));
    return {};
  };
  for (size_t i = 0; i < artifact_.constants.size(); ++i) {
    // Those that the prologue alone reads have no bytes here.
    const auto bytes = static_cast<size_t>(artifact_.constants[i].bytes);
    HONE_RETURN_IF_ERROR(copy(data_->host->constants[i].span().first(bytes)));
  }
  for (const GuardedBuffer& buffer : *prologue_) HONE_RETURN_IF_ERROR(copy(buffer.span()));
  return copies;
}

Status CudaCandidate::Launch(int32_t phase, int64_t step, const Buffers& constants) const {
  std::vector<uint64_t> values;
  using List = const Buffers*;
  for (List buffers : {List(&data_->inputs), &constants, List(&outputs_), List(&workspace_)}) {
    for (const DeviceBuffer& buffer : *buffers) values.push_back(buffer.at());
  }
  values.push_back(static_cast<uint64_t>(step));
  values.push_back(result_.at());
  const auto at = static_cast<size_t>(phase);
  return card_.Check(
      runtime::LaunchPhase(*card_.driver, functions_[at], artifact_.phases[at].launch,
                           std::move(values), card_.stream),
      "launching the kernel");
}

Status CudaCandidate::LaunchAll(const Buffers& constants, Checks checks) const {
  bool first = checks == Checks::kYes;
  for (const ir::ArtifactStep& step : artifact_.steps) {
    for (int64_t repeat = 0; repeat < step.repeats; ++repeat) {
      for (int32_t phase = step.first; phase < step.first + step.count; ++phase) {
        HONE_RETURN_IF_ERROR(Launch(phase, repeat, constants));
        // Nothing is read at indices that the first phase refuses.
        if (std::exchange(first, false)) HONE_RETURN_IF_ERROR(CheckResult(phase));
      }
    }
  }
  return {};
}

Status CudaCandidate::CheckResult(int32_t phase) const {
  int32_t result = 0;
  HONE_RETURN_IF_ERROR(card_.Check(
      card_.driver->cuMemcpyDtoHAsync_v2(&result, result_.at(), sizeof result, card_.stream),
      "the kernel's result"));
  HONE_RETURN_IF_ERROR(card_.Wait("running the kernel"));
  return StatusOf({.result = result, .phase = phase});
}

Status CudaCandidate::CheckZones() const {
  for (const Buffers* buffers : {&outputs_, &workspace_, &constants_.front()}) {
    for (const DeviceBuffer& buffer : *buffers) {
      HONE_RETURN_IF_ERROR(buffer.CheckZones(card_.stream));
    }
  }
  HONE_RETURN_IF_ERROR(result_.CheckZones(card_.stream));
  return data_->CheckUnchanged(card_);
}

Status CudaCandidate::RunForCheck(const std::vector<GuardedBuffer>& outputs) {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    HONE_RETURN_IF_ERROR(outputs_[i].Poison(artifact_.outputs[i].dtype, card_.stream));
  }
  for (size_t i = 0; i < workspace_.size(); ++i) {
    HONE_RETURN_IF_ERROR(workspace_[i].Poison(artifact_.workspace[i].dtype, card_.stream));
  }
  HONE_RETURN_IF_ERROR(
      card_.Check(card_.driver->cuMemsetD8Async(result_.at(), 0, sizeof(int32_t), card_.stream),
                  "the kernel's result"));
  HONE_RETURN_IF_ERROR(LaunchAll(constants_.front(), Checks::kYes));
  HONE_RETURN_IF_ERROR(CheckResult(0));
  for (size_t i = 0; i < outputs.size(); ++i) {
    HONE_RETURN_IF_ERROR(outputs_[i].Download(outputs[i].span(), card_.stream));
  }
  return CheckZones();
}

int64_t CudaCandidate::NumLaunches() const {
  int64_t launches = 0;
  for (const ir::ArtifactStep& step : artifact_.steps) launches += step.repeats * step.count;
  return std::max<int64_t>(launches, 1);
}

/// How many launches, and how many copies of the constants they take in turns.
Status CudaCandidate::MakeGraph() {
  HONE_RETURN_IF_ERROR(stopwatch_->Begin());
  HONE_RETURN_IF_ERROR(LaunchAll(constants_.front(), Checks::kNo));
  HONE_ASSIGN_OR_RETURN(check_ns_, stopwatch_->End());
  const int64_t most = std::min(kMostRuns, std::max<int64_t>(kMostLaunches / NumLaunches(), 1));
  int64_t copies = 1;
  if (check_ns_ < kLongNs && most > 1) {
    const int64_t bytes = BytesOf(constants_.front());
    copies = bytes == 0 ? 1 : std::min({2 * card_.l2_bytes / bytes + 1, kMostCopies, most});
    const int64_t wanted = std::clamp<int64_t>(kGraphNs / check_ns_, 1, most);
    runs_of_graph_ = (wanted + copies - 1) / copies * copies;
    if (runs_of_graph_ > most) runs_of_graph_ -= copies;
  }
  while (static_cast<int64_t>(constants_.size()) < copies) {
    HONE_ASSIGN_OR_RETURN(Buffers more, CopyConstants());
    constants_.push_back(std::move(more));
  }
  const runtime::CudaDriver& driver = *card_.driver;
  HONE_RETURN_IF_ERROR(card_.Check(
      driver.cuStreamBeginCapture_v2(card_.stream, kCaptureThreadLocal), "a graph of launches"));
  Status status;
  for (int64_t run = 0; run < runs_of_graph_ && status.ok(); ++run) {
    status = LaunchAll(constants_[static_cast<size_t>(run % copies)], Checks::kNo);
  }
  CuHandle graph = nullptr;
  const CuResult captured = driver.cuStreamEndCapture(card_.stream, &graph);
  if (status.ok()) status = card_.Check(captured, "a graph of launches");
  if (status.ok()) {
    status =
        card_.Check(driver.cuGraphInstantiateWithFlags(&graph_, graph, 0), "a graph of launches");
  }
  if (graph != nullptr) driver.cuGraphDestroy(graph);
  return status;
}

Result<Race> CudaCandidate::Time(const TimingPolicy& policy) {
  if (graph_ == nullptr) HONE_RETURN_IF_ERROR(MakeGraph());
  Status status;
  const auto run = [&]() -> int64_t {
    if (status.ok()) status = stopwatch_->Begin();
    if (status.ok()) {
      status = card_.Check(card_.driver->cuGraphLaunch(graph_, card_.stream), "running the kernel");
    }
    if (!status.ok()) return 1;
    const Result<int64_t> took_ns = stopwatch_->End();
    status = took_ns.status();
    return took_ns.ok() ? std::max<int64_t>(*took_ns / runs_of_graph_, 1) : 1;
  };
  // A sample is one graph: its mean is what a run takes.
  TimingPolicy of_graphs = policy;
  of_graphs.warmups = 0;
  of_graphs.min_sample_ns = 0;
  of_graphs.max_total_ns = policy.max_total_ns / runs_of_graph_;
  int64_t warm_ns = 0;
  const bool warms_up = check_ns_ < kNoWarmupFromNs && policy.warmups > 0;
  if (warms_up) warm_ns = run();
  Race race = RunRace(of_graphs, check_ns_, run);
  if (!status.ok()) return status;
  race.runs = race.runs * runs_of_graph_ + (warms_up ? 1 : 0);
  race.timed_ns = race.timed_ns * runs_of_graph_ + warm_ns;
  // What the check saw may differ from what repeats leave behind.
  HONE_RETURN_IF_ERROR(CheckZones());
  return race;
}

}  // namespace hone::measure
