#include "graph/group_limits.h"
#include "ir/cuda/cuda_target.h"

namespace hone::graph {
namespace {

class Limits final : public KindLimits {
 public:
  /// A row that a block holds in shared memory, while another block of its SM works.
  GroupLimits Of(const ir::Target& target) const override {
    return {.row_bytes = target.As<ir::CudaTarget>().block_shared_bytes / 2, .runs_externs = false};
  }
};

}  // namespace

const KindLimits& CudaLimits() {
  static const Limits limits;
  return limits;
}

}  // namespace hone::graph
