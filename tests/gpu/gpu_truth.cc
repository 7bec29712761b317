// What scripts/gpu_check.sh asks of a GPU first:
//     gpu-truth device         name, driver, capability and clocks as one JSON object
//     gpu-truth rates         what the device can do at most, as one JSON object
//     gpu-truth ptx tma|wgmma  the kernels, to be assembled
//     gpu-truth tma|wgmma      a line for each layout: "equal NAME" or "differs NAME: where"
// The tables compare the hardware with tests/gpu/swizzle.h. No GPU has run them yet. Ends with 0
// when all are equal, 10 when one differs, 8 where they cannot run, 1 when the driver refuses them.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "fmt/format.h"

#include "base/core/clock.h"
#include "base/core/status_macros.h"
#include "ir/cuda/cuda_driver.h"
#include "ir/target.h"
#include "measure/device_probe.h"
#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/driver.h"
#include "tests/gpu/swizzle.h"
#include "tests/gpu/truth_ptx.h"

namespace hone::gpu {
namespace {

using runtime::CudaDriver;
using runtime::CudaMemory;
using runtime::CuHandle;

/// A function of the driver that the runtime does not need.
template <typename... Arguments>
Status Call(const char* name, Arguments... arguments) {
  std::string why;
  const auto function = reinterpret_cast<int (*)(Arguments...)>(ir::CudaFunction(name, &why));
  if (function == nullptr) return {StatusCode::kFailedPrecondition, why};
  HONE_ASSIGN_OR_RETURN(const CudaDriver* driver, CudaDriver::Find());
  return driver->Check(function(arguments...), name);
}

Status PrintDevice() {
  std::string why;
  const int capability = ir::CudaCapability(&why);
  if (capability == 0) return {StatusCode::kFailedPrecondition, why};
  HONE_ASSIGN_OR_RETURN(const CudaDriver* driver, CudaDriver::Find());
  int device = 0, version = 0;
  std::array<char, 256> name{};
  HONE_RETURN_IF_ERROR(driver->Check(driver->cuDeviceGet(&device, 0), "the GPU"));
  HONE_RETURN_IF_ERROR(Call("cuDeviceGetName", name.data(), 256, device));
  HONE_RETURN_IF_ERROR(Call("cuDriverGetVersion", &version));
  const auto attribute = [&](int number) {  // CUdevice_attribute; -1: the driver does not say
    int value = -1;
    return driver->cuDeviceGetAttribute(&value, number, device) == 0 ? value : -1;
  };
  std::cout << fmt::format(
      "{{\"name\": \"{}\", \"cuda\": \"{}.{}\", \"capability\": \"{}.{}\", "
      "\"multiprocessors\": {}, \"l2_bytes\": {}, \"clock_khz\": {}, \"memory_clock_khz\": {}}}\n",
      name.data(), version / 1000, version % 1000 / 10, capability / 10, capability % 10,
      attribute(16), attribute(38), attribute(13), attribute(36));
  return {};
}

Status PrintRates() {
  ir::Target target;
  std::string why;
  if (!ir::ParseTarget(ir::ResolveNative("cuda:native", 1), &target, &why))
    return {StatusCode::kFailedPrecondition, why};
  const auto rates = measure::MeasureRates(target, SystemMonotonicClock());
  if (!rates.ok()) return {StatusCode::kInternal, std::string(rates.status().message())};
  std::cout << fmt::format(
      "{{\"flop_per_second\": {}, \"l2_bytes_per_second\": {}, \"memory_bytes_per_second\": {}}}\n",
      rates->operations_per_second[0], rates->caches[0].bytes_per_second,
      rates->memory_bytes_per_second);
  return {};
}

/// A context with one module.
class Machine {
 public:
  Status Open(const std::string& ptx) {
    std::string why;
    if (const int capability = ir::CudaCapability(&why); capability != 90) {
      return {StatusCode::kFailedPrecondition,
              capability == 0 ? why : "these kernels are for compute capability 9.0 alone"};
    }
    HONE_ASSIGN_OR_RETURN(driver_, CudaDriver::Find());
    int device = 0;
    HONE_RETURN_IF_ERROR(Check(driver_->cuDeviceGet(&device, 0)));
    HONE_RETURN_IF_ERROR(Check(driver_->cuDevicePrimaryCtxRetain(&context_, device)));
    HONE_RETURN_IF_ERROR(Check(driver_->cuCtxSetCurrent(context_)));
    return Check(driver_->cuModuleLoadDataEx(&module_, ptx.c_str(), 0, nullptr, nullptr));
  }

