#include "ir/index/simplify.h"

#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/text.h"

namespace hone::ir {
namespace {

int64_t FloorDivide(int64_t a, int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

/// What an integer or bool expression without loads means, written down apart from every
/// simplifier.
int64_t Evaluate(const Expr& e, const std::vector<int64_t>& vars) {
  if (e->kind == ExprKind::kConst) return e->int_value;
  if (e->kind == ExprKind::kVar) return vars[static_cast<size_t>(e->id)];
  std::vector<int64_t> a;
  for (const Expr& arg : e->args) a.push_back(Evaluate(arg, vars));
  if (e->kind == ExprKind::kSelect) return a[0] != 0 ? a[1] : a[2];
  if (e->kind == ExprKind::kUnary) return e->unary() == UnaryOp::kNeg ? -a[0] : (a[0] == 0 ? 1 : 0);
  switch (e->binary()) {
    case BinaryOp::kAdd: return a[0] + a[1];
    case BinaryOp::kSub: return a[0] - a[1];
    case BinaryOp::kMul: return a[0] * a[1];
    case BinaryOp::kDiv: return FloorDivide(a[0], a[1]);
    case BinaryOp::kMod: return a[0] - FloorDivide(a[0], a[1]) * a[1];
    case BinaryOp::kMin: return std::min(a[0], a[1]);
    case BinaryOp::kMax: return std::max(a[0], a[1]);
    case BinaryOp::kEq: return a[0] == a[1] ? 1 : 0;
    case BinaryOp::kNe: return a[0] != a[1] ? 1 : 0;
    case BinaryOp::kLt: return a[0] < a[1] ? 1 : 0;
    case BinaryOp::kLe: return a[0] <= a[1] ? 1 : 0;
    case BinaryOp::kGt: return a[0] > a[1] ? 1 : 0;
    case BinaryOp::kGe: return a[0] >= a[1] ? 1 : 0;
    case BinaryOp::kAnd: return a[0] & a[1];
    case BinaryOp::kOr: return a[0] | a[1];
    default: ADD_FAILURE() << "not covered"; return 0;
  }
}

std::string Text(const Expr& e) {
  return ToText(
      e, {[](int id) { return "v" + std::to_string(id); }, [](int) { return std::string("x"); }});
}

class Generator {
 public:
  explicit Generator(Random random) : random_(random) {}

  Expr Index(int depth) {
    if (depth == 0)
      return random_.Chance(0.75) ? Var(static_cast<int>(random_.Below(4)))
                                  : Int(random_.Between(-9, 9));
    const Expr a = Index(depth - 1);
    switch (random_.Below(8)) {
      case 0:
      case 1: return a + Index(depth - 1);
      case 2: return a - Index(depth - 1);
      case 3: return a * random_.Between(-4, 6);
      case 4:
      case 5: return FloorDiv(a, random_.Between(1, 7));
      case 6: return FloorMod(a, random_.Between(1, 7));
      default: return random_.Chance(0.5) ? Min(a, Index(depth - 1)) : Max(a, Index(depth - 1));
    }
  }
  Expr Condition(int depth) {
    if (depth == 0) {
      constexpr BinaryOp kComparisons[] = {BinaryOp::kEq, BinaryOp::kNe, BinaryOp::kLt,
                                           BinaryOp::kLe, BinaryOp::kGt, BinaryOp::kGe};
      return Binary(kComparisons[random_.Below(6)], Index(2), Index(1));
    }
    return Binary(random_.Chance(0.6) ? BinaryOp::kAnd : BinaryOp::kOr, Condition(depth - 1),
                  Condition(0));
  }
  VarRanges Ranges() {
    VarRanges r;
    for (int v = 0; v < 4; ++v) r.extent.push_back(random_.Between(1, 6));
    return r;
  }

 private:
  Random random_;
};

template <typename F>
void ForEachPoint(const VarRanges& ranges, F visit) {
  std::vector<int64_t> v(4);
  for (v[0] = 0; v[0] < ranges.extent[0]; ++v[0])
    for (v[1] = 0; v[1] < ranges.extent[1]; ++v[1])
      for (v[2] = 0; v[2] < ranges.extent[2]; ++v[2])
        for (v[3] = 0; v[3] < ranges.extent[3]; ++v[3]) visit(v);
}

void ExpectSame(const Expr& before, const Expr& after, const VarRanges& ranges) {
  bool same = true;
  ForEachPoint(ranges, [&](const std::vector<int64_t>& v) {
    same &= Evaluate(before, v) == Evaluate(after, v);
  });
  EXPECT_TRUE(same) << Text(before) << "  became  " << Text(after) << "  with extents "
                    << ranges.extent[0] << " " << ranges.extent[1] << " " << ranges.extent[2] << " "
                    << ranges.extent[3];
}

TEST(Affine, SimplifiedIndicesKeepTheirValue) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Generator g{Random(seed)};
    const VarRanges ranges = g.Ranges();
    const Expr e = g.Index(4);
    ExpectSame(e, Simplify(e, ranges), ranges);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Affine, SimplifiedConditionsKeepTheirValue) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Generator g{Random(seed)};
    const VarRanges ranges = g.Ranges();
    const Expr e = g.Condition(2);
    ExpectSame(e, Simplify(e, ranges), ranges);
    const Expr chosen = Select(g.Condition(1), g.Index(2), g.Index(2));
    ExpectSame(chosen, Simplify(chosen, ranges), ranges);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Affine, BoundsContainEveryValueAndFactorsDivideIt) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Generator g{Random(seed)};
    const VarRanges ranges = g.Ranges();
    const Expr e = g.Index(3);
    const Linear linear = ToLinear(e, ranges);
    const Interval bounds = BoundsOf(e, ranges);
    const int64_t factor = KnownFactor(linear);
    ForEachPoint(ranges, [&](const std::vector<int64_t>& v) {
      const int64_t value = Evaluate(e, v);
      EXPECT_TRUE(bounds.low <= value && value <= bounds.high) << Text(e) << " = " << value;
      EXPECT_TRUE(factor == 0 ? value == 0 : value % factor == 0)
          << Text(e) << " = " << value << ", factor " << factor;
    });
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Affine, SplittingByCCancelsDivisionByC) {
  VarRanges ranges;
  ranges.extent = {5, 64, 3, 7};
  const Expr split = Var(0) * 64 + Var(1);
  EXPECT_EQ(Text(Simplify(FloorDiv(split, 64), ranges)), "v0");
  EXPECT_EQ(Text(Simplify(FloorMod(split, 64), ranges)), "v1");
  EXPECT_EQ(Text(Simplify(FloorDiv(FloorDiv(Var(1), 2), 3), ranges)), "v1 // 6");
  EXPECT_EQ(Text(Simplify(FloorDiv(Var(1), 7) * 7 + FloorMod(Var(1), 7), ranges)), "v1");
  EXPECT_EQ(Text(Simplify(FloorDiv(Var(0) * 6 + Var(2) * 2 + 1, 2), ranges)), "v0 * 3 + v2");
}

