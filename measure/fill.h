#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/dtype.h"
#include "ir/zero_pattern.h"

namespace hone::measure {

/// Fills a tensor with values of [low, high): floats uniform and rounded to their dtype, integers
/// uniform over the whole numbers in the range, bools as integers of [0, 2). The same bytes
/// everywhere for the same (dtype, size, range, seed, tensor): the runner fills what the
/// supervisor evaluates. `tensor`: number among the Workload's inputs, then constants. An empty
/// range gives `low`.
void FillTensor(ir::DType dtype, double low, double high, uint64_t seed, int tensor,
                std::span<std::byte> bytes);

/// Then makes zeros in a tensor of f32, if the pattern, which fits it, has any.
void FillZeros(const ir::ZeroPattern& zeros, uint64_t seed, int tensor, std::span<std::byte> bytes);

}  // namespace hone::measure
