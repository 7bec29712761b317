#include <cmath>
#include <limits>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/loop_interpreter.h"
#include "ir/tensor_buffer.h"
#include "tests/codegen/kernel.h"

// Every operator and cast at every dtype it takes, in vectors and in scalars, against the
// interpreter of loop nests; operands include the ends of each type, zeros, infinities and NaN.
namespace hone::codegen {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using ir::LoopKind;
using ir::UnaryOp;

constexpr int64_t kElements = 40;

std::vector<DType> AllDTypes() {
  std::vector<DType> all;
  for (int i = 0; i < ir::kNumDTypes; ++i) all.push_back(static_cast<DType>(i));
  return all;
}

bool IsMaths(UnaryOp op) { return op >= UnaryOp::kRsqrt && op <= UnaryOp::kSigmoid; }

bool Takes(UnaryOp op, DType dtype) {
  switch (op) {
    case UnaryOp::kNeg:
    case UnaryOp::kAbs:
    case UnaryOp::kSign: return !ir::IsBool(dtype);
    case UnaryOp::kNot: return !ir::IsFloat(dtype);
    default: return ir::IsFloat(dtype) && !IsMaths(op);
  }
}

bool Takes(BinaryOp op, DType dtype) {
  if (ir::IsComparison(op)) return true;
  switch (op) {
    case BinaryOp::kMin:
    case BinaryOp::kMax: return true;
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kXor: return !ir::IsFloat(dtype);
    case BinaryOp::kShl:
    case BinaryOp::kShr: return ir::IsInteger(dtype);
    case BinaryOp::kPow: return ir::IsInteger(dtype);  // floats: vector_math_test.cc
    case BinaryOp::kTruncDiv: return ir::IsInteger(dtype);
    default: return !ir::IsBool(dtype);
  }
}

/// Random operands, among them small ones and, in the first places, special ones.
std::vector<uint8_t> Operands(DType dtype, uint64_t seed) {
  Random random(seed);
  ir::TensorBuffer tensor = ir::TensorBuffer::Zeros(dtype, {kElements});
  for (int64_t i = 0; i < kElements; ++i) {
    ir::Element e;
    e.i = random.Chance(0.5) ? random.Between(-9, 9) : static_cast<int64_t>(random.Next());
    e.f = random.Chance(0.5) ? static_cast<double>(random.Between(-20, 20)) / 4
                             : 1000 * random.Uniform();
    tensor.Set(i, e);
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const double special[] = {
      0, -0.0, 1, -1, infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), 2.5};
  for (int64_t i = 0; i < 8; ++i) {
    // Each meets several of the other operand's.
    const int64_t at = seed % 2 == 0 ? i : 3 * i % 8;
    if (ir::IsFloat(dtype)) tensor.Set(i, {.f = special[at]});
    if (ir::IsInteger(dtype) && i < 2) {
      tensor.Set(i, ir::ElementOf(dtype, seed % 2 == 0 ? -infinity : i == 0 ? -1 : 0));
    }
  }
  return tensor.bytes;
}

/// Outputs y0, y1, ...: one for each body, each of its own dtype.
struct OperatorNest {
  NestBuilder builder;
  std::vector<std::string> names;
  std::vector<Expr> bodies;

