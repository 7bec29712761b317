#include "ir/value.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/core/check.h"
#include "ir/half.h"
#include "ir/integer.h"

namespace hone::ir {
namespace {

// Rounding errors of one operation, in unit roundoffs: IEEE operations are correctly rounded, the
// vector maths functions state less than 4 units in the last place.
constexpr double kBasicUnits = 1;
constexpr double kMathsUnits = 8;

double SmallestNormal(DType dtype) {
  switch (dtype) {
    case DType::kF16: return 0x1p-14;
    case DType::kF64: return 0x1p-1022;
    default: return 0x1p-126;
  }
}

Value Float(double f, double bound) { return {.f = f, .bound = std::isfinite(f) ? bound : 0}; }

/// Whether every way to compute `f` from exact operands gives `f`, fused multiply-add included. A
/// double says so of itself only where it is a whole number.
bool IsExact(DType dtype, double f) {
  if (dtype != DType::kF64) return RoundTo(dtype, f) == f;
  return f == std::trunc(f) && std::fabs(f) < 0x1p53;
}

/// A float result that a correctly rounded operation makes: exact operands whose result is
/// representable stay exact.
Value Basic(DType dtype, double f, double propagated) {
  if (propagated == 0 && IsExact(dtype, f)) return Float(f, 0);
  return Float(f,
               propagated + kBasicUnits * UnitRoundoff(dtype) * std::fabs(f) + HalfUlp(dtype, 0));
}

/// A transcendental result; vector code may flush what is below the normal numbers.
Value Maths(DType dtype, double f, double propagated, double scale) {
  return Float(f, propagated + kMathsUnits * UnitRoundoff(dtype) * std::max(std::fabs(f), scale) +
                      SmallestNormal(dtype));
}

/// A monotone step function: how far its result moves when the argument moves by its bound.
template <typename F>
double StepBound(const Value& a, F function) {
  if (a.bound == 0 || !std::isfinite(a.f)) return 0;
  const double y = function(a.f);
  return std::max(std::fabs(function(a.f + a.bound) - y), std::fabs(function(a.f - a.bound) - y));
}

double Sign(double x) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); }

double FloorMod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/// Unary operators of floats that are exact or a correctly rounded square root.
Value ExactUnary(UnaryOp op, DType dtype, const Value& a) {
  switch (op) {
    case UnaryOp::kNeg: return Float(-a.f, a.bound);
    case UnaryOp::kAbs: return Float(std::fabs(a.f), a.bound);
    case UnaryOp::kSqrt: {
      const double root = std::sqrt(a.f);
      return Basic(dtype, root,
                   a.f > a.bound ? a.bound / (2 * root) : std::sqrt(a.bound + std::fabs(a.f)));
    }
    case UnaryOp::kFloor:
      return Float(std::floor(a.f), StepBound(a, [](double x) { return std::floor(x); }));
    case UnaryOp::kCeil:
      return Float(std::ceil(a.f), StepBound(a, [](double x) { return std::ceil(x); }));
    case UnaryOp::kRound:
      return Float(std::nearbyint(a.f), StepBound(a, [](double x) { return std::nearbyint(x); }));
    case UnaryOp::kTrunc:
      return Float(std::trunc(a.f), StepBound(a, [](double x) { return std::trunc(x); }));
    case UnaryOp::kSign: return Float(Sign(a.f), StepBound(a, Sign));
    case UnaryOp::kIsNan: return {.i = std::isnan(a.f) ? 1 : 0};
    case UnaryOp::kIsInf: return {.i = std::isinf(a.f) ? 1 : 0};
    default: break;
  }
  HONE_CHECK(false) << ToString(op) << " is not an exact operator";
  return {};
}

/// Result, absolute derivative, and the size below which the error is absolute (range reduction).
struct MathsResult {
  double y;
  double slope;
  double scale = 0;
};

