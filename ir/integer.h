#pragma once

#include <cstdint>

#include "ir/dtype.h"

// Integer arithmetic as expr.h defines it: operands and results are values of `dtype` held in an
// int64 (u64 by its bits); everything wraps and nothing traps.
namespace hone::ir {

/// `value` wrapped to the width of an integer dtype or made 0 or 1 for bool.
int64_t WrapTo(DType dtype, int64_t value);
/// Float to integer: toward zero, saturating, NaN gives 0; bool is `!= 0`.
int64_t SaturateTo(DType dtype, double value);
/// Least and greatest value (for kU64 the bits of the greatest).
int64_t MinOf(DType dtype);
int64_t MaxOf(DType dtype);
bool LessThan(DType dtype, int64_t a, int64_t b);

int64_t WrapAdd(int64_t a, int64_t b);
int64_t WrapSub(int64_t a, int64_t b);
int64_t WrapMul(int64_t a, int64_t b);
/// Floor division and remainder; by zero: 0 and the dividend.
int64_t FloorDivide(DType dtype, int64_t a, int64_t b);
int64_t FloorRemainder(DType dtype, int64_t a, int64_t b);
/// The same toward zero.
int64_t TruncDivide(DType dtype, int64_t a, int64_t b);
int64_t TruncRemainder(DType dtype, int64_t a, int64_t b);
/// a to the power of b; a negative b gives 1/a^|b| toward zero (0 for a = 0).
int64_t IntegerPower(DType dtype, int64_t a, int64_t b);
/// Shifts; a count that is negative or at least the width gives 0, for a right shift of a negative
/// -1.
int64_t ShiftLeft(DType dtype, int64_t a, int64_t b);
int64_t ShiftRight(DType dtype, int64_t a, int64_t b);

}  // namespace hone::ir