  Result<CudaMemory> Upload(const void* bytes, size_t size) const {
    HONE_ASSIGN_OR_RETURN(CudaMemory memory, CudaMemory::Allocate(*driver_, size, "a tile"));
    HONE_RETURN_IF_ERROR(Check(driver_->cuMemcpyHtoDAsync_v2(memory.at(), bytes, size, nullptr)));
    HONE_RETURN_IF_ERROR(Check(driver_->cuStreamSynchronize(nullptr)));
    return memory;
  }

  /// One block; `to` gets what stands at `from` after it.
  Status Run(const char* kernel, std::vector<void*> parameters, const CudaMemory& from, void* to,
             size_t size) const {
    CuHandle function = nullptr;
    HONE_RETURN_IF_ERROR(Check(driver_->cuModuleGetFunction(&function, module_, kernel)));
    HONE_RETURN_IF_ERROR(Check(driver_->cuLaunchKernel(function, 1, 1, 1, kTruthThreads, 1, 1, 0,
                                                       nullptr, parameters.data(), nullptr)));
    HONE_RETURN_IF_ERROR(Check(driver_->cuMemcpyDtoHAsync_v2(to, from.at(), size, nullptr)));
    return Check(driver_->cuStreamSynchronize(nullptr));
  }

 private:
  Status Check(int code) const { return driver_->Check(code, "a truth table"); }

