#include "graph/ops/definitions.h"

namespace hone::graph::ops {

std::vector<std::span<const OpDefinition>> AllFamilies() {
  return {
      ElementwiseOps(),  ShapeOps(),    SliceOps(),         ConcatOps(), GatherOps(),
      ResizeOps(),       ConvOps(),     ConvTransposeOps(), MatMulOps(), PoolOps(),
      ReduceOps(),       SoftmaxOps(),  NormaliseOps(),     CumSumOps(), RecurrentOps(),
      IndexOps(),        SamplingOps(), DeformConvOps(),    ExternOps(), GroupNormOps(),
      MatMulNarrowOps(), ExternStageOps(),
  };
}

}  // namespace hone::graph::ops
