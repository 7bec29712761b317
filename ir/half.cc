#include "ir/half.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/core/check.h"

namespace hone::ir {
namespace {

/// Layout of a float format; `bias` is the exponent of the smallest normal number, negated, plus 1.
struct Format {
  int mantissa_bits;
  int exponent_bits;
  int min_exponent() const { return 2 - (1 << (exponent_bits - 1)); }
  int max_exponent() const { return (1 << (exponent_bits - 1)) - 1; }
};

constexpr Format kF16Format{10, 5};
constexpr Format kBF16Format{7, 8};

uint16_t Encode(Format format, double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int m = format.mantissa_bits;
  const uint16_t infinity = static_cast<uint16_t>(((1 << format.exponent_bits) - 1) << m);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | infinity | (1 << (m - 1)));
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return static_cast<uint16_t>(sign | infinity);
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), format.min_exponent());
  // In units of the last place the value is below 2^(m+1): scaling is exact, rint rounds half to
  // even.
  const double units = std::nearbyint(std::ldexp(magnitude, m - exponent));
  const auto scaled = static_cast<uint32_t>(units);
  // A carry into the next binade, or from subnormal to normal, comes out right by plain addition.
  const int64_t encoded =
      (static_cast<int64_t>(exponent - format.min_exponent()) << m) + static_cast<int64_t>(scaled);
  if (encoded >= infinity) return static_cast<uint16_t>(sign | infinity);
  return static_cast<uint16_t>(sign | encoded);
}

double Decode(Format format, uint16_t bits) {
  const int m = format.mantissa_bits;
  const int mantissa = bits & ((1 << m) - 1);
  const int exponent = (bits & 0x7fff) >> m;
  double magnitude;
  if (exponent == (1 << format.exponent_bits) - 1) {
    magnitude = mantissa == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, format.min_exponent() - m);
  } else {
    magnitude = std::ldexp(mantissa | (1 << m), exponent - 1 + format.min_exponent() - m);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

}  // namespace

uint16_t F16FromDouble(double value) { return Encode(kF16Format, value); }
double F16ToDouble(uint16_t bits) { return Decode(kF16Format, bits); }
uint16_t BF16FromDouble(double value) { return Encode(kBF16Format, value); }
double BF16ToDouble(uint16_t bits) { return Decode(kBF16Format, bits); }

double RoundTo(DType dtype, double value) {
  switch (dtype) {
    case DType::kF16: return F16ToDouble(F16FromDouble(value));
    case DType::kBF16: return BF16ToDouble(BF16FromDouble(value));
    case DType::kF32: return static_cast<double>(static_cast<float>(value));
    case DType::kF64: return value;
    default: break;
  }
  HONE_CHECK(false) << "RoundTo takes a float dtype, not " << ToString(dtype);
  return value;
}

double HalfUlp(DType dtype, double value) {
  if (!std::isfinite(value)) return 0;
  int mantissa_bits = 52;
  int min_exponent = -1022;
  switch (dtype) {
    case DType::kF16: mantissa_bits = 10, min_exponent = kF16Format.min_exponent(); break;
    case DType::kBF16: mantissa_bits = 7, min_exponent = kBF16Format.min_exponent(); break;
    case DType::kF32: mantissa_bits = 23, min_exponent = -126; break;
    case DType::kF64: break;
    default: HONE_CHECK(false) << "HalfUlp takes a float dtype, not " << ToString(dtype);
  }
  const int exponent = value == 0 ? min_exponent : std::max(std::ilogb(value), min_exponent);
  return std::ldexp(0.5, exponent - mantissa_bits);
}

}  // namespace hone::ir
