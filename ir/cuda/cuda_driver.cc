#include "ir/cuda/cuda_driver.h"

#include <dlfcn.h>

namespace hone::ir {
namespace {

constexpr char kDriver[] = "libcuda.so.1";

// cuda.h, "CUDA Driver API", by what the functions and numbers are there.
using CuResult = int;
constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;

struct Answer {
  int capability = 0;
  std::string why;
};

/// The capability by this driver, which stays loaded.
Answer AskDriver(void* driver) {
  const auto init = reinterpret_cast<CuResult (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto get = reinterpret_cast<CuResult (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  const auto attribute =
      reinterpret_cast<CuResult (*)(int*, int, int)>(dlsym(driver, "cuDeviceGetAttribute"));
  if (init == nullptr || get == nullptr || attribute == nullptr) {
    return {0, std::string(kDriver) + " lacks functions of the CUDA driver: it is damaged"};
  }
  if (const CuResult code = init(0); code != 0) {
    return {0, "the CUDA driver does not start (cuInit says " + std::to_string(code) +
                   "); nvidia-smi shows whether it works"};
  }
  int device = 0, major = 0, minor = 0;
  if (get(&device, 0) != 0 || attribute(&major, kCapabilityMajor, device) != 0 ||
      attribute(&minor, kCapabilityMinor, device) != 0) {
    return {0, "the CUDA driver sees no GPU; nvidia-smi shows what it sees"};
  }
  return {10 * major + minor, ""};
}

}  // namespace

int CudaCapability(std::string* why) {
  static const Answer answer = [] {
    void* const driver = dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
    if (driver != nullptr) return AskDriver(driver);
    return Answer{0, std::string("this machine has no CUDA driver (") + kDriver +
                         " is not found); install NVIDIA's driver"};
  }();
  *why = answer.why;
  return answer.capability;
}

}  // namespace hone::ir
