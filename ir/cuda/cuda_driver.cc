#include "ir/cuda/cuda_driver.h"

#include <dlfcn.h>

namespace hone::ir {
namespace {

constexpr char kDriver[] = "libcuda.so.1";

// As cuda.h has them, "CUDA Driver API".
using CuResult = int;
constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;

/// Stays loaded: threads of its own may run.
void* Driver() {
  static void* const driver = dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  return driver;
}

struct Answer {
  int capability = 0;
  std::string why;
};

Answer AskDriver() {
  std::string why;
  const auto init = reinterpret_cast<CuResult (*)(unsigned)>(CudaFunction("cuInit", &why));
  const auto get = reinterpret_cast<CuResult (*)(int*, int)>(CudaFunction("cuDeviceGet", &why));
  const auto attribute =
      reinterpret_cast<CuResult (*)(int*, int, int)>(CudaFunction("cuDeviceGetAttribute", &why));
  if (init == nullptr || get == nullptr || attribute == nullptr) return {0, why};
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

void* CudaFunction(const char* name, std::string* why) {
  if (Driver() == nullptr) {
    *why = std::string("this machine has no CUDA driver (") + kDriver +
           " is not found); install NVIDIA's driver";
    return nullptr;
  }
  void* const function = dlsym(Driver(), name);
  if (function == nullptr) {
    *why = std::string(kDriver) + " lacks " + name + ": the CUDA driver is too old or damaged";
  }
  return function;
}

int CudaCapability(std::string* why) {
  static const Answer answer = AskDriver();
  *why = answer.why;
  return answer.capability;
}

}  // namespace hone::ir
