#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "gtest/gtest.h"

#include "ir/cpu/cpu_target.h"
#include "tests/codegen/kernel.h"

// Every elementary function over the whole range of its argument (a stride through all bit
// patterns), against the C++ library in a wider type.
namespace hone::codegen {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::LoopKind;
using ir::UnaryOp;

constexpr int64_t kValues = 1 << 16;

struct Function {
  UnaryOp op;
  long double (*reference)(long double);
  double float_ulps;  // largest error allowed
  double double_ulps;
};

long double Sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }

const Function kFunctions[] = {
    {UnaryOp::kExp, [](long double x) { return std::exp(x); }, 0.9, 0.9},
    {UnaryOp::kLog, [](long double x) { return std::log(x); }, 0.8, 0.8},
    {UnaryOp::kSin, [](long double x) { return std::sin(x); }, 1.5, 2},
    {UnaryOp::kCos, [](long double x) { return std::cos(x); }, 1.5, 2},
    {UnaryOp::kTan, [](long double x) { return std::tan(x); }, 3.3, 3.4},
    {UnaryOp::kAsin, [](long double x) { return std::asin(x); }, 0.51, 2},
    {UnaryOp::kAcos, [](long double x) { return std::acos(x); }, 0.51, 1.5},
    {UnaryOp::kAtan, [](long double x) { return std::atan(x); }, 2, 1.6},
    {UnaryOp::kSinh, [](long double x) { return std::sinh(x); }, 0.51, 3},
    {UnaryOp::kCosh, [](long double x) { return std::cosh(x); }, 0.51, 3},
    {UnaryOp::kTanh, [](long double x) { return std::tanh(x); }, 4.1, 3},
    {UnaryOp::kAsinh, [](long double x) { return std::asinh(x); }, 0.51, 2},
    {UnaryOp::kAcosh, [](long double x) { return std::acosh(x); }, 0.51, 2},
    {UnaryOp::kAtanh, [](long double x) { return std::atanh(x); }, 0.51, 2},
    {UnaryOp::kErf, [](long double x) { return std::erf(x); }, 6, 0.9},
    {UnaryOp::kSigmoid, Sigmoid, 2, 2},
    {UnaryOp::kRsqrt, [](long double x) { return 1 / std::sqrt(x); }, 1.5, 1.5},
};

/// y[i] = op(x[i]) in vectors of `lanes` (1: scalar code).
ir::LoopNest MapNest(const std::function<ir::Expr(ir::Expr, ir::Expr)>& body, DType dtype,
                     int64_t lanes) {
  NestBuilder b;
  const int x = b.Input("x", dtype, kValues);
  const int x2 = b.Input("x2", dtype, kValues);
  const int y = b.Output("y", dtype, kValues);
  const int i = b.NewVar(), lane = b.NewVar();
  const ir::Expr at = ir::Var(i) * lanes + ir::Var(lane);
  b.AddPhase(
      "map",
      ir::For(
          i, kValues / lanes, LoopKind::kSerial,
          ir::For(lane, lanes, LoopKind::kVector,
                  ir::Store(y, at, body(ir::Load(x, dtype, {at}), ir::Load(x2, dtype, {at}))))));
  return b.nest;
}

/// Size of the last place of a float or double near `value`.
template <typename T>
long double UlpOf(long double value) {
  int exponent = 0;
  std::frexp(std::abs(value), &exponent);
  const int digits = std::numeric_limits<T>::digits;
  return std::ldexp(1.0L, std::max(exponent, std::numeric_limits<T>::min_exponent) - digits);
}

template <typename T>
double UlpError(T actual, long double expected) {
  if (std::isnan(actual) || std::isnan(expected)) {
    return std::isnan(actual) == std::isnan(expected) ? 0 : std::numeric_limits<double>::infinity();
  }
  const T rounded = static_cast<T>(expected);
  // A zero has its sign, also where the result vanishes.
  if ((rounded == 0 || actual == 0) && std::signbit(actual) != std::signbit(expected))
    return std::numeric_limits<double>::infinity();
  if (std::isinf(rounded) || std::isinf(actual)) {
    // The first ulp beyond the largest number is infinite as well.
    if (rounded == actual) return 0;
    const long double most = std::numeric_limits<T>::max();
    const auto held = [&](long double v) { return std::clamp(v, -most, most); };
    return static_cast<double>(1 + std::abs(held(actual) - held(expected)) / UlpOf<T>(most));
  }
  return static_cast<double>(std::abs(static_cast<long double>(actual) - expected) /
                             UlpOf<T>(expected));
}