MathsResult MathsOf(UnaryOp op, double x) {
  switch (op) {
    case UnaryOp::kRsqrt: return {1 / std::sqrt(x), 0.5 / (std::fabs(x) * std::sqrt(std::fabs(x)))};
    case UnaryOp::kExp: return {std::exp(x), std::exp(x)};
    case UnaryOp::kLog: return {std::log(x), 1 / std::fabs(x)};
    case UnaryOp::kSin: return {std::sin(x), std::fabs(std::cos(x)), 1};
    case UnaryOp::kCos: return {std::cos(x), std::fabs(std::sin(x)), 1};
    case UnaryOp::kTan:
      return {std::tan(x), 1 + std::tan(x) * std::tan(x), 1 + std::tan(x) * std::tan(x)};
    case UnaryOp::kAsin: return {std::asin(x), 1 / std::sqrt(std::max(1 - x * x, 1e-9)), 1};
    case UnaryOp::kAcos: return {std::acos(x), 1 / std::sqrt(std::max(1 - x * x, 1e-9)), 1};
    case UnaryOp::kAtan: return {std::atan(x), 1 / (1 + x * x), 1};
    case UnaryOp::kSinh: return {std::sinh(x), std::cosh(x), 1};
    case UnaryOp::kCosh: return {std::cosh(x), std::fabs(std::sinh(x)), 1};
    case UnaryOp::kTanh: return {std::tanh(x), 1 - std::tanh(x) * std::tanh(x)};
    case UnaryOp::kAsinh: return {std::asinh(x), 1 / std::sqrt(1 + x * x), 1};
    case UnaryOp::kAcosh: return {std::acosh(x), 1 / std::sqrt(std::max(x * x - 1, 1e-9)), 1};
    case UnaryOp::kAtanh: return {std::atanh(x), 1 / std::max(std::fabs(1 - x * x), 1e-9), 1};
    case UnaryOp::kErf: return {std::erf(x), 2 * std::numbers::inv_sqrtpi * std::exp(-x * x)};
    case UnaryOp::kSigmoid: {
      const double y = 1 / (1 + std::exp(-x));
      return {y, y * (1 - y)};
    }
    default: break;
  }
  HONE_CHECK(false) << ToString(op) << " is no mathematical function";
  return {};
}

Value FloatUnary(UnaryOp op, DType dtype, const Value& a) {
  const bool maths = (op >= UnaryOp::kRsqrt && op <= UnaryOp::kSigmoid);
  if (!maths) return ExactUnary(op, dtype, a);
  const MathsResult result = MathsOf(op, a.f);
  const double propagated = a.bound == 0 ? 0 : result.slope * a.bound;
  return Maths(dtype, result.y, propagated, result.scale);
}

Value IntegerUnary(UnaryOp op, DType dtype, const Value& a) {
  switch (op) {
    case UnaryOp::kNeg: return {.i = WrapTo(dtype, WrapSub(0, a.i)), .bound = a.bound};
    case UnaryOp::kAbs:
      return {.i = LessThan(dtype, a.i, 0) ? WrapTo(dtype, WrapSub(0, a.i)) : a.i,
              .bound = a.bound};
    case UnaryOp::kNot:
      return {.i = IsBool(dtype) ? 1 - a.i : WrapTo(dtype, ~a.i), .bound = a.bound};
    case UnaryOp::kSign:
      return {.i = a.i == 0 ? 0 : LessThan(dtype, a.i, 0) ? -1 : 1, .bound = a.bound};
    default: break;
  }
  HONE_CHECK(false) << ToString(op) << " does not take integers";
  return {};
}

/// max or min of floats: NaN wins; when the two are too close to call either may be meant.
Value FloatExtreme(BinaryOp op, const Value& a, const Value& b) {
  if (std::isnan(a.f)) return a;
  if (std::isnan(b.f)) return b;
  const bool first = op == BinaryOp::kMax ? a.f >= b.f : a.f <= b.f;
  Value result = first ? a : b;
  if (std::fabs(a.f - b.f) <= a.bound + b.bound) result.bound = std::max(a.bound, b.bound);
  return result;
}

