#include "schedule/kind_sketches.h"

#include "schedule/cpu/cpu_rules.h"
#include "schedule/cuda/grid.h"

namespace hone::schedule {

ir::PerKind<KindSketches>& SketchesOfKinds() {
  static ir::PerKind<KindSketches> kinds = {{"cpu", &CpuSketches()}, {"cuda", &GridSketches()}};
  return kinds;
}

}  // namespace hone::schedule