  OperatorNest(const std::vector<std::pair<std::string, Expr>>& named, DType dtype, LoopKind kind) {
    // Variable 0 and buffers 0, 1 are what the bodies mention.
    const int i = builder.NewVar();
    builder.Input("a", dtype, kElements);
    builder.Input("b", dtype, kElements);
    std::vector<ir::Stmt> stores;
    for (const auto& [name, body] : named) {
      names.push_back(name);
      stores.push_back(ir::Store(builder.Output(name, body->dtype, kElements), ir::Var(i), body));
    }
    builder.AddPhase("all", ir::For(i, kElements, kind, ir::Block(stores)));
  }
};

bool Same(DType dtype, ir::Element got, ir::Element want) {
  if (!ir::IsFloat(dtype)) return got.i == want.i;
  if (std::isnan(got.f) || std::isnan(want.f)) return std::isnan(got.f) == std::isnan(want.f);
  // 16-bit types compute in float, the interpreter in double.
  const double slack = ir::SizeOf(dtype) == 2 ? 0x1p-7 : dtype == DType::kF32 ? 0x1p-23 : 0x1p-52;
  return got.f == want.f || std::abs(got.f - want.f) <= slack * std::abs(want.f);
}

void CheckNest(const OperatorNest& all, DType dtype, const ir::Target& target) {
  const ir::LoopNest& nest = all.builder.nest;
  const Kernel kernel(nest, target);
  if (testing::Test::HasFailure()) return;
  std::vector<std::vector<uint8_t>> actual = {Operands(dtype, 2), Operands(dtype, 3)};
  for (size_t k = 2; k < nest.buffers.size(); ++k) {
    actual.emplace_back(static_cast<size_t>(kElements * ir::SizeOf(nest.buffers[k].dtype)));
  }
  std::vector<std::vector<uint8_t>> expected = actual;
  std::vector<void*> pointers;
  for (auto& bytes : actual) pointers.push_back(bytes.data());
  const std::vector<std::span<uint8_t>> spans(expected.begin(), expected.end());
  const absl::Status reference = ir::RunLoopNest(nest, spans, {});
  ASSERT_TRUE(reference.ok()) << reference;
  ASSERT_EQ(kernel.Run("all", pointers), 0);
  for (size_t k = 2; k < nest.buffers.size(); ++k) {
    const DType to = nest.buffers[k].dtype;
    for (int64_t i = 0; i < kElements; ++i) {
      const ir::Element got = ir::ReadElement(to, actual[k].data(), i);
      const ir::Element want = ir::ReadElement(to, expected[k].data(), i);
      const double a = ir::ToDouble(dtype, ir::ReadElement(dtype, actual[0].data(), i));
      const double b = ir::ToDouble(dtype, ir::ReadElement(dtype, actual[1].data(), i));
      EXPECT_TRUE(Same(to, got, want))
          << all.names[k - 2] << " of " << ToString(dtype) << " " << a << ", " << b << ": "
          << ir::ToDouble(to, got) << ", not " << ir::ToDouble(to, want);
    }
  }
}

class OperatorTest : public testing::TestWithParam<DType> {};

TEST_P(OperatorTest, OperatorsAndCastsEqualTheInterpreter) {
  const DType dtype = GetParam();
  const Expr a = ir::Load(0, dtype, {ir::Var(0)});
  const Expr b = ir::Load(1, dtype, {ir::Var(0)});
  std::vector<std::pair<std::string, Expr>> named;
  for (int i = 0; i < ir::kNumUnaryOps; ++i) {
    const auto op = static_cast<UnaryOp>(i);
    if (Takes(op, dtype)) named.emplace_back(ToString(op), ir::Unary(op, a));
  }
  for (int i = 0; i < ir::kNumBinaryOps; ++i) {
    const auto op = static_cast<BinaryOp>(i);
    if (Takes(op, dtype)) named.emplace_back(ToString(op), ir::Binary(op, a, b));
  }
  for (const DType to : AllDTypes()) {
    if (to != dtype) named.emplace_back("cast to " + std::string(ToString(to)), ir::Cast(to, a));
  }
  for (const LoopKind kind : {LoopKind::kVector, LoopKind::kSerial}) {
    for (const ir::Target& target : RunnableTargets()) {
      SCOPED_TRACE(target.text + " " + std::string(ToString(kind)));
      CheckNest(OperatorNest(named, dtype, kind), dtype, target);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, OperatorTest, testing::ValuesIn(AllDTypes()),
                         [](const auto& dtype) { return std::string(ToString(dtype.param)); });

}  // namespace
}  // namespace hone::codegen
