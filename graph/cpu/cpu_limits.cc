#include "graph/group_limits.h"
#include "ir/cpu/cpu_target.h"

namespace hone::graph {
namespace {

class Limits final : public KindLimits {
 public:
  /// Half of the second cache, and six streams of a row through it.
  GroupLimits Of(const ir::Target& target) const override {
    return {.row_bytes = target.As<ir::CpuTarget>().l2_bytes / 2 / 6};
  }
};

}  // namespace

const KindLimits& CpuLimits() {
  static const Limits limits;
  return limits;
}

}  // namespace hone::graph
