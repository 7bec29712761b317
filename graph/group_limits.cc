#include "graph/group_limits.h"

namespace hone::graph {

ir::PerKind<KindLimits>& LimitsOfKinds() {
  static ir::PerKind<KindLimits> kinds = {{"cpu", &CpuLimits()}};
  return kinds;
}

}  // namespace hone::graph