/// Bit patterns at equal distances, and the values where functions turn.
template <typename T, typename Bits>
std::vector<T> Arguments() {
  std::vector<T> values;
  const Bits stride = static_cast<Bits>(std::numeric_limits<Bits>::max() / kValues) | 1;
  for (int64_t i = 0; i < kValues; ++i)
    values.push_back(std::bit_cast<T>(static_cast<Bits>(static_cast<Bits>(i) * stride)));
  size_t at = 0;
  const T tiny = std::numeric_limits<T>::denorm_min();
  for (const T v : {T(0),
                    T(1),
                    T(0.5),
                    T(2),
                    T(M_PI),
                    T(M_PI_2),
                    T(M_PI_4),
                    T(88.7),
                    T(88.8),
                    T(89),
                    T(87.3),
                    T(103.9),
                    T(104),
                    T(709.7),
                    T(710),
                    T(745),
                    T(746),
                    T(9),
                    T(22),
                    tiny,
                    std::numeric_limits<T>::min(),
                    std::numeric_limits<T>::max(),
                    std::numeric_limits<T>::infinity(),
                    std::numeric_limits<T>::quiet_NaN(),
                    T(1) - std::numeric_limits<T>::epsilon() / 2,
                    T(1) + std::numeric_limits<T>::epsilon(),
                    T(16367173) * 2,
                    T(65535.9),
                    T(65536.1),
                    T(3e8)}) {
    values[at++] = v;
    values[at++] = -v;
  }
  // Every second one where most functions do something; the others stay all over the range.
  for (size_t i = at; i < static_cast<size_t>(kValues); i += 2) {
    values[i] = static_cast<T>(-20 + 40 * static_cast<double>(i) / kValues);
  }
  const auto large = std::count_if(values.begin(), values.end(),
                                   [](T v) { return std::isfinite(v) && v > T(20); });
  EXPECT_GE(large, kValues / 9) << "positive arguments that are large";
  return values;
}

template <typename T>
void CheckFunction(const Function& f, const Kernel& kernel, const std::vector<T>& x,
                   double allowed) {
  std::vector<T> y(x.size());
  std::vector<T> input = x;
  ASSERT_EQ(kernel.Run("map", {input.data(), input.data(), y.data()}), 0);
  double worst = 0;
  T at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = UlpError(y[i], f.reference(x[i]));
    if (error > worst) {
      worst = error;
      at = x[i];
    }
  }
  const size_t where = static_cast<size_t>(
      std::find_if(x.begin(), x.end(), [&](T v) { return v == at; }) - x.begin());
  EXPECT_LE(worst, allowed) << ToString(f.op) << "(" << at
                            << ") = " << (where < y.size() ? y[where] : T(0)) << ", not "
                            << static_cast<double>(f.reference(at));
}

TEST(VectorMathTest, FloatFunctionsOverTheWholeRange) {
  const std::vector<float> x = Arguments<float, uint32_t>();
  for (const ir::Target& target : RunnableTargets()) {
    SCOPED_TRACE(target.text);
    for (const Function& f : kFunctions) {
      const Kernel kernel(MapNest([&](auto a, auto) { return ir::Unary(f.op, a); }, DType::kF32,
                                  target.As<ir::CpuTarget>().lanes),
                          target);
      CheckFunction<float>(f, kernel, x, f.float_ulps);
    }
  }
}

