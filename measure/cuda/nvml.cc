#include "measure/cuda/nvml.h"

#include <dlfcn.h>

#include <array>

namespace hone::measure {
namespace {

constexpr char kLibrary[] = "libnvidia-ml.so.1";
constexpr int kSensorOfGpu = 0, kClockOfMultiprocessors = 1;  // NVML_TEMPERATURE_GPU, NVML_CLOCK_SM

template <typename Function>
void Take(void* library, const char* name, Function** function) {
  if (library != nullptr) *function = reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

const Nvml& Nvml::Get() {
  static const Nvml library;
  return library;
}

Nvml::Nvml() {
  // Stays loaded: what it started may run.
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  int (*init)() = nullptr;
  Take(library, "nvmlInit_v2", &init);
  if (init == nullptr || init() != 0) return;
  Take(library, "nvmlSystemGetDriverVersion", &version_);
  Take(library, "nvmlDeviceGetHandleByPciBusId_v2", &find_);
  Take(library, "nvmlDeviceGetPowerManagementLimit", &power_limit_);
  Take(library, "nvmlDeviceGetPowerUsage", &power_);
  Take(library, "nvmlDeviceGetTemperature", &temperature_);
  Take(library, "nvmlDeviceGetClockInfo", &clock_);
}

Nvml::Device Nvml::Find(const std::string& bus) const {
  Device device = nullptr;
  if (find_ == nullptr || find_(bus.c_str(), &device) != 0) return nullptr;
  return device;
}

std::string Nvml::DriverVersion() const {
  std::array<char, 96> text{};
  if (version_ == nullptr || version_(text.data(), text.size() - 1) != 0) return "";
  return text.data();
}

std::optional<int64_t> Nvml::PowerLimitMilliwatts(const std::string& bus) const {
  unsigned value = 0;
  Device const device = Find(bus);
  if (device == nullptr || power_limit_ == nullptr || power_limit_(device, &value) != 0) return {};
  return value;
}

CardState Nvml::State(const std::string& bus) const {
  CardState state;
  Device const device = Find(bus);
  if (device == nullptr) return state;
  unsigned value = 0;
  if (clock_ != nullptr && clock_(device, kClockOfMultiprocessors, &value) == 0) {
    state.clock_mhz = value;
  }
  if (temperature_ != nullptr && temperature_(device, kSensorOfGpu, &value) == 0) {
    state.temperature_c = value;
  }
  if (power_ != nullptr && power_(device, &value) == 0) state.power_milliwatts = value;
  return state;
}

}  // namespace hone::measure
