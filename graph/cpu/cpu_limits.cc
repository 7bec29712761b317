#include "graph/group_limits.h"
#include "ir/cpu/cpu_target.h"

namespace hone::graph {
namespace {

class Limits final : public KindLimits {
 public:
  /// Half of the second cache, and six streams of a row through it; the third cache, and what one
  /// core has of the memory's bandwidth; where attention by blocks of keys begins to win
  /// (schedule/cpu/attention.h has the same numbers).
  GroupLimits Of(const ir::Target& target) const override {
    constexpr double kFarBytesPerNs = 8;
    const auto& cpu = target.As<ir::CpuTarget>();
    return {.row_bytes = cpu.l2_bytes / 2 / 6,
            .near_bytes = cpu.l3_bytes,
            .far_bytes_per_ns = kFarBytesPerNs * target.threads,
            .attention_keys = 256,
            .attention_rows = 64};
  }
};

}  // namespace

const KindLimits& CpuLimits() {
  static const Limits limits;
  return limits;
}

}  // namespace hone::graph
