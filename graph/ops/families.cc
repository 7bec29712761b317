#include "graph/ops/definitions.h"

namespace hone::graph::ops {

std::vector<std::span<const OpDefinition>> AllFamilies() {
  return {
      ElementwiseOps(), ShapeOps(), SliceOps(),  ConcatOps(),  ConvOps(),      GatherOps(),
      MatMulOps(),      PoolOps(),  ReduceOps(), SoftmaxOps(), NormaliseOps(),
  };
}

}  // namespace hone::graph::ops
