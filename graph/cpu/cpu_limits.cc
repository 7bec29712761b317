#include "graph/group_limits.h"
#include "ir/cpu/cpu_target.h"

namespace hone::graph {
namespace {

class Limits final : public KindLimits {
 public:
  /// Half of the second cache, and six streams of a row through it; the third cache, and what one
  /// core has of the memory's bandwidth; where attention in one kernel begins to win: rows that
  /// fill a vector (schedule/cpu/attention.h).
  GroupLimits Of(const ir::Target& target) const override {
    constexpr double kFarBytesPerNs = 8;
    const auto& cpu = target.As<ir::CpuTarget>();
    return {.row_bytes = cpu.l2_bytes / 2 / 6,
            .near_bytes = cpu.l3_bytes,
            .far_bytes_per_ns = kFarBytesPerNs * target.threads,
            .attention_keys = 16,
            .attention_rows = cpu.lanes};
  }
};

}  // namespace

const KindLimits& CpuLimits() {
  static const Limits limits;
  return limits;
}

}  // namespace hone::graph