Value FloatPower(DType dtype, const Value& a, const Value& b) {
  const double y = std::pow(a.f, b.f);
  double propagated = 0;
  if (a.bound > 0) propagated += std::fabs(b.f * std::pow(a.f, b.f - 1)) * a.bound;
  if (b.bound > 0 && a.f > 0) propagated += std::fabs(y * std::log(a.f)) * b.bound;
  // Code computes exp(b·log a): the error of the exponent counts.
  const double exponent = a.f == 0 ? 0 : std::fabs(b.f * std::log(std::fabs(a.f)));
  return Maths(dtype, y, propagated, std::fabs(y) * (1 + exponent));
}

Value FloatBinary(BinaryOp op, DType dtype, const Value& a, const Value& b) {
  switch (op) {
    case BinaryOp::kAdd: return Basic(dtype, a.f + b.f, a.bound + b.bound);
    case BinaryOp::kSub: return Basic(dtype, a.f - b.f, a.bound + b.bound);
    case BinaryOp::kMul:
      return Basic(dtype, a.f * b.f,
                   std::fabs(a.f) * b.bound + std::fabs(b.f) * a.bound + a.bound * b.bound);
    case BinaryOp::kDiv: {
      const double q = a.f / b.f;
      const double moved = a.bound + (b.bound == 0 ? 0 : std::fabs(q) * b.bound);
      return Basic(dtype, q, moved == 0 ? 0 : moved / std::fabs(b.f));
    }
    case BinaryOp::kMod:
    case BinaryOp::kTruncMod: {
      const double r = op == BinaryOp::kMod ? FloorMod(a.f, b.f) : std::fmod(a.f, b.f);
      const double moved = a.bound + (b.bound == 0 ? 0 : std::fabs(a.f / b.f) * b.bound);
      if (moved == 0) return Float(r, 0);
      const double gap = std::min(std::fabs(r), std::fabs(b.f) - std::fabs(r));
      return Float(r, gap <= moved ? std::fabs(b.f) : moved);
    }
    case BinaryOp::kTruncDiv: {
      const Value quotient = FloatBinary(BinaryOp::kDiv, dtype, a, b);
      return Float(std::trunc(quotient.f),
                   StepBound(quotient, [](double x) { return std::trunc(x); }));
    }
    case BinaryOp::kMin:
    case BinaryOp::kMax: return FloatExtreme(op, a, b);
    case BinaryOp::kPow: return FloatPower(dtype, a, b);
    default: break;
  }
  HONE_CHECK(false) << ToString(op) << " does not take floats";
  return {};
}

int64_t IntegerResult(BinaryOp op, DType dtype, int64_t a, int64_t b) {
  switch (op) {
    case BinaryOp::kAdd: return WrapTo(dtype, WrapAdd(a, b));
    case BinaryOp::kSub: return WrapTo(dtype, WrapSub(a, b));
    case BinaryOp::kMul: return WrapTo(dtype, WrapMul(a, b));
    case BinaryOp::kDiv: return FloorDivide(dtype, a, b);
    case BinaryOp::kMod: return FloorRemainder(dtype, a, b);
    case BinaryOp::kTruncDiv: return TruncDivide(dtype, a, b);
    case BinaryOp::kTruncMod: return TruncRemainder(dtype, a, b);
    case BinaryOp::kMin: return LessThan(dtype, a, b) ? a : b;
    case BinaryOp::kMax: return LessThan(dtype, a, b) ? b : a;
    case BinaryOp::kPow: return IntegerPower(dtype, a, b);
    case BinaryOp::kAnd: return a & b;
    case BinaryOp::kOr: return a | b;
    case BinaryOp::kXor: return a ^ b;
    case BinaryOp::kShl: return ShiftLeft(dtype, a, b);
    case BinaryOp::kShr: return ShiftRight(dtype, a, b);
    default: break;
  }
  HONE_CHECK(false) << ToString(op) << " is a comparison";
  return 0;
}

