#pragma once

#include <cstdint>

#include "ir/dtype.h"

// Conversions of the 16-bit float formats: IEEE 754 binary16 and bfloat16, round to nearest, ties
// to even.
namespace hone::ir {

/// Nearest binary16 of a double, rounded once (never through float); overflow gives an infinity,
/// NaN the quiet NaN 0x7e00 (sign kept).
uint16_t F16FromDouble(double value);
/// Exact.
double F16ToDouble(uint16_t bits);

/// Nearest bfloat16 of a double, rounded once; overflow gives an infinity, NaN 0x7fc0 (sign kept).
uint16_t BF16FromDouble(double value);
/// Exact.
double BF16ToDouble(uint16_t bits);

/// The value of `value` after a store to a float dtype: nearest, ties to even. Other dtypes are a
/// programmer error.
double RoundTo(DType dtype, double value);

/// Half the distance between neighbouring values of a float dtype at `value`: a bound of the error
/// of one rounding whose result is `value` (0 for infinities and NaN).
double HalfUlp(DType dtype, double value);

}  // namespace hone::ir
