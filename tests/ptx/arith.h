#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tests/ptx/program.h"

namespace hone::ptx {

/// What an instruction computes that touches neither memory nor other threads: `in` holds the bits
/// of its source operands (a predicate is 0 or 1), as wide as its types say. setp gives the
/// comparison, without its second result. Empty, or what is wrong with it.
std::string Compute(const Instruction& instruction, std::span<const uint64_t> in, uint64_t* out);

/// The low bits of a value.
uint64_t Truncated(uint64_t bits, int width);
/// As a signed number of this width.
int64_t Extended(uint64_t bits, int width);

}  // namespace hone::ptx
