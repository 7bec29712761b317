#include "runtime/cuda/cuda_device.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/status_macros.h"
#include "ir/cuda/cuda_code.h"
#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/cuda_plan.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/memory_need.h"
#include "runtime/cuda/phase_launch.h"
#include "runtime/message.h"

namespace hone::runtime {
namespace {

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class CudaLoaded final : public LoadedPlan {
 public:
  static Result<std::unique_ptr<const LoadedPlan>> Load(const LoadInput& input) {
    for (const ir::PlanStep& step : input.plan->steps) {
      if (step.kind == ir::PlanStepKind::kKernel) continue;
      return Status(StatusCode::kFailedPrecondition,
                    Message("the model's ", step.extern_name,
                            " is a routine of the host, which a run on a GPU cannot call; compile "
                            "the model for a CPU"));
    }
    if (!input.plan->loops.empty()) {
      return Status(
          StatusCode::kFailedPrecondition,
          "the model runs its batch image by image, which a GPU does not; compile it with "
          "--batch together");
    }
    auto loaded = std::make_unique<CudaLoaded>();
    HONE_RETURN_IF_ERROR(loaded->TakeDevice());
    HONE_RETURN_IF_ERROR(loaded->CheckRoom(input));
    HONE_RETURN_IF_ERROR(loaded->LoadCode(input));
    HONE_RETURN_IF_ERROR(loaded->UploadConstants(input.constants));
    loaded->model_.plan = input.plan;
    return std::unique_ptr<const LoadedPlan>(std::move(loaded));
  }

  ~CudaLoaded() override {
    if (model_.context == nullptr) return;
    const CudaDriver& driver = *model_.driver;
    driver.cuCtxSetCurrent(model_.context);
    constants_ = CudaMemory();
    for (CuHandle module : modules_) driver.cuModuleUnload(module);
    driver.cuDevicePrimaryCtxRelease_v2(device_);
  }

  Result<std::unique_ptr<PreparedPlan>> Prepare(const RunOptions& options) const override {
    return CudaPlan::Create(model_, options);
  }

 private:
  Status TakeDevice() {
    HONE_ASSIGN_OR_RETURN(model_.driver, CudaDriver::Find());
    const CudaDriver& driver = *model_.driver;
    HONE_RETURN_IF_ERROR(driver.Check(driver.cuDeviceGet(&device_, 0), "the GPU"));
    CuHandle context = nullptr;
    HONE_RETURN_IF_ERROR(
        driver.Check(driver.cuDevicePrimaryCtxRetain(&context, device_), "the GPU's context"));
    model_.context = context;
    return driver.Check(driver.cuCtxSetCurrent(context), "the GPU's context");
  }

  Status CheckRoom(const LoadInput& input) const {
    const CudaDriver& driver = *model_.driver;
    size_t free = 0, total = 0;
    HONE_RETURN_IF_ERROR(driver.Check(driver.cuMemGetInfo_v2(&free, &total), "the GPU's memory"));
    return CheckMemory(MemoryNeedOf(*input.plan, input.constants.size()), *input.plan, free, total);
  }

  Status LoadCode(const LoadInput& input) {
    const CudaDriver& driver = *model_.driver;
    std::vector<std::string_view> modules;
    if (!input.code.empty() && !ir::UnpackCudaModules(TextOf(input.code), &modules)) {
      return Invalid("the code is damaged");
    }
    if (modules.size() != input.plan->kernels.size()) {
      return Invalid("the package has ", input.plan->kernels.size(), " kernels and code for ",
                     modules.size());
    }
    for (size_t i = 0; i < modules.size(); ++i) {
      // The driver wants a text to end with a zero.
      const std::string image(modules[i]);
      CuHandle module = nullptr;
      HONE_RETURN_IF_ERROR(
          driver.Check(driver.cuModuleLoadDataEx(&module, image.c_str(), 0, nullptr, nullptr),
                       "loading a kernel"));
      modules_.push_back(module);
      std::vector<CuHandle>& functions = model_.functions.emplace_back();
      for (const ir::ArtifactPhase& phase : input.plan->kernels[i].phases) {
        if (std::string why = WhyNotLaunched(driver, device_, phase.launch); !why.empty()) {
          return Status(StatusCode::kFailedPrecondition,
                        Message(phase.symbol, ": ", why, "; compile the model for this GPU"));
        }
        CuHandle& function = functions.emplace_back();
        HONE_RETURN_IF_ERROR(
            driver.Check(driver.cuModuleGetFunction(&function, module, phase.symbol.c_str()),
                         phase.symbol.c_str()));
        HONE_RETURN_IF_ERROR(
            driver.Check(PermitLaunch(driver, function, phase.launch), phase.symbol.c_str()));
      }
    }
    return {};
  }

  Status UploadConstants(std::span<const std::byte> constants) {
    const CudaDriver& driver = *model_.driver;
    HONE_ASSIGN_OR_RETURN(constants_,
                          CudaMemory::Allocate(driver, constants.size(), "the model's constants"));
    model_.constants = constants_.at();
    if (constants.empty()) return {};
    HONE_RETURN_IF_ERROR(driver.Check(
        driver.cuMemcpyHtoDAsync_v2(constants_.at(), constants.data(), constants.size(), nullptr),
        "copying the model's constants"));
    return driver.Check(driver.cuStreamSynchronize(nullptr), "copying the model's constants");
  }

  int device_ = 0;
  std::vector<CuHandle> modules_;
  CudaMemory constants_;
  CudaModel model_;
};

class Cuda final : public Device {
 public:
  Status CheckCode(std::span<const std::byte> code) const override {
    std::vector<std::string_view> modules;
    return ir::UnpackCudaModules(TextOf(code), &modules) ? Status()
                                                         : Invalid("the code is damaged");
  }
  Result<std::unique_ptr<const LoadedPlan>> Load(const LoadInput& input) const override {
    return CudaLoaded::Load(input);
  }
};

}  // namespace

const Device& CudaDevice() {
  static const Cuda device;
  return device;
}

}  // namespace hone::runtime