/// How far an integer result may be off when an operand is.
double IntegerBound(BinaryOp op, DType dtype, const Value& a, const Value& b) {
  if (a.bound == 0 && b.bound == 0) return 0;
  const double x = std::fabs(ToDouble(dtype, {.i = a.i}));
  const double y = std::fabs(ToDouble(dtype, {.i = b.i}));
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: return a.bound + b.bound;
    case BinaryOp::kMul: return x * b.bound + y * a.bound + a.bound * b.bound;
    case BinaryOp::kDiv:
    case BinaryOp::kTruncDiv:
      if (b.bound == 0 && y > 0) return std::ceil(a.bound / y);
      break;
    case BinaryOp::kMod:
    case BinaryOp::kTruncMod:
      if (b.bound == 0) return y;
      break;
    case BinaryOp::kMin:
    case BinaryOp::kMax: return std::max(a.bound, b.bound);
    default: break;
  }
  return ToDouble(dtype, {.i = MaxOf(dtype)});
}

/// Logic on bool where a bound of 1 means "either": exact when the exact operand decides.
Value BoolLogic(BinaryOp op, const Value& a, const Value& b) {
  const auto decided = [](const Value& v, int64_t value) { return v.bound == 0 && v.i == value; };
  const int64_t result = IntegerResult(op, DType::kBool, a.i, b.i);
  const bool exact = (a.bound == 0 && b.bound == 0) ||
                     (op == BinaryOp::kAnd && (decided(a, 0) || decided(b, 0))) ||
                     (op == BinaryOp::kOr && (decided(a, 1) || decided(b, 1)));
  return {.i = result, .bound = exact ? 0.0 : 1.0};
}

Value Compare(BinaryOp op, DType dtype, const Value& a, const Value& b) {
  bool less = false;
  bool equal = false;
  if (IsFloat(dtype)) {
    less = a.f < b.f, equal = a.f == b.f;
  } else {
    less = LessThan(dtype, a.i, b.i), equal = a.i == b.i;
  }
  const bool unordered = IsFloat(dtype) && (std::isnan(a.f) || std::isnan(b.f));
  bool result = false;
  switch (op) {
    case BinaryOp::kEq: result = equal; break;
    case BinaryOp::kNe: result = !equal; break;
    case BinaryOp::kLt: result = less; break;
    case BinaryOp::kLe: result = less || equal; break;
    case BinaryOp::kGt: result = !less && !equal && !unordered; break;
    default: result = !less && !unordered; break;
  }
  const double room = a.bound + b.bound;
  const double x = IsFloat(dtype) ? a.f : ToDouble(dtype, {.i = a.i});
  const double y = IsFloat(dtype) ? b.f : ToDouble(dtype, {.i = b.i});
  return {.i = result ? 1 : 0, .bound = room > 0 && std::fabs(x - y) <= room ? 1.0 : 0.0};
}

}  // namespace

double UnitRoundoff(DType dtype) {
  switch (dtype) {
    case DType::kF16: return 0x1p-11;
    case DType::kBF16: return 0x1p-8;
    case DType::kF32: return 0x1p-24;
    default: return 0x1p-53;
  }
}

Value ValueOf(Element element) { return {.f = element.f, .i = element.i}; }
Element ElementOf(Value a) { return {.f = a.f, .i = a.i}; }

Value Apply(UnaryOp op, DType dtype, Value a) {
  return IsFloat(dtype) ? FloatUnary(op, dtype, a) : IntegerUnary(op, dtype, a);
}

Value Apply(BinaryOp op, DType dtype, Value a, Value b) {
  if (IsComparison(op)) return Compare(op, dtype, a, b);
  if (IsFloat(dtype)) return FloatBinary(op, dtype, a, b);
  if (IsBool(dtype)) return BoolLogic(op, a, b);
  return {.i = IntegerResult(op, dtype, a.i, b.i), .bound = IntegerBound(op, dtype, a, b)};
}

