#pragma once

#include <cstdint>
#include <vector>

#include "codegen/affine.h"
#include "codegen/llvm_arith.h"

namespace hone::codegen {

/// The vector loop being emitted: `lanes` is a power of two, the first `active` count.
struct VectorLoop {
  int active = 1;
  int lanes = 1;
  int atom = -1;
};

/// How a lane-dependent index moves: base + offsets[lane], or anything (`offsets` empty).
struct LanePattern {
  Affine base;
  std::vector<int64_t> offsets;
  bool contiguous = false;
};

/// An unrolled loop without loops inside, in the middle of iteration `now`.
struct UnrolledLoop {
  int var;
  int64_t extent, now, branches;
};

/// Loads at a stride, shifted by one element an iteration, made together: see llvm_transpose.cc.
struct Strip {
  int buffer;
  Affine first;
  int64_t stride, generation, writes;
  int active;
  std::vector<Value> columns;
};

}  // namespace hone::codegen
