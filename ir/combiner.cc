#include "ir/combiner.h"

#include <limits>
#include <utility>

#include "base/core/check.h"
#include "ir/integer.h"

namespace hone::ir {
namespace {

Expr Lowest(DType dtype) {
  return IsFloat(dtype) ? Const(dtype, -std::numeric_limits<double>::infinity())
                        : ConstInt(dtype, MinOf(dtype));
}

Expr Highest(DType dtype) {
  return IsFloat(dtype) ? Const(dtype, std::numeric_limits<double>::infinity())
                        : ConstInt(dtype, MaxOf(dtype));
}

bool IsLast(Combiner c) { return c == Combiner::kArgMinLast || c == Combiner::kArgMaxLast; }
bool WantsLarger(Combiner c) { return c == Combiner::kArgMax || c == Combiner::kArgMaxLast; }

}  // namespace

Expr Identity(Combiner combiner, DType dtype, int k) {
  if (IsArg(combiner) && k == 1) {
    return Int(IsLast(combiner) ? -1 : std::numeric_limits<int64_t>::max());
  }
  switch (combiner) {
    case Combiner::kSum:
    case Combiner::kSumSumSq: return Const(dtype, 0);
    case Combiner::kProduct: return Const(dtype, 1);
    case Combiner::kMin:
    case Combiner::kArgMin:
    case Combiner::kArgMinLast: return Highest(dtype);
    case Combiner::kMax:
    case Combiner::kArgMax:
    case Combiner::kArgMaxLast: return Lowest(dtype);
    case Combiner::kNone: break;
  }
  HONE_CHECK(false) << "a Stage without combiner has no identity";
  return nullptr;
}

Expr Combine(Combiner combiner, Expr a, Expr b) {
  switch (combiner) {
    case Combiner::kSum:
    case Combiner::kSumSumSq: return Binary(BinaryOp::kAdd, std::move(a), std::move(b));
    case Combiner::kProduct: return Binary(BinaryOp::kMul, std::move(a), std::move(b));
    case Combiner::kMin: return Min(std::move(a), std::move(b));
    case Combiner::kMax: return Max(std::move(a), std::move(b));
    default: break;
  }
  HONE_CHECK(false) << ToString(combiner) << " does not combine single values";
  return nullptr;
}

BinaryOp OperatorOf(Combiner combiner) {
  switch (combiner) {
    case Combiner::kProduct: return BinaryOp::kMul;
    case Combiner::kMin: return BinaryOp::kMin;
    case Combiner::kMax: return BinaryOp::kMax;
    default: return BinaryOp::kAdd;
  }
}

Expr ArgWins(Combiner combiner, Expr a_value, Expr a_index, Expr b_value, Expr b_index) {
  HONE_CHECK(IsArg(combiner)) << ToString(combiner) << " compares no indices";
  const BinaryOp better = WantsLarger(combiner) ? BinaryOp::kGt : BinaryOp::kLt;
  const BinaryOp earlier = IsLast(combiner) ? BinaryOp::kGt : BinaryOp::kLt;
  Expr wins = Binary(better, a_value, b_value);
  Expr tie = Binary(BinaryOp::kEq, a_value, b_value);
  if (IsFloat(a_value->dtype)) {
    const Expr a_nan = Unary(UnaryOp::kIsNan, a_value);
    const Expr b_nan = Unary(UnaryOp::kIsNan, b_value);
    wins = Binary(BinaryOp::kOr, wins, And(a_nan, Unary(UnaryOp::kNot, b_nan)));
    tie = Binary(BinaryOp::kOr, tie, And(a_nan, b_nan));
  }
  return Binary(BinaryOp::kOr, std::move(wins),
                And(std::move(tie), Binary(earlier, std::move(a_index), std::move(b_index))));
}

}  // namespace hone::ir
