#include "codegen/index_space.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/index/simplify.h"
#include "ir/text.h"

namespace hone::codegen {
namespace {

using ir::Expr;
using ir::FloorDiv;
using ir::FloorMod;
using ir::Int;
using ir::Var;

template <typename Sum>
std::multiset<int64_t> Coefficients(const Sum& sum) {
  std::multiset<int64_t> result;
  for (const auto& term : sum.terms) result.insert(term.coefficient);
  return result;
}

/// Variables: 0 in [0, 9], 1 in [0, 3], 2 in [0, 6] (a loop each), 3 the lane of 8.
class IndexSpaceTest : public testing::Test, private OpaqueSource {
 protected:
  IndexSpaceTest() : space_(4, this) {
    for (int var = 0; var < 3; ++var)
      space_.Bind(var, space_.NewVariable(var + 1, {0, kHighest[var]}));
    space_.Bind(3, space_.Lane(8));
  }

  Affine Of(const Expr& e) { return space_.Decompose(e); }
  void ExpectSame(const Expr& a, const Expr& b) { EXPECT_EQ(Of(a), Of(b)); }
  void ExpectConst(const Expr& e, int64_t value) { EXPECT_EQ(Of(e), Affine(value)); }

  IndexSpace space_;

 private:
  static constexpr int64_t kHighest[] = {9, 3, 6};
  Affine Opaque(const Expr& /*expr*/) override { return space_.NewOpaque(false, {-5, 5}); }
  bool IsPure(const Expr& /*expr*/) override { return true; }
};

TEST_F(IndexSpaceTest, SumsCollectTerms) {
  ExpectSame((Var(0) + 2) * 3 - Var(0), Var(0) * 2 + 6);
  ExpectConst(Var(0) - Var(0), 0);
}

TEST_F(IndexSpaceTest, DivisionCancelsWhatIsDivisible) {
  ExpectSame(FloorDiv(Var(0) * 4 + Var(1), 4), Var(0));
  ExpectSame(FloorMod(Var(0) * 4 + Var(1), 4), Var(1));
  ExpectSame(FloorDiv(Var(0) * 8 + Var(1) + 15, 4), Var(0) * 2 + 3 + FloorDiv(Var(1) + 3, 4));
}

TEST_F(IndexSpaceTest, DivisionTakesOutACommonFactor) {
  ExpectSame(FloorDiv(Var(0) * 4 + Var(1), 8), FloorDiv(Var(0), 2));
  ExpectSame(FloorMod(Var(0) * 4 + Var(1), 8), FloorMod(Var(0), 2) * 4 + Var(1));
}

TEST_F(IndexSpaceTest, DivisionOfNegativesFloors) {
  ExpectConst(FloorDiv(Int(-1) - Var(1), 4), -1);
  ExpectSame(FloorMod(Int(-1) - Var(1), 4), Int(3) - Var(1));
}

std::string TextOf(const Expr& e) {
  return ir::ToText(e, {[](int id) { return "v" + std::to_string(id); }, {}});
}

/// Sums of products by constants, divisions, remainders, minima and maxima of variables 0 to 2.
Expr RandomIndex(Random& random, int depth) {
  if (depth == 0) return Var(static_cast<int>(random.Below(3)));
  const Expr a = RandomIndex(random, depth - 1);
  const Expr b = RandomIndex(random, depth - 1);
  const int64_t c = random.Between(2, 12);
  switch (random.Below(6)) {
    case 0: return FloorDiv(a, c);
    case 1: return FloorMod(a, c);
    case 2: return ir::Max(a, b) - c;
    case 3: return ir::Min(a, b) + c;
    case 4: return a * c + b;
    default: return a - b;
  }
}

TEST_F(IndexSpaceTest, SumsAreThoseOfTheSimplifier) {
  // tests/ir/simplify_test.cc holds its values against arithmetic.
  const ir::VarRanges ranges = {.extent = {10, 4, 7}};
  Random random(22);
  for (int i = 0; i < 3000; ++i) {
    const Expr e = RandomIndex(random, 4);
    const ir::Linear expected = ir::ToLinear(e, ranges);
    const Affine made = Of(e);
    SCOPED_TRACE(TextOf(e) + ", number " + std::to_string(i) + " of seed 22");
    ASSERT_EQ(made.constant, expected.constant);
    ASSERT_EQ(Coefficients(made), Coefficients(expected));
    ASSERT_EQ(space_.Bounds(made), ir::BoundsOf(expected, ranges));
  }
}

TEST_F(IndexSpaceTest, RangesDecideComparisons) {
  ExpectConst(ir::Lt(Var(1), Int(4)), 1);
  ExpectConst(ir::Ge(Var(1), Int(4)), 0);
  ExpectConst(ir::InRange(Var(0) * 4 + Var(1), 40), 1);
  EXPECT_FALSE(Of(ir::Lt(Var(1), Int(3))).IsConst());
  ExpectSame(ir::Max(Var(2), Int(0)), Var(2));
}

TEST_F(IndexSpaceTest, FactsDecideWhatFollowsFromThem) {
  const Expr inside = ir::InRange(Var(0) + Var(1) - 2, 5);
  const Affine condition = Of(inside);
  ASSERT_FALSE(condition.IsConst());
  space_.PushFacts(condition, true);
  ExpectConst(inside, 1);
  ExpectConst(ir::Ge(Var(0) + Var(1), Int(1)), 1);
  EXPECT_FALSE(Of(ir::Ge(Var(0) + Var(1), Int(3))).IsConst());
  space_.PopFacts(0);
  EXPECT_EQ(Of(inside), condition);
  // What is not >= 4 is < 4.
  space_.PushFacts(Of(ir::Ge(Var(2), Int(4))), false);
  ExpectConst(ir::Lt(Var(2), Int(4)), 1);
}

TEST_F(IndexSpaceTest, EqualOperatorsAreOneAtom) {
  const int before = space_.num_atoms();
  const Affine a = Of(FloorDiv(Var(2), 3));
  EXPECT_EQ(Of(FloorDiv(Var(2) + 6, 3)), a + Affine(2));
  EXPECT_EQ(space_.num_atoms(), before + 1);
}

TEST_F(IndexSpaceTest, LanesAreEvaluatedOneByOne) {
  const Affine index = Of(Var(0) * 10 + FloorDiv(Var(3), 3));
  EXPECT_TRUE(space_.DependsOnLane(index));
  EXPECT_EQ(space_.AtLane(index, 7), Of(Var(0) * 10 + 2));
  const Affine mask = Of(ir::Ge(Var(3), Int(5)));
  EXPECT_EQ(space_.AtLane(mask, 4), Affine(0));
  EXPECT_EQ(space_.AtLane(mask, 5), Affine(1));
}

TEST_F(IndexSpaceTest, DepthIsThatOfTheInnermostLoop) {
  EXPECT_EQ(space_.Depth(Of(Var(0) + 3)), 1);
  EXPECT_EQ(space_.Depth(Of(FloorDiv(Var(2) + Var(0), 5) + Var(1))), 3);
  EXPECT_EQ(space_.Depth(Of(Var(3))), 0);
}

TEST_F(IndexSpaceTest, NarrowIntegersThatMayWrapAreOpaque) {
  const Expr small = ir::Cast(ir::DType::kI8, Var(0));
  EXPECT_EQ(Of(small), Of(Var(0)));
  const Affine wrapped =
      Of(ir::Binary(ir::BinaryOp::kMul, small, ir::ConstInt(ir::DType::kI8, 100)));
  EXPECT_EQ(space_.Bounds(wrapped).low, -5);
}

}  // namespace
}  // namespace hone::codegen