// Data of 64 bits: where a - b wraps, a < b is not a - b < 0.
TEST(Affine, ComparisonsOfWhatMayBeAnythingStayAsTheyAre) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(),
                    kMost = std::numeric_limits<int64_t>::max();
  VarRanges ranges;
  ranges.extent = {5, 8};
  const Expr x = Load(0, DType::kI64, {Var(0)}), y = Load(0, DType::kI64, {Var(1)});
  EXPECT_EQ(Text(Simplify(Lt(x, y), ranges)), "x[v0] < x[v1]");
  EXPECT_EQ(Text(Simplify(Ge(x + 1, y), ranges)), "x[v0] + 1 >= x[v1]");
  EXPECT_EQ(Text(Simplify(Lt(Var(0) + 1, Var(1)), ranges)), "v0 + v1 * -1 < -1") << "indices";
  EXPECT_EQ(Text(Simplify(Lt(x, Int(kLeast)), ranges)), Text(Lt(x, Int(kLeast))));
  EXPECT_EQ(Text(Simplify(Min(x, Int(kLeast)), ranges)), Text(Min(x, Int(kLeast))));
  EXPECT_EQ(Text(Simplify(Min(Int(kMost), Int(kLeast)), ranges)), Text(Int(kLeast)));
  EXPECT_NE(Decide(Lt(Int(kMost), Int(kLeast)), ranges), true);
  EXPECT_NE(Decide(Lt(Int(kLeast), Int(kMost)), ranges), false);
}

TEST(Affine, DecidesConditionsByRanges) {
  VarRanges ranges;
  ranges.extent = {5, 8, 1, 3};
  EXPECT_EQ(Decide(Lt(Var(0) * 8 + Var(1), Int(40)), ranges), true);
  EXPECT_EQ(Decide(Ge(Var(0) - 5, Int(0)), ranges), false);
  EXPECT_EQ(Decide(Lt(Var(0), Int(4)), ranges), std::nullopt);
  EXPECT_EQ(Decide(Binary(BinaryOp::kEq, Var(2), Int(0)), ranges), true)
      << "an axis of extent 1 is 0";
}

}  // namespace
}  // namespace hone::ir
