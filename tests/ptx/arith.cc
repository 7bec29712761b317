#include "tests/ptx/arith.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include "fmt/core.h"

// Rules and their wording are those of NVIDIA's PTX ISA, sections 9.7.1 to 9.7.9. What it leaves
// unspecified (a division by zero) is an error here.
namespace hone::ptx {
namespace {

constexpr uint64_t kNanF32 = 0x7fffffff;

class RoundingScope {
 public:
  explicit RoundingScope(Rounding mode) {
    constexpr int kModes[] = {FE_TONEAREST, FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(kModes[static_cast<size_t>(mode)]);
  }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;
  ~RoundingScope() { std::fesetround(FE_TONEAREST); }
};

template <typename F>
struct FloatBits;
template <>
struct FloatBits<float> {
  using Int = uint32_t;
};
template <>
struct FloatBits<double> {
  using Int = uint64_t;
};

template <typename F>
F FromBits(uint64_t bits) {
  return std::bit_cast<F>(static_cast<typename FloatBits<F>::Int>(bits));
}

template <typename F>
uint64_t ToBits(F value) {
  // "Single-precision instructions give the canonical NaN 0x7fffffff."
  if constexpr (sizeof(F) == 4) {
    if (std::isnan(value)) return kNanF32;
  }
  return std::bit_cast<typename FloatBits<F>::Int>(value);
}

template <typename F>
F Flushed(F value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(F{0}, value) : value;
}

/// .sat: to [0, 1], NaN to +0.
template <typename F>
F Saturated(F value) {
  return std::isnan(value) || value <= 0 ? F{0} : std::min(value, F{1});
}

/// "If exactly one input is NaN, the other; .NaN: NaN. +0 > -0."
template <typename F>
F MinMax(const Instruction& in, F a, F b) {
  if (std::isnan(a) || std::isnan(b)) {
    if (in.Has(kNan) || (std::isnan(a) && std::isnan(b)))
      return std::numeric_limits<F>::quiet_NaN();
    return std::isnan(a) ? b : a;
  }
  const bool a_less = a == b ? std::signbit(a) && !std::signbit(b) : a < b;
  return a_less == (in.opcode == "min") ? a : b;
}

template <typename F>
std::string ComputeFloat(const Instruction& in, std::span<const uint64_t> bits, uint64_t* out) {
  volatile F x[3] = {0, 0, 0};
  for (size_t k = 0; k < std::min<size_t>(bits.size(), 3); ++k)
    x[k] = in.Has(kFtz) ? Flushed(FromBits<F>(bits[k])) : FromBits<F>(bits[k]);
  const std::string_view op = in.opcode;
  const RoundingScope rounding(in.rounding);
  volatile F result = 0;
  if (op == "add")
    result = x[0] + x[1];
  else if (op == "sub")
    result = x[0] - x[1];
  else if (op == "mul")
    result = x[0] * x[1];
  else if (op == "div")
    result = x[0] / x[1];
  else if (op == "rcp")
    result = 1 / x[0];
  else if (op == "fma")
    result = std::fma(F{x[0]}, F{x[1]}, F{x[2]});
  else if (op == "sqrt")
    result = std::sqrt(F{x[0]});
  else if (op == "abs")
    result = std::fabs(F{x[0]});
  else if (op == "neg")
    result = -x[0];
  else if (op == "min" || op == "max")
    result = MinMax<F>(in, x[0], x[1]);
  else if (op == "copysign")
    result = std::copysign(F{x[1]}, F{x[0]});
  else
    return "not known for floating point";
  F value = in.Has(kFtz) ? Flushed(F{result}) : F{result};
  if (in.Has(kSat)) value = Saturated(value);
  *out = ToBits<F>(value);
  return {};
}

/// Positions and lengths beyond the register count as far as it goes.
uint64_t BitField(Type type, uint64_t a, uint64_t position, uint64_t length) {
  const auto width = static_cast<uint64_t>(type.bits);
  position &= 0xff;
  length &= 0xff;
  const bool is_signed = type.kind == 's';
  const uint64_t top = std::min(position + length, width) - 1;
  const bool sign = is_signed && length > 0 && ((a >> top) & 1) != 0;
  uint64_t result = 0;
  for (uint64_t k = 0; k < width; ++k) {
    const bool inside = k < length && position + k < width;
    const bool bit = inside ? ((a >> (position + k)) & 1) != 0 : sign;
    result |= uint64_t{bit} << k;
  }
  return result;
}

uint64_t InsertedField(int width, uint64_t a, uint64_t b, uint64_t position, uint64_t length) {
  uint64_t result = b;
  position &= 0xff;
  length &= 0xff;
  for (uint64_t k = 0; k < length && position + k < static_cast<uint64_t>(width); ++k) {
    const uint64_t at = uint64_t{1} << (position + k);
    result = ((a >> k) & 1) != 0 ? result | at : result & ~at;
  }
  return result;
}

/// prmt without a mode: four bytes of eight, each with the choice of repeating its sign.
uint64_t Permuted(uint64_t a, uint64_t b, uint64_t choice) {
  const uint64_t bytes = (b << 32) | Truncated(a, 32);
  uint64_t result = 0;
  for (int k = 0; k < 4; ++k) {
    const uint64_t pick = (choice >> (4 * k)) & 0xf;
    uint64_t byte = (bytes >> (8 * (pick & 7))) & 0xff;
    if ((pick & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * k);
  }
  return result;
}

uint64_t Funnelled(const Instruction& in, uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t n = in.Has(kWrap) ? c & 31 : std::min<uint64_t>(Truncated(c, 32), 32);
  const uint64_t both = (b << 32) | Truncated(a, 32);
  if (in.Has(kLeft)) return n == 0 ? b : Truncated((both << n) >> 32, 32);
  return Truncated(n == 32 ? b : both >> n, 32);
}

std::string Product(const Instruction& in, std::span<const uint64_t> x, uint64_t* out) {
  const int width = in.type.bits;
  const bool is_signed = in.type.kind == 's';
  using Wide = __int128;
  const Wide a =
      is_signed ? Wide{Extended(x[0], width)} : static_cast<Wide>(Truncated(x[0], width));
  const Wide b =
      is_signed ? Wide{Extended(x[1], width)} : static_cast<Wide>(Truncated(x[1], width));
  // The halves of a product are the same bits whether it is taken as signed.
  const auto product = static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b);
  uint64_t value =
      in.Has(kHi) ? static_cast<uint64_t>(product >> width) : static_cast<uint64_t>(product);
  if (in.opcode == "mad") value += x[2];
  *out = Truncated(value, in.Has(kWide) ? 2 * width : width);
  return {};
}

std::string Quotient(const Instruction& in, uint64_t a, uint64_t b, uint64_t* out) {
  const int width = in.type.bits;
  const bool wants_rest = in.opcode == "rem";
  if (Truncated(b, width) == 0) return "division by zero, whose result is not specified";
  if (in.type.kind != 's') {
    *out = wants_rest ? a % b : a / b;
    return {};
  }
  const int64_t x = Extended(a, width);
  const int64_t y = Extended(b, width);
  if (y == -1) {
    *out = wants_rest ? 0 : Truncated(~a + 1, width);
  } else {
    *out = Truncated(static_cast<uint64_t>(wants_rest ? x % y : x / y), width);
  }
  return {};
}

std::string ComputeInteger(const Instruction& in, std::span<const uint64_t> x, uint64_t* out) {
  const std::string_view op = in.opcode;
  const int width = in.type.bits;
  const bool is_signed = in.type.kind == 's';
  const auto shift = [&] { return std::min<uint64_t>(Truncated(x[1], 32), 64); };
  const bool a_less =
      x.size() > 1 && (is_signed ? Extended(x[0], width) < Extended(x[1], width) : x[0] < x[1]);
  if (op == "add")
    *out = x[0] + x[1];
  else if (op == "sub")
    *out = x[0] - x[1];
  else if (op == "mul" || op == "mad")
    return Product(in, x, out);
  else if (op == "div" || op == "rem")
    return Quotient(in, x[0], x[1], out);
  else if (op == "neg")
    *out = ~x[0] + 1;
  else if (op == "abs")
    *out = Extended(x[0], width) < 0 ? ~x[0] + 1 : x[0];
  else if (op == "min")
    *out = a_less ? x[0] : x[1];
  else if (op == "max")
    *out = a_less ? x[1] : x[0];
  else if (op == "and")
    *out = x[0] & x[1];
  else if (op == "or")
    *out = x[0] | x[1];
  else if (op == "xor")
    *out = x[0] ^ x[1];
  else if (op == "not")
    *out = in.type.kind == 'p' ? x[0] ^ 1 : ~x[0];
  else if (op == "cnot")
    *out = x[0] == 0 ? 1 : 0;
  else if (op == "shl")
    *out = shift() >= static_cast<uint64_t>(width) ? 0 : x[0] << shift();
  else if (op == "shr" && is_signed)
    *out = static_cast<uint64_t>(Extended(x[0], width) >> std::min<uint64_t>(shift(), 63));
  else if (op == "shr")
    *out = shift() >= static_cast<uint64_t>(width) ? 0 : x[0] >> shift();
  else if (op == "clz")
    *out = static_cast<uint64_t>(std::countl_zero(x[0]) - (64 - width));
  else if (op == "popc")
    *out = static_cast<uint64_t>(std::popcount(x[0]));
  else if (op == "bfe")
    *out = BitField(in.type, x[0], x[1], x[2]);
  else if (op == "bfi")
    *out = InsertedField(width, x[0], x[1], x[2], x[3]);
  else if (op == "prmt")
    *out = Permuted(x[0], x[1], x[2]);
  else if (op == "shf")
    *out = Funnelled(in, x[0], x[1], x[2]);
  else if (op == "brev") {
    uint64_t reversed = 0;
    for (int k = 0; k < width; ++k) reversed |= ((x[0] >> k) & 1) << (width - 1 - k);
    *out = reversed;
  } else {
    return "not known for integers";
  }
  if (in.Has(kSat)) return "saturation is not known for integers";
  *out = Truncated(*out, width);
  return {};
}

template <typename T>
bool Compared(std::string_view op, T a, T b) {
  if (op == "eq") return a == b;
  if (op == "ne") return a != b;
  if (op == "lt" || op == "lo") return a < b;
  if (op == "le" || op == "ls") return a <= b;
  if (op == "gt" || op == "hi") return a > b;
  return a >= b;
}

/// Ordered comparisons are false where an operand is NaN, those that end in u true.
template <typename F>
bool ComparedFloat(const Instruction& in, uint64_t bits_a, uint64_t bits_b) {
  const auto value = [&](uint64_t bits) {
    return in.Has(kFtz) ? Flushed(FromBits<F>(bits)) : FromBits<F>(bits);
  };
  const F a = value(bits_a);
  const F b = value(bits_b);
  const bool nan = std::isnan(a) || std::isnan(b);
  std::string_view op = in.compare;
  if (op == "num" || op == "nan") return nan == (op == "nan");
  const bool unordered = op.size() == 3;
  if (nan) return unordered;
  return Compared(unordered ? op.substr(0, 2) : op, a, b);
}

bool ComputeSetp(const Instruction& in, std::span<const uint64_t> x) {
  if (in.type.kind == 'f') {
    return in.type.bits == 32 ? ComparedFloat<float>(in, x[0], x[1])
                              : ComparedFloat<double>(in, x[0], x[1]);
  }
  if (in.type.kind == 's')
    return Compared(in.compare, Extended(x[0], in.type.bits), Extended(x[1], in.type.bits));
  return Compared(in.compare, x[0], x[1]);
}

double ReadFloat(Type type, uint64_t bits) {
  if (type.bits == 16)
    return static_cast<double>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
  return type.bits == 32 ? static_cast<double>(FromBits<float>(bits)) : FromBits<double>(bits);
}

double RoundedToInteger(Rounding mode, double value) {
  switch (mode) {
    case Rounding::kZero: return std::trunc(value);
    case Rounding::kDown: return std::floor(value);
    case Rounding::kUp: return std::ceil(value);
    default: return std::nearbyint(value);
  }
}

/// Out of range: the nearest; NaN as section 9.7.9 says of cvt.
uint64_t FloatToInteger(const Instruction& in, double value) {
  const int width = in.type.bits;
  if (std::isnan(value)) {
    const bool zero = in.second.bits != 64 && width != 64;
    return zero ? 0 : uint64_t{1} << (width - 1);
  }
  const double rounded = RoundedToInteger(in.rounding, value);
  if (in.type.kind == 'u') {
    if (rounded <= 0) return 0;
    return rounded >= std::ldexp(1.0, width) ? Truncated(~uint64_t{0}, width)
                                             : static_cast<uint64_t>(rounded);
  }
  const double limit = std::ldexp(1.0, width - 1);
  if (rounded >= limit) return (uint64_t{1} << (width - 1)) - 1;
  if (rounded < -limit) return uint64_t{1} << (width - 1);
  return Truncated(static_cast<uint64_t>(static_cast<int64_t>(rounded)), width);
}

/// From a double that holds the source exactly, or from a 64-bit integer: rounded once.
template <typename Source>
std::string WriteFloat(const Instruction& in, Source source, uint64_t* out) {
  const Rounding mode = in.to_integer ? Rounding::kNearest : in.rounding;
  if (in.type.bits == 16) {
    if (mode > Rounding::kNearest) return "only .rn is known to f16";
    const auto half = static_cast<_Float16>(source);
    *out = std::isnan(static_cast<double>(half)) ? 0x7fff : std::bit_cast<uint16_t>(half);
    return {};
  }
  const RoundingScope rounding(mode);
  const volatile Source exact = source;
  if (in.type.bits == 64) {
    const volatile auto wide = static_cast<double>(exact);
    *out = ToBits<double>(in.Has(kSat) ? Saturated(double{wide}) : double{wide});
    return {};
  }
  const volatile auto narrow = static_cast<float>(exact);
  float value = narrow;
  if (in.Has(kFtz)) value = Flushed(value);
  *out = ToBits<float>(in.Has(kSat) ? Saturated(value) : value);
  return {};
}

std::string Convert(const Instruction& in, uint64_t bits, uint64_t* out) {
  const Type to = in.type;
  const Type from = in.second;
  if (to.kind == 'p' || from.kind == 'p' || from.kind == 0 || to.kind == 'b' || from.kind == 'b')
    return "no such conversion";
  if (from.kind == 'f') {
    double value = ReadFloat(from, bits);
    if (in.Has(kFtz) && from.bits == 32)
      value = static_cast<double>(Flushed(FromBits<float>(bits)));
    if (to.kind != 'f') {
      if (!in.to_integer) return "to an integer without .rni, .rzi, .rmi or .rpi";
      *out = FloatToInteger(in, value);
      return {};
    }
    if (to.bits < from.bits && in.rounding == Rounding::kNone) return "narrows without rounding";
    if (in.to_integer) value = RoundedToInteger(in.rounding, value);
    return WriteFloat(in, value, out);
  }
  const int64_t number = Extended(bits, from.bits);
  if (to.kind == 'f') {
    if (in.rounding == Rounding::kNone) return "from an integer without rounding";
    return from.kind == 's' ? WriteFloat(in, number, out) : WriteFloat(in, bits, out);
  }
  if (in.Has(kSat)) return "saturation is not known between integers";
  *out = Truncated(from.kind == 's' ? static_cast<uint64_t>(number) : bits, to.bits);
  return {};
}

/// cvt.f16x2 puts its first source into the upper half.
std::string ConvertPair(Instruction in, std::span<const uint64_t> x, uint64_t* out) {
  in.type = {'f', 16};
  uint64_t upper = 0;
  uint64_t lower = 0;
  std::string wrong = Convert(in, x[0], &upper);
  if (wrong.empty()) wrong = Convert(in, x[1], &lower);
  *out = upper << 16 | lower;
  return wrong;
}

}  // namespace

uint64_t Truncated(uint64_t bits, int width) {
  return width >= 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

int64_t Extended(uint64_t bits, int width) {
  const uint64_t kept = Truncated(bits, width);
  const uint64_t sign = uint64_t{1} << (width - 1);
  return static_cast<int64_t>((kept ^ sign) - sign);
}

std::string Compute(const Instruction& in, std::span<const uint64_t> x, uint64_t* out) {
  if (in.opcode == "mov") {
    *out = x[0];
    return {};
  }
  if (in.opcode == "selp") {
    *out = x[2] != 0 ? x[0] : x[1];
    return {};
  }
  if (in.opcode == "setp") {
    *out = ComputeSetp(in, x) ? 1 : 0;
    return {};
  }
  if (in.opcode == "cvt")
    return in.type.kind == 'h' ? ConvertPair(in, x, out) : Convert(in, x[0], out);
  if (in.type.kind == 'f' && in.type.bits == 32) return ComputeFloat<float>(in, x, out);
  if (in.type.kind == 'f' && in.type.bits == 64) return ComputeFloat<double>(in, x, out);
  if (in.type.kind == 'f') return "arithmetic in f16 is not known";
  return ComputeInteger(in, x, out);
}

}  // namespace hone::ptx
