#pragma once

#include <cstdint>

#include "ir/workload.h"

namespace hone::graph {

/// What a Workload must at least do, for rooflines and `hone inspect`.
struct GroupCost {
  int64_t flops = 0;  ///< 2 · multiply-adds of its contractions (sums of products of two tensors),
                      ///< padded taps included
  int64_t other_flops = 0;  ///< arithmetic of every other Stage, one per operator and point, and of
                            ///< the contractions' operands
  int64_t input_bytes = 0;  ///< each input read once
  int64_t constant_bytes = 0;
  int64_t output_bytes = 0;
  int64_t Bytes() const { return input_bytes + constant_bytes + output_bytes; }
};

GroupCost CostOf(const ir::Workload& workload);

/// Whether the Stage sums products of two loaded values.
bool IsContraction(const ir::Stage& stage);

}  // namespace hone::graph
