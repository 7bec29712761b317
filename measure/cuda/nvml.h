#pragma once

#include <cstdint>
#include <optional>
#include <string>

// NVIDIA's management library (libnvidia-ml.so.1), which comes with the driver and tells how a GPU
// does. Nothing is ever changed by it. std and dl only.
namespace hone::measure {

/// How a GPU does at one moment; what it does not tell is not set.
struct CardState {
  std::optional<int64_t> clock_mhz;  ///< of its multiprocessors
  std::optional<int64_t> temperature_c;
  std::optional<int64_t> power_milliwatts;
};

/// Thread-safe.
class Nvml {
 public:
  /// The library, loaded and started once. Where it is missing nothing is told.
  static const Nvml& Get();

  std::string DriverVersion() const;  ///< "550.54.15"; empty: unknown
  /// `bus`: what cuDeviceGetPCIBusId says, "0000:65:00.0".
  std::optional<int64_t> PowerLimitMilliwatts(const std::string& bus) const;
  CardState State(const std::string& bus) const;

 private:
  using Device = void*;
  Nvml();
  /// Null: there is none, or no library.
  Device Find(const std::string& bus) const;

  int (*version_)(char* text, unsigned size) = nullptr;
  int (*find_)(const char* bus, Device* device) = nullptr;
  int (*power_limit_)(Device device, unsigned* milliwatts) = nullptr;
  int (*power_)(Device device, unsigned* milliwatts) = nullptr;
  int (*temperature_)(Device device, int sensor, unsigned* degrees) = nullptr;
  int (*clock_)(Device device, int which, unsigned* megahertz) = nullptr;
};

}  // namespace hone::measure
