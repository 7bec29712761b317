#include "measure/kind_runner.h"

#include "ir/kind_name.h"
#include "measure/cpu/cpu_runner.h"
#include "measure/cuda/cuda_runner.h"

namespace hone::measure {

Result<std::vector<ModelTimes>> OpenDevice::RunModels(const ModelJob&) {
  return Status(StatusCode::kUnimplemented, "whole models are not compared on this kind of device");
}

ir::PerKind<KindRunner>& RunnersOfKinds() {
  static ir::PerKind<KindRunner> kinds = {{"cpu", &CpuRunner()}, {"cuda", &CudaRunner()}};
  return kinds;
}

bool RunsOnHost(std::string_view text) {
  const KindRunner* const runner = RunnersOfKinds().Find(ir::KindNameOf(text));
  return runner == nullptr || runner->runs_on_host();
}

Result<const KindRunner*> RunnerOf(std::string_view text) {
  const KindRunner* const runner = RunnersOfKinds().Find(ir::KindNameOf(text));
  if (runner != nullptr) return runner;
  return Status(StatusCode::kFailedPrecondition,
                "this program runs no candidates on a " + std::string(ir::KindNameOf(text)));
}

}  // namespace hone::measure
