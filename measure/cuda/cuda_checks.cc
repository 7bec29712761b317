#include "measure/cuda/cuda_checks.h"

#include "fmt/format.h"

#include "ir/cuda/cuda_driver.h"

namespace hone::measure {
namespace {

class Checks final : public KindChecks {
 public:
  /// Whoever tunes for CPUs needs no GPU.
  std::vector<Finding> Check(const SystemPaths&, const MonotonicClock&) const override {
    std::string why;
    const int capability = ir::CudaCapability(&why);
    if (capability == 0) return {Good("gpu", "none: " + why)};
    return {Good("gpu", fmt::format("compute capability {}.{}", capability / 10, capability % 10))};
  }
};

}  // namespace

const KindChecks& CudaChecks() {
  static const Checks checks;
  return checks;
}

}  // namespace hone::measure