Value ApplySelect(DType dtype, Value condition, Value a, Value b) {
  Value result = condition.i != 0 ? a : b;
  if (condition.bound == 0) return result;
  const double gap = IsFloat(dtype)
                         ? std::fabs(a.f - b.f)
                         : std::fabs(ToDouble(dtype, {.i = a.i}) - ToDouble(dtype, {.i = b.i}));
  const Value& other = condition.i != 0 ? b : a;
  if (std::isfinite(gap)) result.bound = std::max(result.bound, gap + other.bound);
  return result;
}

Value ApplyCast(DType from, DType to, Value a) {
  if (IsFloat(from) && IsFloat(to)) return Stored(to, a);
  if (IsBool(to)) {
    const double x = IsFloat(from) ? a.f : ToDouble(from, {.i = a.i});
    return {.i = x != 0 ? 1 : 0, .bound = a.bound > 0 && std::fabs(x) <= a.bound ? 1.0 : 0.0};
  }
  if (IsFloat(from)) {
    const auto convert = [to](double x) { return ToDouble(to, {.i = SaturateTo(to, x)}); };
    return {.i = SaturateTo(to, a.f), .bound = StepBound(a, convert)};
  }
  if (!IsFloat(to)) return {.i = WrapTo(to, a.i), .bound = a.bound};
  // One rounding from the integer: through double a large one would be rounded twice.
  double f = ToDouble(from, {.i = a.i});
  if (to == DType::kF32) {
    f = from == DType::kU64 ? static_cast<double>(static_cast<float>(static_cast<uint64_t>(a.i)))
                            : static_cast<double>(static_cast<float>(a.i));
  }
  f = RoundTo(to, f);
  return Float(f, a.bound);
}

Value Stored(DType dtype, Value a) {
  if (!IsFloat(dtype)) return {.i = WrapTo(dtype, a.i), .bound = a.bound};
  const double rounded = RoundTo(dtype, a.f);
  // An exact value rounds to the same everywhere; otherwise both roundings may differ.
  const double bound = a.bound == 0 ? 0
                                    : a.bound + std::fabs(rounded - a.f) +
                                          (rounded == a.f ? 0 : HalfUlp(dtype, rounded));
  return Float(rounded, bound);
}

bool ArgReplaces(Combiner combiner, DType dtype, const ValueAndIndex& candidate,
                 const ValueAndIndex& best) {
  const bool larger = combiner == Combiner::kArgMax || combiner == Combiner::kArgMaxLast;
  const bool last = combiner == Combiner::kArgMinLast || combiner == Combiner::kArgMaxLast;
  const bool earlier = last ? candidate.index.i > best.index.i : candidate.index.i < best.index.i;
  if (IsFloat(dtype)) {
    const double a = candidate.value.f;
    const double b = best.value.f;
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && (!std::isnan(b) || earlier);
    return a == b ? earlier : (a > b) == larger;
  }
  const int64_t a = candidate.value.i;
  const int64_t b = best.value.i;
  return a == b ? earlier : LessThan(dtype, b, a) == larger;
}

void SumOf::Add(Value term) {
  ++count_;
  if (!IsFloat(dtype_)) {
    sum_.i = WrapTo(dtype_, WrapAdd(sum_.i, term.i));
    sum_.bound += term.bound;
    return;
  }
  sum_.f += term.f;
  sum_.bound += term.bound;
  magnitude_ += std::fabs(term.f);
  whole_ &= term.bound == 0 && term.f == std::trunc(term.f);
}

Value SumOf::Result() const {
  if (!IsFloat(dtype_)) return sum_;
  const double unit = UnitRoundoff(dtype_);
  // Whole numbers below the mantissa's range add without rounding, in every order.
  if (whole_ && magnitude_ * unit <= 1) return Float(sum_.f, 0);
  const auto n = static_cast<double>(count_);
  const double factor = std::min(n - 1, 4 * std::sqrt(n));
  return Float(sum_.f, sum_.bound + factor * unit * magnitude_);
}

}  // namespace hone::ir
