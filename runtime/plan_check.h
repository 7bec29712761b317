#pragma once

#include <cstdint>
#include <vector>

#include "base/core/result.h"
#include "ir/plan.h"

// What must hold of a plan before anything runs it; the compiler's plans and those of unknown files
// pass the same check.
namespace hone::runtime {

/// The largest rank, the largest buffer (bytes) and the most threads that a package may state. They
/// keep all later products within 64 bits.
inline constexpr size_t kMaxRank = 16;
inline constexpr int64_t kMaxBufferBytes = int64_t{1} << 48;
inline constexpr int32_t kMaxThreads = 1024;
/// Alignment, bytes, of every buffer: arena and constant offsets are multiples of it.
inline constexpr int64_t kBufferAlignment = 64;

/// Bytes of a dense tensor; an error when a dimension is negative, the rank too high or the size
/// beyond kMaxBufferBytes.
Result<int64_t> DenseBytes(ir::DType dtype, const std::vector<int64_t>& shape);

/// Checks every index, range, size and shape of `plan`, whose constants take `constant_bytes`.
/// kInvalidArgument with the number of the offending buffer, kernel or step.
Status CheckPlan(const ir::Plan& plan, int64_t constant_bytes);

}  // namespace hone::runtime
