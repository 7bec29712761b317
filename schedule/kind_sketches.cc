#include "schedule/kind_sketches.h"

#include "schedule/cpu/cpu_rules.h"

namespace hone::schedule {

ir::PerKind<KindSketches>& SketchesOfKinds() {
  static ir::PerKind<KindSketches> kinds = {{"cpu", &CpuSketches()}};
  return kinds;
}

}  // namespace hone::schedule
