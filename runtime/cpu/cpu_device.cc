#include "runtime/cpu/cpu_device.h"

#include <algorithm>
#include <utility>

#include "base/core/status_macros.h"
#include "runtime/cpu/cpu_plan.h"
#include "runtime/message.h"

namespace hone::runtime {
namespace {

// What a generated symbol of a memory file is called in /proc/self/maps.
constexpr char kCodeName[] = "hone-model";

class CpuLoaded final : public LoadedPlan {
 public:
  static Result<std::unique_ptr<const LoadedPlan>> Load(const LoadInput& input) {
    auto loaded = std::make_unique<CpuLoaded>();
    loaded->model_ = {.plan = input.plan,
                      .constants = input.constants,
                      .kernels = {},
                      .threads = input.threads,
                      .copies = &loaded->copies_};
    if (!input.code.empty()) {
      HONE_ASSIGN_OR_RETURN(loaded->code_, SharedObject::Load(input.code, kCodeName));
    }
    const std::vector<ir::Artifact>& artifacts = input.plan->kernels;
    for (size_t i = 0; i < artifacts.size(); ++i) {
      Result<Kernel> kernel = Kernel::Resolve(artifacts[i], loaded->code_);
      if (!kernel.ok()) return Invalid("kernel ", i, ": ", kernel.status().message());
      loaded->model_.kernels.push_back(*std::move(kernel));
    }
    return std::unique_ptr<const LoadedPlan>(std::move(loaded));
  }

  Result<std::unique_ptr<PreparedPlan>> Prepare(const RunOptions& options) const override {
    return CpuPlan::Create(model_, options);
  }

 private:
  SharedObject code_;
  mutable NodeCopyShelf copies_;
  CpuModel model_;  // its kernels are in code_
};

class Cpu final : public Device {
 public:
  Status CheckCode(std::span<const std::byte> code) const override { return CheckElf(code); }
  Result<std::unique_ptr<const LoadedPlan>> Load(const LoadInput& input) const override {
    return CpuLoaded::Load(input);
  }
};

}  // namespace

const Device& CpuDevice() {
  static const Cpu device;
  return device;
}

}  // namespace hone::runtime