// GELU's 1 + tanh(x), or 1 + erf(x), times a large x is far from 0 where that is not -1.
TEST(VectorMathTest, TanhAndErfEndAtOneExactly) {
  std::vector<float> x(kValues);
  for (int64_t i = 0; i < kValues; ++i)
    x[static_cast<size_t>(i)] = std::ldexp(9.0F, static_cast<int>(i % 120)) * (i % 2 == 0 ? 1 : -1);
  x[0] = std::numeric_limits<float>::infinity();
  x[1] = -x[0];
  for (const ir::Target& target : RunnableTargets()) {
    SCOPED_TRACE(target.text);
    for (const int64_t lanes : {int64_t{1}, int64_t{target.As<ir::CpuTarget>().lanes}}) {
      for (const UnaryOp op : {UnaryOp::kTanh, UnaryOp::kErf}) {
        const Kernel kernel(
            MapNest([&](auto a, auto) { return ir::Unary(op, a); }, DType::kF32, lanes), target);
        std::vector<float> y(x.size());
        ASSERT_EQ(kernel.Run("map", {x.data(), x.data(), y.data()}), 0);
        for (size_t i = 0; i < x.size(); ++i)
          ASSERT_EQ(y[i], x[i] > 0 ? 1 : -1) << ToString(op) << " of " << x[i];
      }
    }
  }
}

// Where exp and erf look numbers up (16 lanes of AVX-512) they are closer than elsewhere.
TEST(VectorMathTest, TablesAreCloser) {
  const Function functions[] = {
      {UnaryOp::kExp, [](long double x) { return std::exp(x); }, 0.8, 0.9},
      {UnaryOp::kErf, [](long double x) { return std::erf(x); }, 0.6, 0.9}};
  std::vector<float> x = Arguments<float, uint32_t>();
  // Half of them where erf changes, none whose rest has no normal number.
  for (float& value : x) value = std::abs(value) < 0x1p-110F ? 1 : value;
  for (size_t i = 0; i < x.size(); i += 2)
    x[i] = -4.5F + 9.0F * static_cast<float>(i) / static_cast<float>(x.size());
  for (const ir::Target& target : RunnableTargets()) {
    if (target.As<ir::CpuTarget>().isa != ir::Isa::kAvx512) continue;
    for (const Function& f : functions) {
      const Kernel kernel(MapNest([&](auto a, auto) { return ir::Unary(f.op, a); }, DType::kF32,
                                  target.As<ir::CpuTarget>().lanes),
                          target);
      CheckFunction<float>(f, kernel, x, f.float_ulps);
    }
  }
}

TEST(VectorMathTest, DoubleFunctionsOverTheWholeRange) {
  const std::vector<double> x = Arguments<double, uint64_t>();
  for (const ir::Target& target : RunnableTargets()) {
    SCOPED_TRACE(target.text);
    for (const Function& f : kFunctions) {
      const Kernel kernel(MapNest([&](auto a, auto) { return ir::Unary(f.op, a); }, DType::kF64,
                                  target.As<ir::CpuTarget>().lanes / 2),
                          target);
      CheckFunction<double>(f, kernel, x, f.double_ulps);
    }
  }
}

TEST(VectorMathTest, ScalarCodeGivesTheSameAsVectors) {
  const std::vector<float> x = Arguments<float, uint32_t>();
  for (const ir::Target& target : RunnableTargets()) {
    SCOPED_TRACE(target.text);
    for (const Function& f : kFunctions) {
      const auto body = [&](auto a, auto) { return ir::Unary(f.op, a); };
      const Kernel scalar(MapNest(body, DType::kF32, 1), target);
      CheckFunction<float>(f, scalar, x, f.float_ulps);
    }
  }
}

