#include "measure/cuda/cuda_runner.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <utility>

#include "base/core/status_macros.h"
#include "ir/cuda/cuda_driver.h"
#include "measure/cuda/cuda_candidate.h"
#include "measure/cuda/nvml.h"
#include "measure/model_turns.h"

namespace hone::measure {
namespace {

using runtime::CudaDriver;
using runtime::CuHandle;

constexpr int kL2Bytes = 38;                // CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
constexpr unsigned kStreamNonBlocking = 1;  // CU_STREAM_NON_BLOCKING

// A chain of dependent operations of one thread: how fast the clock goes just now.
constexpr char kSentinel[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry hone_sentinel(.param .u64 p0)\n{\n"
    ".reg .pred %p<2>;\n.reg .b32 %r<2>;\n.reg .f32 %f<3>;\n.reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [p0];\nmov.u32 %r1, 500;\n"
    "mov.f32 %f1, 0f3F7FBE77;\nmov.f32 %f2, 0f3F800000;\nround:\n"
    "fma.rn.f32 %f2, %f2, %f1, %f1;\nfma.rn.f32 %f2, %f2, %f1, %f1;\n"
    "fma.rn.f32 %f2, %f2, %f1, %f1;\nfma.rn.f32 %f2, %f2, %f1, %f1;\n"
    "sub.s32 %r1, %r1, 1;\nsetp.ne.s32 %p1, %r1, 0;\n@%p1 bra round;\n"
    "st.global.f32 [%d1], %f2;\nret;\n}\n";

// What may pass beside timed runs: pipes, the sentinel, making a graph, launching.
constexpr int64_t kBesideNs = 500'000'000;
constexpr int64_t kBesideRunNs = 20'000;
constexpr int64_t kMostTimesTimed = 4;

int64_t LongestWaitNs(const TimeReply& reply) {
  return kBesideNs + reply.runs * kBesideRunNs + kMostTimesTimed * reply.timed_ns;
}

class OpenCuda final : public OpenDevice {
 public:
  OpenCuda(int number, const MonotonicClock& clock) : number_(number), clock_(clock) {}

  static Result<std::unique_ptr<OpenDevice>> Open(int number, const MonotonicClock& clock) {
    std::string why;
    // Starts the driver.
    if (ir::CudaCapability(&why) == 0) return Status(StatusCode::kFailedPrecondition, why);
    auto device = std::make_unique<OpenCuda>(number, clock);
    HONE_RETURN_IF_ERROR(device->Take());
    // All that the driver does but once (threads, its compiler for PTX) it does before the sandbox
    // is closed.
    HONE_RETURN_IF_ERROR(device->RunSentinel().status());
    return std::unique_ptr<OpenDevice>(std::move(device));
  }

  Status MakeData(const PrepareJob& job) override {
    data_.reset();
    HONE_ASSIGN_OR_RETURN(data_, CudaData::Make(job, card_));
    return {};
  }

  Result<std::unique_ptr<LoadedCandidate>> Load(PrepareJob job) override {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<CudaCandidate> loaded,
                          CudaCandidate::Load(job, data_, card_, *crew_));
    return std::unique_ptr<LoadedCandidate>(std::move(loaded));
  }

  Result<std::vector<ModelTimes>> RunModels(const ModelJob& job) override {
    // A package runs on the first one (runtime/cuda/cuda_device.h).
    if (number_ != 0) return OpenDevice::RunModels(job);
    return RunModelsInTurns(job, pool_, clock_, TimedBy::kDevice);
  }

  std::string Conditions() const override {
    const CardState state = Nvml::Get().State(bus_);
    std::string text;
    const auto add = [&](const std::optional<int64_t>& value, const char* unit) {
      if (value) text += (text.empty() ? "" : ", ") + std::to_string(*value) + unit;
    };
    add(state.clock_mhz, " MHz");
    add(state.temperature_c, " C");
    if (state.power_milliwatts) add(*state.power_milliwatts / 1000, " W");
    return text;
  }

  int64_t SentinelNs() override {
    int64_t least_ns = INT64_MAX;
    for (int turn = 0; turn < 3; ++turn) {
      const Result<int64_t> took_ns = RunSentinel();
      // What failed here fails in the kernel's runs too, which can say so.
      if (took_ns.ok()) least_ns = std::min(least_ns, *took_ns);
    }
    return least_ns == INT64_MAX ? 0 : least_ns;
  }

 private:
  Status Take() {
    HONE_ASSIGN_OR_RETURN(pool_, runtime::ThreadPool::Create({.threads = 1, .cpus = {}}));
    crew_ = std::make_unique<runtime::Crew>(pool_, 1);
    HONE_ASSIGN_OR_RETURN(card_.driver, CudaDriver::Find());
    const CudaDriver& d = *card_.driver;
    const auto check = [&](runtime::CuResult code, const char* what) {
      return d.Check(code, what);
    };
    int device = 0, l2 = 0;
    HONE_RETURN_IF_ERROR(check(d.cuDeviceGet(&device, number_), "the GPU"));
    HONE_RETURN_IF_ERROR(check(d.cuDeviceGetAttribute(&l2, kL2Bytes, device), "the GPU's L2"));
    card_.l2_bytes = l2;
    std::array<char, 64> bus{};
    HONE_RETURN_IF_ERROR(
        check(d.cuDeviceGetPCIBusId(bus.data(), bus.size() - 1, device), "the GPU's place"));
    bus_ = bus.data();
    Conditions();  // which opens what it reads
    CuHandle context = nullptr;
    HONE_RETURN_IF_ERROR(check(d.cuDevicePrimaryCtxRetain(&context, device), "the GPU's context"));
    HONE_RETURN_IF_ERROR(check(d.cuCtxSetCurrent(context), "the GPU's context"));
    HONE_RETURN_IF_ERROR(check(d.cuStreamCreate(&card_.stream, kStreamNonBlocking), "a stream"));
    HONE_RETURN_IF_ERROR(check(d.cuModuleLoadDataEx(&module_, kSentinel, 0, nullptr, nullptr),
                               "loading a first kernel"));
    HONE_RETURN_IF_ERROR(
        check(d.cuModuleGetFunction(&sentinel_, module_, "hone_sentinel"), "a first kernel"));
    HONE_ASSIGN_OR_RETURN(scratch_, DeviceBuffer::Allocate(d, sizeof(float), card_.stream));
    HONE_ASSIGN_OR_RETURN(stopwatch_, CudaStopwatch::Create(card_));
    return {};
  }

  Result<int64_t> RunSentinel() const {
    HONE_RETURN_IF_ERROR(stopwatch_->Begin());
    uint64_t at = scratch_.at();
    void* parameters[] = {&at};
    HONE_RETURN_IF_ERROR(
        card_.Check(card_.driver->cuLaunchKernel(sentinel_, 1, 1, 1, 1, 1, 1, 0, card_.stream,
                                                 parameters, nullptr),
                    "running a first kernel"));
    return stopwatch_->End();
  }

  // What it took is not given back: a process holds one device, and its end frees that.
  const int number_;
  const MonotonicClock& clock_;
  CudaCard card_;
  std::shared_ptr<runtime::ThreadPool> pool_;
  std::unique_ptr<runtime::Crew> crew_;  // of prologues, which are the host's
  std::string bus_;
  CuHandle module_ = nullptr, sentinel_ = nullptr;
  DeviceBuffer scratch_;
  std::unique_ptr<CudaStopwatch> stopwatch_;
  std::shared_ptr<CudaData> data_;
};

/// /dev/nvidia0, /dev/nvidiactl, /dev/nvidia-uvm, /dev/nvidia-caps, …
std::vector<std::string> DeviceFiles() {
  std::vector<std::string> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", none)) {
    if (entry.path().filename().string().starts_with("nvidia")) files.push_back(entry.path());
  }
  return files;
}

class Cuda final : public KindRunner {
 public:
  RunnerNeeds needs() const override {
    RunnerNeeds needs;
    needs.folders = DeviceFiles();
    needs.reads_to_open = {"/usr", "/lib", "/lib64", "/opt", "/etc", "/proc", "/sys"};
    // The driver is found where its user said, and numbers its devices as that user's programs do.
    needs.environment = {"LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"};
    needs.system_calls = {SYS_eventfd2,      SYS_sched_setaffinity,
                          SYS_mincore,       SYS_mlock,
                          SYS_munlock,       SYS_mbind,
                          SYS_get_mempolicy, SYS_set_mempolicy,
                          SYS_uname,         SYS_sysinfo,
                          SYS_getuid,        SYS_geteuid,
                          SYS_getgid,        SYS_getegid,
                          SYS_getppid,       SYS_getdents64,
                          SYS_statfs,        SYS_fstatfs,
                          SYS_epoll_wait,    SYS_select,
                          SYS_getcpu,        SYS_pipe2,
                          SYS_dup,           SYS_fdatasync};
    needs.drives_device = true;
    needs.open_files = 512;
    needs.any_address_space = true;
    return needs;
  }

  bool runs_on_host() const override { return false; }

  Result<std::unique_ptr<OpenDevice>> Open(const DevicePlace& place,
                                           const MonotonicClock& clock) const override {
    return OpenCuda::Open(place.number, clock);
  }

  // Times are the device's own. The host's are far longer only where the device's clock lies: work
  // of the host is not in them, and a busy host makes both late.
  Status CheckWait(const TimeReply& reply, int64_t, const AnswerWait& wait) const override {
    const int64_t waited_ns = wait.elapsed_ns - wait.queued_ns;
    if (waited_ns <= LongestWaitNs(reply)) return {};
    return BadTimes(StatusCode::kUnavailable, reply,
                    "but the answer took " + std::to_string(wait.elapsed_ns) + " ns to come");
  }
  bool CameLate(const TimeReply&, int64_t, const AnswerWait&) const override { return false; }
};

}  // namespace

const KindRunner& CudaRunner() {
  static const Cuda runner;
  return runner;
}

}  // namespace hone::measure
