#include "measure/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "fmt/format.h"

#include "base/status.h"
#include "base/versions.h"
#include "ir/cuda/cuda_driver.h"
#include "ir/cuda/cuda_target.h"
#include "measure/cuda/nvml.h"
#include "runtime/cuda/driver.h"

namespace hone::measure {
namespace {

using runtime::CudaDriver;

// CUdevice_attribute, cuda.h.
constexpr int kMultiprocessors = 16, kL2Bytes = 38, kMajor = 75, kMinor = 76;
constexpr int64_t kMiB = 1 << 20;

/// What one device says of itself.
struct Facts {
  std::string name, uuid, bus;
  int capability = 0, multiprocessors = 0;
  int64_t memory_bytes = 0, l2_bytes = 0;
  bool slice = false;  ///< of a GPU that is cut up (MIG)
  int driver = 0;      ///< 12040: the newest CUDA that it knows, 12.4
};

/// "GPU-3f0a…", "MIG-3f0a…": as nvidia-smi writes them.
std::string UuidText(const std::array<unsigned char, 16>& bytes, bool slice) {
  std::string text = slice ? "MIG" : "GPU";
  for (size_t i = 0; i < bytes.size(); ++i) {
    const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", dash ? "-" : "", bytes[i]);
  }
  return text;
}

Status Ask(const CudaDriver& d, int number, Facts* facts) {
  const auto check = [&](runtime::CuResult code) { return d.Check(code, "the GPU"); };
  int device = 0, major = 0, minor = 0, l2 = 0;
  HONE_RETURN_IF_ERROR(check(d.cuDeviceGet(&device, number)));
  std::array<char, 256> name{}, bus{};
  HONE_RETURN_IF_ERROR(check(d.cuDeviceGetName(name.data(), name.size() - 1, device)));
  HONE_RETURN_IF_ERROR(check(d.cuDeviceGetPCIBusId(bus.data(), bus.size() - 1, device)));
  std::array<unsigned char, 16> uuid{};
  HONE_RETURN_IF_ERROR(check(d.cuDeviceGetUuid(uuid.data(), device)));
  size_t memory = 0;
  HONE_RETURN_IF_ERROR(check(d.cuDeviceTotalMem_v2(&memory, device)));
  HONE_RETURN_IF_ERROR(check(d.cuDeviceGetAttribute(&major, kMajor, device)));
  HONE_RETURN_IF_ERROR(check(d.cuDeviceGetAttribute(&minor, kMinor, device)));
  HONE_RETURN_IF_ERROR(
      check(d.cuDeviceGetAttribute(&facts->multiprocessors, kMultiprocessors, device)));
  HONE_RETURN_IF_ERROR(check(d.cuDeviceGetAttribute(&l2, kL2Bytes, device)));
  HONE_RETURN_IF_ERROR(check(d.cuDriverGetVersion(&facts->driver)));
  facts->name = name.data();
  facts->bus = bus.data();
  facts->slice = facts->name.find(" MIG ") != std::string::npos;
  facts->uuid = UuidText(uuid, facts->slice);
  facts->capability = 10 * major + minor;
  facts->memory_bytes = static_cast<int64_t>(memory);
  facts->l2_bytes = l2;
  return {};
}

/// What a class may hold of a name: "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb".
std::string ClassWord(const std::string& name) {
  std::string word;
  for (const char c : name) {
    const bool keeps = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.';
    if (keeps || (!word.empty() && word.back() != '-')) word += keeps ? c : '-';
  }
  return word;
}

HostDevice DeviceOf(const Facts& f) {
  HostDevice d;
  // The memory that a driver tells differs by some MiB from one version to the next.
  const int64_t gib = (f.memory_bytes + 512 * kMiB) / (1024 * kMiB);
  d.device_class =
      fmt::format("cuda-{}:{}-sm{}x{}-mem{}G-l2.{}K", kCudaVersions.device_class, ClassWord(f.name),
                  f.capability, f.multiprocessors, gib, f.l2_bytes >> 10);
  const Nvml& nvml = Nvml::Get();
  const auto limit = nvml.PowerLimitMilliwatts(f.bus);
  const std::string version = nvml.DriverVersion();
  d.driver = fmt::format("{}CUDA {}.{}", version.empty() ? "" : fmt::format("NVIDIA {}, ", version),
                         f.driver / 1000, f.driver % 1000 / 10);
  d.fingerprint = fmt::format(
      "name: {}\nuuid: {}\ncapability: {}.{}\nmultiprocessors: {}\nmemory: {} MiB\nl2: {} KiB\n"
      "slice: {}\npower limit: {}\ndriver: {}\n",
      f.name, f.uuid, f.capability / 10, f.capability % 10, f.multiprocessors,
      f.memory_bytes / kMiB, f.l2_bytes >> 10, f.slice ? "yes" : "no",
      limit ? fmt::format("{} W", *limit / 1000) : "unknown", d.driver);
  d.cores = 1;
  d.target = ir::CudaTargetFor(f.capability);
  // Slices of one GPU share its clock and its power: they take turns.
  d.lock = f.slice ? "gpu-" + f.bus : f.uuid;
  return d;
}

class Gpus final : public KindDevices {
 public:
  absl::StatusOr<HostDevice> Describe(int number) const override {
    std::string why;
    if (ir::CudaCapability(&why) == 0) return absl::NotFoundError(why);
    const Result<const CudaDriver*> driver = CudaDriver::Find();
    HONE_RETURN_IF_ERROR(ToAbsl(driver.status()));
    Facts facts;
    const Status asked = Ask(**driver, number, &facts);
    if (!asked.ok()) {
      return absl::NotFoundError(fmt::format(
          "this machine has no GPU of number {}: {}; nvidia-smi -L lists those there are", number,
          asked.message()));
    }
    HostDevice device = DeviceOf(facts);
    if (!device.target.empty()) return device;
    return absl::NotFoundError(fmt::format("{} is too old: compute capability {}.{}", facts.name,
                                           facts.capability / 10, facts.capability % 10));
  }
};

}  // namespace

const KindDevices& CudaDevices() {
  static const Gpus devices;
  return devices;
}

}  // namespace hone::measure