/// Every pair of special numbers, then bases of any size, half of them with exponents whose powers
/// fill the range of results.
template <typename T>
void FillPowers(const std::vector<T>& values, std::vector<T>* x, std::vector<T>* y) {
  const T inf = std::numeric_limits<T>::infinity();
  const T integers = std::ldexp(T(1), std::numeric_limits<T>::digits);  // above, all are even
  const T special[] = {T(0),
                       T(-0.),
                       T(1),
                       T(-1),
                       T(2),
                       T(-2),
                       T(3),
                       T(-3),
                       T(0.5),
                       T(-0.5),
                       T(1e30),
                       T(-1e30),
                       inf,
                       -inf,
                       std::numeric_limits<T>::quiet_NaN(),
                       std::numeric_limits<T>::denorm_min() * 71,
                       T(2.5),
                       T(-2.5),
                       integers,
                       integers * 2 - 1};
  constexpr size_t kSpecial = std::size(special);
  const double most = std::log(static_cast<double>(std::numeric_limits<T>::max()));
  *x = values;
  y->resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const int step = static_cast<int>(i * 7919 % 401) - 200;
    const double log = std::log(std::abs(static_cast<double>(values[i])));
    (*y)[i] = i % 4 == 3 && std::isfinite(log) ? static_cast<T>(step * most / 200 / log)
                                               : static_cast<T>(step) / 8;
    if (i >= kSpecial * kSpecial) continue;
    (*x)[i] = special[i / kSpecial];
    (*y)[i] = special[i % kSpecial];
  }
}

/// What the header says of pow, in units in the last place of the result.
double AllowedOfPow(float /*x*/, float /*y*/, long double /*expected*/) { return 1; }
double AllowedOfPow(double x, double y, long double expected) {
  const double power = std::abs(y * std::log(std::abs(x)));
  if (!std::isfinite(power) || power > 800) return 1;
  return std::max<double>(1, std::ldexp(1 + power, -52) *
                                 static_cast<double>(std::abs(expected) / UlpOf<double>(expected)));
}

template <typename T>
void CheckPow(DType dtype, const std::vector<T>& values) {
  std::vector<T> x, y, z(values.size());
  FillPowers(values, &x, &y);
  for (const ir::Target& target : RunnableTargets()) {
    SCOPED_TRACE(target.text);
    const Kernel kernel(
        MapNest([](auto a, auto b) { return ir::Binary(BinaryOp::kPow, a, b); }, dtype,
                target.As<ir::CpuTarget>().lanes * 4 / static_cast<int>(sizeof(T))),
        target);
    ASSERT_EQ(kernel.Run("map", {x.data(), y.data(), z.data()}), 0);
    for (size_t i = 0; i < x.size(); ++i) {
      const long double expected =
          std::pow(static_cast<long double>(x[i]), static_cast<long double>(y[i]));
      ASSERT_LE(UlpError(z[i], expected), AllowedOfPow(x[i], y[i], expected))
          << x[i] << " to " << y[i] << " = " << z[i] << ", not " << static_cast<double>(expected);
    }
  }
}

TEST(VectorMathTest, PowFollowsIeee) {
  CheckPow<float>(DType::kF32, Arguments<float, uint32_t>());
  CheckPow<double>(DType::kF64, Arguments<double, uint64_t>());
}

template <typename T>
void CheckRemainders(DType dtype, const std::vector<T>& values) {
  for (const ir::Target& target : RunnableTargets()) {
    for (const BinaryOp op : {BinaryOp::kTruncMod, BinaryOp::kMod}) {
      const Kernel kernel(MapNest([&](auto a, auto b) { return ir::Binary(op, a, b); }, dtype,
                                  target.As<ir::CpuTarget>().lanes / 2),
                          target);
      std::vector<T> x = values, y = values, z(x.size());
      for (size_t i = 0; i < y.size(); ++i) y[i] = values[(i * 40503 + 17) % y.size()];
      ASSERT_EQ(kernel.Run("map", {x.data(), y.data(), z.data()}), 0);
      for (size_t i = 0; i < x.size(); ++i) {
        T expected = std::fmod(x[i], y[i]);
        if (op == BinaryOp::kMod && expected != 0 && (expected < 0) != (y[i] < 0)) expected += y[i];
        const bool same = z[i] == expected || (std::isnan(z[i]) && std::isnan(expected));
        ASSERT_TRUE(same) << ToString(op) << " " << x[i] << ", " << y[i] << ": " << z[i] << ", not "
                          << expected;
      }
    }
  }
}

TEST(VectorMathTest, FloatRemaindersAreExact) {
  CheckRemainders<float>(DType::kF32, Arguments<float, uint32_t>());
  CheckRemainders<double>(DType::kF64, Arguments<double, uint64_t>());
}

}  // namespace
}  // namespace hone::codegen
