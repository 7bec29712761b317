#include "graph/group_limits.h"

namespace hone::graph {

ir::PerKind<KindLimits>& LimitsOfKinds() {
  static ir::PerKind<KindLimits> kinds = {{"cpu", &CpuLimits()}, {"cuda", &CudaLimits()}};
  return kinds;
}

}  // namespace hone::graph
