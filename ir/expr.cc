#include "ir/expr.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/core/check.h"
#include "ir/half.h"
#include "ir/integer.h"

namespace hone::ir {
namespace {

constexpr std::array<std::string_view, kNumUnaryOps> kUnaryNames = {
    "neg",     "abs",   "not",  "sqrt",  "rsqrt", "exp",  "log",   "sin",   "cos",   "tan",
    "asin",    "acos",  "atan", "sinh",  "cosh",  "tanh", "asinh", "acosh", "atanh", "erf",
    "sigmoid", "floor", "ceil", "round", "trunc", "sign", "isnan", "isinf"};
constexpr std::array<std::string_view, kNumBinaryOps> kBinaryNames = {
    "add", "sub", "mul", "div", "mod", "tdiv", "tmod", "min", "max", "pow", "eq",
    "ne",  "lt",  "le",  "gt",  "ge",  "and",  "or",   "xor", "shl", "shr"};
static_assert(kUnaryNames.back() == "isinf" && kBinaryNames.back() == "shr");

Expr Make(ExprNode node) { return std::make_shared<const ExprNode>(std::move(node)); }

/// The value of an i64 operation, for the operators that fold.
std::optional<int64_t> Fold(BinaryOp op, int64_t a, int64_t b) {
  switch (op) {
    case BinaryOp::kAdd: return WrapAdd(a, b);
    case BinaryOp::kSub: return WrapSub(a, b);
    case BinaryOp::kMul: return WrapMul(a, b);
    case BinaryOp::kDiv: return FloorDivide(DType::kI64, a, b);
    case BinaryOp::kMod: return FloorRemainder(DType::kI64, a, b);
    case BinaryOp::kMin: return std::min(a, b);
    case BinaryOp::kMax: return std::max(a, b);
    default: return std::nullopt;
  }
}

/// Neutral and absorbing constants of integer arithmetic; null when nothing applies.
Expr SimplifyInteger(BinaryOp op, const Expr& a, const Expr& b) {
  const std::optional<int64_t> left = AsInt(a);
  const std::optional<int64_t> right = AsInt(b);
  switch (op) {
    case BinaryOp::kAdd:
      if (right == 0) return a;
      if (left == 0) return b;
      break;
    case BinaryOp::kSub:
      if (right == 0) return a;
      break;
    case BinaryOp::kMul:
      if (right == 1 || left == 0) return a;
      if (left == 1 || right == 0) return b;
      break;
    case BinaryOp::kDiv:
      if (right == 1) return a;
      break;
    case BinaryOp::kMod:
      if (right == 1) return ConstInt(a->dtype, 0);
      break;
    default: break;
  }
  return nullptr;
}

}  // namespace

std::string_view ToString(UnaryOp op) { return kUnaryNames[static_cast<size_t>(op)]; }
std::string_view ToString(BinaryOp op) { return kBinaryNames[static_cast<size_t>(op)]; }

std::optional<UnaryOp> ParseUnaryOp(std::string_view text) {
  for (size_t i = 0; i < kUnaryNames.size(); ++i) {
    if (kUnaryNames[i] == text) return static_cast<UnaryOp>(i);
  }
  return std::nullopt;
}

std::optional<BinaryOp> ParseBinaryOp(std::string_view text) {
  for (size_t i = 0; i < kBinaryNames.size(); ++i) {
    if (kBinaryNames[i] == text) return static_cast<BinaryOp>(i);
  }
  return std::nullopt;
}

std::optional<DType> ResultType(UnaryOp op, DType a) {
  switch (op) {
    case UnaryOp::kNot: return IsFloat(a) ? std::nullopt : std::optional(a);
    case UnaryOp::kNeg:
    case UnaryOp::kAbs:
    case UnaryOp::kSign: return IsBool(a) ? std::nullopt : std::optional(a);
    case UnaryOp::kIsNan:
    case UnaryOp::kIsInf: return IsFloat(a) ? std::optional(DType::kBool) : std::nullopt;
    default: return IsFloat(a) ? std::optional(a) : std::nullopt;
  }
}

std::optional<DType> ResultType(BinaryOp op, DType a) {
  if (IsComparison(op)) return DType::kBool;
  switch (op) {
    case BinaryOp::kMin:
    case BinaryOp::kMax: return a;
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kXor: return IsFloat(a) ? std::nullopt : std::optional(a);
    case BinaryOp::kShl:
    case BinaryOp::kShr: return IsInteger(a) ? std::optional(a) : std::nullopt;
    default: return IsBool(a) ? std::nullopt : std::optional(a);
  }
}

Expr Int(int64_t value) { return ConstInt(DType::kI64, value); }

Expr Const(DType dtype, double value) {
  if (IsBool(dtype)) return ConstInt(dtype, value != 0 ? 1 : 0);
  if (IsInteger(dtype)) return ConstInt(dtype, SaturateTo(dtype, value));
  ExprNode node{.kind = ExprKind::kConst, .dtype = dtype};
  // One NaN only: its sign and payload would differ between machines and compilers.
  node.float_value =
      std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : RoundTo(dtype, value);
  return Make(std::move(node));
}

Expr ConstInt(DType dtype, int64_t value) {
  HONE_CHECK(!IsFloat(dtype)) << "ConstInt takes an integer dtype or bool, not " << ToString(dtype);
  ExprNode node{.kind = ExprKind::kConst, .dtype = dtype};
  node.int_value = WrapTo(dtype, value);
  return Make(std::move(node));
}

Expr Var(int id) {
  HONE_CHECK(id >= 0) << "a variable's id is at least 0, not " << id;
  ExprNode node{.kind = ExprKind::kVar, .dtype = DType::kI64};
  node.id = id;
  return Make(std::move(node));
}

Expr Load(int tensor, DType dtype, std::vector<Expr> indices) {
  for (const Expr& index : indices) {
    HONE_CHECK(index != nullptr && IsInteger(index->dtype)) << "an index must be an integer";
  }
  ExprNode node{.kind = ExprKind::kLoad, .dtype = dtype};
  node.id = tensor;
  node.args = std::move(indices);
  return Make(std::move(node));
}

Expr Cast(DType dtype, Expr a) {
  HONE_CHECK(a != nullptr);
  if (a->dtype == dtype) return a;
  if (dtype == DType::kI64) {
    if (const std::optional<int64_t> value = AsInt(a); value && a->dtype != DType::kU64) {
      return Int(*value);
    }
  }
  ExprNode node{.kind = ExprKind::kCast, .dtype = dtype};
  node.args = {std::move(a)};
  return Make(std::move(node));
}

Expr Select(Expr condition, Expr a, Expr b) {
  HONE_CHECK(condition != nullptr && a != nullptr && b != nullptr);
  HONE_CHECK(IsBool(condition->dtype))
      << "a select's condition must be bool, not " << ToString(condition->dtype);
  HONE_CHECK(a->dtype == b->dtype)
      << "select of " << ToString(a->dtype) << " and " << ToString(b->dtype);
  ExprNode node{.kind = ExprKind::kSelect, .dtype = a->dtype};
  node.args = {std::move(condition), std::move(a), std::move(b)};
  return Make(std::move(node));
}

Expr Unary(UnaryOp op, Expr a) {
  HONE_CHECK(a != nullptr);
  const std::optional<DType> type = ResultType(op, a->dtype);
  HONE_CHECK(type.has_value()) << ToString(op) << " does not take " << ToString(a->dtype);
  ExprNode node{.kind = ExprKind::kUnary, .dtype = *type, .op = static_cast<uint8_t>(op)};
  node.args = {std::move(a)};
  return Make(std::move(node));
}

Expr Binary(BinaryOp op, Expr a, Expr b) {
  HONE_CHECK(a != nullptr && b != nullptr);
  HONE_CHECK(a->dtype == b->dtype)
      << ToString(op) << " of " << ToString(a->dtype) << " and " << ToString(b->dtype);
  const std::optional<DType> type = ResultType(op, a->dtype);
  HONE_CHECK(type.has_value()) << ToString(op) << " does not take " << ToString(a->dtype);
  if (a->dtype == DType::kI64 && IsConst(a) && IsConst(b)) {
    if (const auto value = Fold(op, a->int_value, b->int_value)) return Int(*value);
  }
  if (IsInteger(a->dtype)) {
    if (Expr simple = SimplifyInteger(op, a, b)) return simple;
  }
  ExprNode node{.kind = ExprKind::kBinary, .dtype = *type, .op = static_cast<uint8_t>(op)};
  node.args = {std::move(a), std::move(b)};
  return Make(std::move(node));
}

Expr InRange(const Expr& a, int64_t extent) {
  return And(Ge(a, ConstInt(a->dtype, 0)), Lt(a, ConstInt(a->dtype, extent)));
}

bool IsConst(const Expr& e) { return e->kind == ExprKind::kConst; }

std::optional<int64_t> AsInt(const Expr& e) {
  if (!IsConst(e) || IsFloat(e->dtype)) return std::nullopt;
  return e->int_value;
}

bool Equal(const Expr& a, const Expr& b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  if (a->kind != b->kind || a->dtype != b->dtype || a->args.size() != b->args.size()) return false;
  switch (a->kind) {
    case ExprKind::kConst:
      return IsFloat(a->dtype) ? std::bit_cast<uint64_t>(a->float_value) ==
                                     std::bit_cast<uint64_t>(b->float_value)
                               : a->int_value == b->int_value;
    case ExprKind::kVar:
    case ExprKind::kLoad:
      if (a->id != b->id) return false;
      break;
    case ExprKind::kUnary:
    case ExprKind::kBinary:
      if (a->op != b->op) return false;
      break;
    case ExprKind::kCast:
    case ExprKind::kSelect: break;
  }
  for (size_t i = 0; i < a->args.size(); ++i) {
    if (!Equal(a->args[i], b->args[i])) return false;
  }
  return true;
}

namespace {

/// `e` with other arguments, through the constructors, so that constants fold again.
Expr WithArgs(const ExprNode& e, std::vector<Expr> args) {
  switch (e.kind) {
    case ExprKind::kLoad: return Load(e.id, e.dtype, std::move(args));
    case ExprKind::kCast: return Cast(e.dtype, std::move(args[0]));
    case ExprKind::kSelect:
      return Select(std::move(args[0]), std::move(args[1]), std::move(args[2]));
    case ExprKind::kUnary: return Unary(e.unary(), std::move(args[0]));
    case ExprKind::kBinary: return Binary(e.binary(), std::move(args[0]), std::move(args[1]));
    case ExprKind::kConst:
    case ExprKind::kVar: break;
  }
  HONE_CHECK(false) << "a leaf has no arguments";
  return nullptr;
}

using Memo = std::unordered_map<const ExprNode*, Expr>;

/// Shared subtrees are rebuilt once: inlining makes trees whose unshared size is exponential.
Expr RewriteShared(const Expr& e, const std::function<Expr(const Expr&)>& replace, Memo* memo) {
  const bool shared = e.use_count() > 1 && !e->args.empty();
  if (shared) {
    if (const auto found = memo->find(e.get()); found != memo->end()) return found->second;
  }
  Expr result = e;
  std::vector<Expr> args;
  bool changed = false;
  args.reserve(e->args.size());
  for (const Expr& arg : e->args) {
    args.push_back(RewriteShared(arg, replace, memo));
    changed |= args.back() != arg;
  }
  // x + 0 folds to x, which was seen as an argument already: replacing it again would substitute
  // twice.
  bool seen = false;
  if (changed) {
    result = WithArgs(*e, args);
    seen = std::find(args.begin(), args.end(), result) != args.end();
  }
  if (Expr other = seen ? nullptr : replace(result)) result = std::move(other);
  if (shared) memo->emplace(e.get(), result);
  return result;
}

}  // namespace

Expr Rewrite(const Expr& e, const std::function<Expr(const Expr&)>& replace) {
  Memo memo;
  return RewriteShared(e, replace, &memo);
}

Expr SubstituteVars(const Expr& e, const std::vector<Expr>& values) {
  return Rewrite(e, [&values](const Expr& node) -> Expr {
    if (node->kind != ExprKind::kVar || static_cast<size_t>(node->id) >= values.size())
      return nullptr;
    return values[static_cast<size_t>(node->id)];
  });
}

void Visit(const Expr& e, const std::function<void(const ExprNode&)>& visit) {
  visit(*e);
  for (const Expr& arg : e->args) Visit(arg, visit);
}

}  // namespace hone::ir
