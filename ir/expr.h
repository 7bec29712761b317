#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/dtype.h"

namespace hone::ir {

enum class ExprKind : uint8_t { kConst, kVar, kLoad, kCast, kSelect, kUnary, kBinary };

/// Unary operators. Transcendentals take and give floats; kNot is logical on bool, bitwise on
/// integers. kRound is half to even; kSign gives -1, 0, 1 (NaN for NaN); kIsNan and kIsInf give
/// bool.
enum class UnaryOp : uint8_t {
  kNeg,
  kAbs,
  kNot,
  kSqrt,
  kRsqrt,
  kExp,
  kLog,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kErf,
  kSigmoid,
  kFloor,
  kCeil,
  kRound,
  kTrunc,
  kSign,
  kIsNan,
  kIsInf,
};
inline constexpr int kNumUnaryOps = 28;

/// Binary operators; both operands have the same dtype. kDiv is true division on floats and floor
/// division on integers; kMod is the floor remainder (sign of the divisor) on both; kTruncDiv and
/// kTruncMod round toward zero (C's / and %, fmod on floats). Integers wrap. kMin and kMax
/// propagate NaN. Comparisons give bool. kAnd, kOr, kXor are logical on bool, bitwise on integers.
/// kShr is logical on unsigned, arithmetic on signed. Shifts by the width or more give 0 (kShr of a
/// negative: -1). Integer division by zero gives 0 and the remainder by zero gives the dividend, so
/// nothing traps.
enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kTruncDiv,
  kTruncMod,
  kMin,
  kMax,
  kPow,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr,
  kXor,
  kShl,
  kShr,
};
inline constexpr int kNumBinaryOps = 21;

/// Text names, e.g. "exp", "add"; unique within each enum.
std::string_view ToString(UnaryOp op);
std::string_view ToString(BinaryOp op);
std::optional<UnaryOp> ParseUnaryOp(std::string_view text);
std::optional<BinaryOp> ParseBinaryOp(std::string_view text);
/// The dtype of the result for operands of dtype `a` (both of them); empty when the operator does
/// not take it.
std::optional<DType> ResultType(UnaryOp op, DType a);
std::optional<DType> ResultType(BinaryOp op, DType a);
constexpr bool IsComparison(BinaryOp op) { return op >= BinaryOp::kEq && op <= BinaryOp::kGe; }

struct ExprNode;
/// An immutable expression tree; subtrees are shared freely, so copying is cheap. Thread-safe to
/// read.
using Expr = std::shared_ptr<const ExprNode>;

/// One node. Which fields mean something follows from `kind`:
///   kConst   dtype; int_value (integers, bool as 0/1) or float_value (floats)
///   kVar     id: in a Stage's body the axis number (spatial axes first, then reduce axes);
///            in a loop nest the loop variable; dtype kI64
///   kLoad    id: tensor (Workload) or buffer (loop nest); args: one index per dimension (Workload)
///   or one
///            flat element offset (loop nest), integer typed
///   kCast    args[0] converted to dtype (float→int truncates toward zero and saturates, NaN gives
///   0;
///            int→int wraps; to bool is != 0)
///   kSelect  args[0] (bool) ? args[1] : args[2]; the branch not taken is never loaded from
///   kUnary, kBinary  op in `op`
struct ExprNode {
  ExprKind kind = ExprKind::kConst;
  DType dtype = DType::kI64;
  uint8_t op = 0;
  int id = -1;
  int64_t int_value = 0;
  double float_value = 0;
  std::vector<Expr> args = {};

  UnaryOp unary() const { return static_cast<UnaryOp>(op); }
  BinaryOp binary() const { return static_cast<BinaryOp>(op); }
};

// Constructors. Mismatched dtypes are programmer errors (HONE_CHECK). Add, Sub, Mul, Div, Mod, Min,
// Max on i64 constants fold, and x+0, x*1, x*0 (integers only) simplify, so that index expressions
// stay readable.
Expr Int(int64_t value);  ///< i64 constant
Expr Const(DType dtype,
           double value);  ///< constant of any dtype; integers are truncated from value
Expr ConstInt(DType dtype, int64_t value);  ///< exact integer or bool constant
Expr Var(int id);                           ///< i64 axis or loop variable
Expr Load(int tensor, DType dtype, std::vector<Expr> indices);
Expr Cast(DType dtype, Expr a);  ///< no node when the dtype is the same
Expr Select(Expr condition, Expr a, Expr b);
Expr Unary(UnaryOp op, Expr a);
Expr Binary(BinaryOp op, Expr a, Expr b);

inline Expr operator+(Expr a, Expr b) { return Binary(BinaryOp::kAdd, std::move(a), std::move(b)); }
inline Expr operator-(Expr a, Expr b) { return Binary(BinaryOp::kSub, std::move(a), std::move(b)); }
inline Expr operator*(Expr a, Expr b) { return Binary(BinaryOp::kMul, std::move(a), std::move(b)); }
inline Expr operator+(Expr a, int64_t b) { return std::move(a) + Int(b); }
inline Expr operator-(Expr a, int64_t b) { return std::move(a) - Int(b); }
inline Expr operator*(Expr a, int64_t b) { return std::move(a) * Int(b); }
inline Expr FloorDiv(Expr a, int64_t b) { return Binary(BinaryOp::kDiv, std::move(a), Int(b)); }
inline Expr FloorMod(Expr a, int64_t b) { return Binary(BinaryOp::kMod, std::move(a), Int(b)); }
inline Expr Max(Expr a, Expr b) { return Binary(BinaryOp::kMax, std::move(a), std::move(b)); }
inline Expr Min(Expr a, Expr b) { return Binary(BinaryOp::kMin, std::move(a), std::move(b)); }
inline Expr And(Expr a, Expr b) { return Binary(BinaryOp::kAnd, std::move(a), std::move(b)); }
inline Expr Lt(Expr a, Expr b) { return Binary(BinaryOp::kLt, std::move(a), std::move(b)); }
inline Expr Ge(Expr a, Expr b) { return Binary(BinaryOp::kGe, std::move(a), std::move(b)); }
/// 0 <= a < extent.
Expr InRange(const Expr& a, int64_t extent);

bool IsConst(const Expr& e);
/// The value of an integer (or bool) constant; empty for everything else.
std::optional<int64_t> AsInt(const Expr& e);
/// Structural equality, float constants by bits.
bool Equal(const Expr& a, const Expr& b);

/// Rebuilds `e` bottom-up. `replace` sees every node after its children were rebuilt and returns
/// the node to use instead, or null to keep it.
Expr Rewrite(const Expr& e, const std::function<Expr(const Expr&)>& replace);
/// Replaces each kVar by values[id]; a null or missing entry keeps the variable.
Expr SubstituteVars(const Expr& e, const std::vector<Expr>& values);
/// Calls `visit` on every node, parents first.
void Visit(const Expr& e, const std::function<void(const ExprNode&)>& visit);

}  // namespace hone::ir
