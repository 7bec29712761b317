#include "schedule/kind_sketches.h"

#include "schedule/cpu/cpu_rules.h"
#include "schedule/cuda/cuda_rules.h"

namespace hone::schedule {

ir::PerKind<KindSketches>& SketchesOfKinds() {
  static ir::PerKind<KindSketches> kinds = {{"cpu", &CpuSketches()}, {"cuda", &CudaSketches()}};
  return kinds;
}

}  // namespace hone::schedule
