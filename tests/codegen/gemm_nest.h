#pragma once

#include "tests/codegen/kernel.h"

namespace hone::codegen {

/// C[m,n] = relu(A[m,k] * B + bias[n]) with B packed [n/nr][k][nr], in register tiles of mr rows
/// and nr columns. m, n and nr are multiples of mr, nr and lanes.
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t mr = 6, nr = 64, lanes = 16;
};

/// Buffers a, b, bias, c; one phase `gemm`, parallel over n/nr.
ir::LoopNest GemmNest(const GemmShape& shape);

}  // namespace hone::codegen