  const CudaDriver* driver_ = nullptr;
  CuHandle context_ = nullptr, module_ = nullptr;
};

bool Tell(const std::string& name, const std::string& difference) {
  std::cout << (difference.empty() ? "equal " + name : "differs " + name + ": " + difference)
            << std::endl;
  return difference.empty();
}

/// A tensor of 64 rows of 64 numbers of 16 bits, and a box of 32 rows of `row_bytes`.
Status TmaRow(const Machine& machine, uint32_t row_bytes, int swizzle, bool* equal) {
  constexpr uint32_t kRows = 64, kColumns = 64, kBoxRows = 32;
  std::vector<uint16_t> numbers(kRows * kColumns);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint16_t>(i);
  HONE_ASSIGN_OR_RETURN(const CudaMemory tensor,
                        machine.Upload(numbers.data(), 2 * numbers.size()));
  alignas(64) std::array<uint64_t, 16> map{};
  const std::array<uint64_t, 2> extents = {kColumns, kRows};
  const std::array<uint64_t, 1> strides = {2 * kColumns};
  const std::array<uint32_t, 2> box = {row_bytes / 2, kBoxRows}, steps = {1, 1};
  // CU_TENSOR_MAP_DATA_TYPE_UINT16; no interleave, no promotion, zeros outside.
  HONE_RETURN_IF_ERROR(Call("cuTensorMapEncodeTiled", static_cast<void*>(map.data()), 1, 2U,
                            reinterpret_cast<void*>(tensor.at()), extents.data(), strides.data(),
                            box.data(), steps.data(), 0, swizzle, 0, 0));
  uint32_t bytes = row_bytes * kBoxRows;
  std::vector<uint16_t> found(bytes / 2, 0xffff);
  HONE_ASSIGN_OR_RETURN(const CudaMemory out, machine.Upload(found.data(), bytes));
  uint64_t address = out.at();
  HONE_RETURN_IF_ERROR(
      machine.Run("tma_tile", {map.data(), &address, &bytes}, out, found.data(), bytes));
  std::string difference;
  for (uint32_t r = 0; r < kBoxRows && difference.empty(); ++r) {
    for (uint32_t c = 0; c < row_bytes / 2 && difference.empty(); ++c) {
      const uint32_t offset = r * row_bytes + 2 * c;
      const uint32_t place = swizzle == 0 ? offset : Swizzled(offset, row_bytes);
      if (found[place / 2] == numbers[r * kColumns + c]) continue;
      const auto at = std::ranges::find(found, numbers[r * kColumns + c]) - found.begin();
      difference = fmt::format("row {} byte {} lies at {}, not at {}", r, 2 * c, 2 * at, place);
    }
  }
  *equal = Tell(fmt::format("tma/rows of {} B/swizzle mode {}", row_bytes, swizzle), difference) &&
           *equal;
  return {};
}

Status TmaTable(bool* equal) {
  Machine machine;
  HONE_RETURN_IF_ERROR(machine.Open(TmaPtx()));
  // CU_TENSOR_MAP_SWIZZLE_NONE, 32B, 64B, 128B.
  for (const uint32_t row_bytes : {32U, 64U, 128U}) {
    HONE_RETURN_IF_ERROR(TmaRow(machine, row_bytes, 0, equal));
  }
  HONE_RETURN_IF_ERROR(TmaRow(machine, 32, 1, equal));
  HONE_RETURN_IF_ERROR(TmaRow(machine, 64, 2, equal));
  return TmaRow(machine, 128, 3, equal);
}

constexpr uint32_t kM = 64, kN = 8, kK = 16;
constexpr uint32_t kBegin = 8'192;  ///< of B in the image

/// Small numbers, so that all sums are exact.
float NumberA(uint32_t m, uint32_t k) { return static_cast<float>((3 * m + 5 * k) % 13) - 6; }
float NumberB(uint32_t n, uint32_t k) { return static_cast<float>((7 * n + 2 * k) % 11) - 5; }

/// Where element k of row i lies, counted from the operand's beginning.
using Place = std::function<uint32_t(uint32_t i, uint32_t k)>;

struct Layout {
  std::string name;
  const char* kernel = "wgmma_k";
  Place a, b;
  uint64_t descriptor_a = 0, descriptor_b = 0;
};

void Put(float number, uint32_t at, std::vector<uint8_t>* image) {
  uint32_t bits = 0;
  std::memcpy(&bits, &number, 4);
  const auto upper = static_cast<uint16_t>(bits >> 16);  // bf16
  std::memcpy(image->data() + at, &upper, 2);
}

Status WgmmaRow(const Machine& machine, const Layout& layout, bool* equal) {
  std::vector<uint8_t> image(kImageBytes);
  for (uint32_t k = 0; k < kK; ++k) {
    for (uint32_t m = 0; m < kM; ++m) Put(NumberA(m, k), layout.a(m, k), &image);
    for (uint32_t n = 0; n < kN; ++n) Put(NumberB(n, k), kBegin + layout.b(n, k), &image);
  }
  HONE_ASSIGN_OR_RETURN(const CudaMemory in, machine.Upload(image.data(), image.size()));
  std::vector<float> found(kM * kN, -1e9F);
  HONE_ASSIGN_OR_RETURN(const CudaMemory out, machine.Upload(found.data(), 4 * found.size()));
  uint64_t from = in.at(), to = out.at(), a = layout.descriptor_a;
  uint64_t b = layout.descriptor_b + (kBegin >> 4);
  HONE_RETURN_IF_ERROR(
      machine.Run(layout.kernel, {&from, &a, &b, &to}, out, found.data(), 4 * found.size()));
  int wrong = 0;
  for (uint32_t m = 0; m < kM; ++m) {
    for (uint32_t n = 0; n < kN; ++n) {
      float sum = 0;
      for (uint32_t k = 0; k < kK; ++k) sum += NumberA(m, k) * NumberB(n, k);
      const uint32_t thread = m / 16 * 32 + m % 8 * 4 + n / 2;
      const uint32_t part = (m % 16 / 8) * 2 + n % 2;
      wrong += found[thread * 4 + part] == sum ? 0 : 1;
    }
  }
  *equal = Tell("wgmma/" + layout.name,
                wrong == 0 ? "" : fmt::format("{} of {} elements", wrong, kM * kN)) &&
           *equal;
  return {};
}

/// Rows of 32, 64 or 128 bytes along K, of which the product takes 32 from `step` on.
Layout AlongK(uint32_t row_bytes, uint32_t step) {
  const Place place = [=](uint32_t i, uint32_t k) {
    return Swizzled(i * row_bytes + 32 * step + 2 * k, row_bytes);
  };
  const uint64_t descriptor = Descriptor(32 * step, 16, 8 * row_bytes, row_bytes);
  return {.name = fmt::format("along K/swizzle {} B/step {}", row_bytes, step),
          .a = place,
          .b = place,
          .descriptor_a = descriptor,
          .descriptor_b = descriptor};
}

/// Core matrices of 8 rows of 16 bytes, those along K side by side. `leading_is_k`: which of the
/// descriptor's two strides goes along K; the other reading is told, too, where the first is wrong.
Layout WithoutSwizzle(bool leading_is_k) {
  const Place place = [](uint32_t i, uint32_t k) {
    return i / 8 * 256 + k / 8 * 128 + i % 8 * 16 + k % 8 * 2;
  };
  const uint64_t descriptor =
      leading_is_k ? Descriptor(0, 128, 256, 0) : Descriptor(0, 256, 128, 0);
  return {.name = fmt::format("along K/no swizzle/leading is {}", leading_is_k ? "K" : "rows"),
          .a = place,
          .b = place,
          .descriptor_a = descriptor,
          .descriptor_b = descriptor};
}

/// A with 64 rows side by side in 128 bytes, B as ever.
Layout AlongM() {
  Layout layout = AlongK(128, 0);
  layout.name = "A along M/swizzle 128 B";
  layout.kernel = "wgmma_mn";
  layout.a = [](uint32_t m, uint32_t k) { return Swizzled(k * 128 + 2 * m, 128); };
  layout.descriptor_a = Descriptor(0, 1'024, 1'024, 128);
  return layout;
}

Status WgmmaTable(bool* equal) {
  Machine machine;
  HONE_RETURN_IF_ERROR(machine.Open(WgmmaPtx()));
  for (const uint32_t row_bytes : {32U, 64U, 128U}) {
    for (uint32_t step = 0; step < row_bytes / 32; ++step)
      HONE_RETURN_IF_ERROR(WgmmaRow(machine, AlongK(row_bytes, step), equal));
  }
  HONE_RETURN_IF_ERROR(WgmmaRow(machine, AlongM(), equal));
  bool first = true, second = true;
  HONE_RETURN_IF_ERROR(WgmmaRow(machine, WithoutSwizzle(true), &first));
  if (!first) HONE_RETURN_IF_ERROR(WgmmaRow(machine, WithoutSwizzle(false), &second));
  *equal = *equal && first;
  return {};
}

int Run(const std::string& what, const std::string& which) {
  bool equal = true;
  Status status;
  if (what == "ptx") {
    std::cout << (which == "tma" ? TmaPtx() : WgmmaPtx());
  } else if (what == "device") {
    status = PrintDevice();
  } else if (what == "rates") {
    status = PrintRates();
  } else {
    status = what == "tma" ? TmaTable(&equal) : WgmmaTable(&equal);
  }
  if (status.ok()) return equal ? 0 : 10;
  std::cerr << "gpu-truth: " << status.message() << "\n";
  return status.code() == StatusCode::kFailedPrecondition ? 8 : 1;
}

}  // namespace
}  // namespace hone::gpu

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what != "ptx" && what != "device" && what != "rates" && what != "tma" && what != "wgmma") {
    std::cerr << "usage: gpu-truth device|rates|tma|wgmma, or gpu-truth ptx tma|wgmma\n";
    return 2;
  }
  return hone::gpu::Run(what, argc > 2 ? argv[2] : "");
}
