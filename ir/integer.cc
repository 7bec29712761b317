#include "ir/integer.h"

#include <cmath>
#include <limits>

namespace hone::ir {
namespace {

int BitsOf(DType t) { return static_cast<int>(8 * SizeOf(t)); }

}  // namespace

int64_t WrapTo(DType dtype, int64_t value) {
  if (IsBool(dtype)) return value != 0 ? 1 : 0;
  const int shift = 64 - BitsOf(dtype);
  const uint64_t moved = static_cast<uint64_t>(value) << shift;
  return IsUnsigned(dtype) ? static_cast<int64_t>(moved >> shift)
                           : static_cast<int64_t>(moved) >> shift;
}

int64_t MinOf(DType dtype) {
  if (IsUnsigned(dtype) || IsBool(dtype)) return 0;
  return std::numeric_limits<int64_t>::min() >> (64 - BitsOf(dtype));
}

int64_t MaxOf(DType dtype) {
  if (IsBool(dtype)) return 1;
  const int value_bits = BitsOf(dtype) - (IsUnsigned(dtype) ? 0 : 1);
  return static_cast<int64_t>(~uint64_t{0} >> (64 - value_bits));
}

int64_t SaturateTo(DType dtype, double value) {
  if (IsBool(dtype)) return value != 0 ? 1 : 0;
  if (std::isnan(value)) return 0;
  const double whole = std::trunc(value);
  const double above = std::ldexp(1.0, BitsOf(dtype) - (IsUnsigned(dtype) ? 0 : 1));
  if (whole >= above) return MaxOf(dtype);
  if (whole < (IsUnsigned(dtype) ? 0.0 : -above)) return MinOf(dtype);
  return dtype == DType::kU64 ? static_cast<int64_t>(static_cast<uint64_t>(whole))
                              : static_cast<int64_t>(whole);
}

bool LessThan(DType dtype, int64_t a, int64_t b) {
  return dtype == DType::kU64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

int64_t WrapAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t WrapSub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
int64_t WrapMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

int64_t TruncDivide(DType dtype, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (dtype == DType::kU64) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
  }
  if (b == -1) return WrapTo(dtype, WrapSub(0, a));
  return a / b;
}

int64_t TruncRemainder(DType dtype, int64_t a, int64_t b) {
  return WrapTo(dtype, WrapSub(a, WrapMul(TruncDivide(dtype, a, b), b)));
}

int64_t FloorDivide(DType dtype, int64_t a, int64_t b) {
  const int64_t quotient = TruncDivide(dtype, a, b);
  if (IsUnsigned(dtype) || b == 0 || b == -1) return quotient;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

int64_t FloorRemainder(DType dtype, int64_t a, int64_t b) {
  return WrapTo(dtype, WrapSub(a, WrapMul(FloorDivide(dtype, a, b), b)));
}

int64_t IntegerPower(DType dtype, int64_t a, int64_t b) {
  if (!IsUnsigned(dtype) && b < 0) {
    if (a == 1) return 1;
    if (a == -1) return b % 2 == 0 ? 1 : -1;
    return 0;
  }
  int64_t power = 1;
  for (auto left = static_cast<uint64_t>(b); left != 0; left >>= 1) {
    if ((left & 1) != 0) power = WrapMul(power, a);
    a = WrapMul(a, a);
  }
  return WrapTo(dtype, power);
}

int64_t ShiftLeft(DType dtype, int64_t a, int64_t b) {
  if (b < 0 || b >= BitsOf(dtype)) return 0;
  return WrapTo(dtype, static_cast<int64_t>(static_cast<uint64_t>(a) << b));
}

int64_t ShiftRight(DType dtype, int64_t a, int64_t b) {
  if (b < 0 || b >= BitsOf(dtype)) return !IsUnsigned(dtype) && a < 0 ? -1 : 0;
  if (IsUnsigned(dtype)) return static_cast<int64_t>(static_cast<uint64_t>(a) >> b);
  return a >> b;
}

}  // namespace hone::ir
