#include "ir/expr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hone::ir {
namespace {

TEST(ExprTest, IndexArithmeticFolds) {
  EXPECT_EQ(AsInt(Int(3) + 4), 7);
  EXPECT_EQ(AsInt(Int(3) - 4), -1);
  EXPECT_EQ(AsInt(Int(3) * 4), 12);
  EXPECT_EQ(AsInt(Max(Int(3), Int(4))), 4);
  EXPECT_EQ(AsInt(Min(Int(3), Int(4))), 3);
}

TEST(ExprTest, FoldedDivisionAndRemainderAreFloor) {
  EXPECT_EQ(AsInt(FloorDiv(Int(-7), 2)), -4);
  EXPECT_EQ(AsInt(FloorMod(Int(-7), 2)), 1);
  EXPECT_EQ(AsInt(FloorDiv(Int(7), -2)), -4);
  EXPECT_EQ(AsInt(FloorMod(Int(7), -2)), -1);
  EXPECT_EQ(AsInt(FloorDiv(Int(7), 0)), 0);
  EXPECT_EQ(AsInt(FloorMod(Int(7), 0)), 7);
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(AsInt(FloorDiv(Int(lowest), -1)), lowest);
  EXPECT_EQ(AsInt(FloorMod(Int(lowest), -1)), 0);
}

TEST(ExprTest, NeutralConstantsDisappear) {
  const Expr x = Var(0);
  EXPECT_EQ(x + 0, x);
  EXPECT_EQ(x - 0, x);
  EXPECT_EQ(Int(0) + x, x);
  EXPECT_EQ(x * 1, x);
  EXPECT_EQ(AsInt(x * 0), 0);
  EXPECT_EQ(FloorDiv(x, 1), x);
  EXPECT_EQ(AsInt(FloorMod(x, 1)), 0);
}

TEST(ExprTest, FloatArithmeticIsNotSimplified) {
  const Expr x = Load(0, DType::kF32, {});
  const Expr zero = Const(DType::kF32, 0);
  EXPECT_EQ((x * zero)->kind, ExprKind::kBinary) << "NaN times 0 is NaN";
  EXPECT_EQ((x + zero)->kind, ExprKind::kBinary) << "-0 plus 0 is +0";
}

TEST(ExprTest, ConstantsHaveTheValuesOfTheirType) {
  EXPECT_EQ(Const(DType::kF32, 0.1)->float_value, static_cast<double>(0.1F));
  EXPECT_EQ(AsInt(Const(DType::kI8, -3.7)), -3);
  EXPECT_EQ(AsInt(Const(DType::kU8, 300)), 255);
  EXPECT_EQ(AsInt(Const(DType::kU8, -5)), 0);
  EXPECT_EQ(AsInt(Const(DType::kI64, 1e30)), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(AsInt(Const(DType::kI64, -1e30)), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(AsInt(Const(DType::kI32, std::nan(""))), 0);
  EXPECT_EQ(AsInt(ConstInt(DType::kI8, 200)), -56);
  EXPECT_EQ(AsInt(Const(DType::kBool, 0.5)), 1);
}

TEST(ExprTest, EqualComparesStructureAndFloatBits) {
  const auto f = [](double v) { return Const(DType::kF32, v); };
  EXPECT_TRUE(Equal(Var(1) * 2 + 3, Var(1) * 2 + 3));
  EXPECT_FALSE(Equal(Var(1) * 2 + 3, Var(1) * 2 + 4));
  EXPECT_FALSE(Equal(Var(1) + Var(2), Var(1) - Var(2)));
  EXPECT_FALSE(Equal(Var(1), Var(2)));
  EXPECT_FALSE(Equal(f(0.0), f(-0.0)));
  EXPECT_TRUE(Equal(f(std::nan("1")), f(-std::nan("2")))) << "there is one NaN";
  EXPECT_FALSE(Equal(Load(0, DType::kF32, {}), Load(1, DType::kF32, {})));
}

TEST(ExprTest, SubstituteVarsReplacesAndFolds) {
  const Expr e = Var(0) * 4 + Var(1);
  EXPECT_EQ(AsInt(SubstituteVars(e, {Int(2), Int(5)})), 13);
  EXPECT_TRUE(Equal(SubstituteVars(e, {Int(2)}), Int(8) + Var(1)));
  EXPECT_TRUE(Equal(SubstituteVars(e, {nullptr, Int(0)}), Var(0) * 4));
}

TEST(ExprTest, RewriteKeepsWhatDoesNotChange) {
  const Expr e = Select(Lt(Var(0), Int(3)), Var(1), Var(2));
  EXPECT_EQ(Rewrite(e, [](const Expr&) -> Expr { return nullptr; }), e);
}

TEST(ExprTest, RewriteOfSharedTreesIsLinear) {
  Expr e = Load(0, DType::kF32, {});
  for (int i = 0; i < 100; ++i) e = e + e;  // 2^100 nodes when unshared
  int calls = 0;
  const Expr changed = Rewrite(e, [&calls](const Expr& node) -> Expr {
    ++calls;
    return node->kind == ExprKind::kLoad ? Load(7, DType::kF32, {}) : nullptr;
  });
  EXPECT_LT(calls, 300);
  EXPECT_NE(changed, e);
}

TEST(ExprTest, NamesOfOperatorsReadBack) {
  for (int i = 0; i < kNumUnaryOps; ++i) {
    const auto op = static_cast<UnaryOp>(i);
    EXPECT_EQ(ParseUnaryOp(ToString(op)), op);
  }
  for (int i = 0; i < kNumBinaryOps; ++i) {
    const auto op = static_cast<BinaryOp>(i);
    EXPECT_EQ(ParseBinaryOp(ToString(op)), op);
  }
  EXPECT_EQ(ParseUnaryOp("add"), std::nullopt);
  EXPECT_EQ(ParseBinaryOp(""), std::nullopt);
}

TEST(ExprTest, SubstituteVarsReplacesEachVariableOnce) {
  // v1 + v0 with v0 = 0 and v1 = v0: the sum folds to the new v0, which is not the old one.
  EXPECT_TRUE(Equal(SubstituteVars(Var(1) + Var(0), {Int(0), Var(0)}), Var(0)));
  EXPECT_TRUE(Equal(SubstituteVars(Var(1) * Var(0), {Int(1), Var(0)}), Var(0)));
}

TEST(ExprDeathTest, MismatchedTypesAreProgrammerErrors) {
  const Expr f = Const(DType::kF32, 1);
  EXPECT_DEATH(f + Int(1), "add of f32 and i64");
  EXPECT_DEATH(Unary(UnaryOp::kExp, Int(1)), "exp does not take i64");
  EXPECT_DEATH(Select(Int(1), f, f), "must be bool");
  EXPECT_DEATH(Load(0, DType::kF32, {f}), "an index must be an integer");
}

}  // namespace
}  // namespace hone::ir
