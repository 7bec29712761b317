#include <algorithm>
#include <vector>

#include "base/core/check.h"
#include "codegen/llvm_emitter.h"

// Values of expressions. What does not differ between lanes stays scalar until it meets a vector.
namespace hone::codegen {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using ir::ExprKind;

namespace {

bool IsZero(const Expr& expr) {
  return expr->kind == ExprKind::kConst && expr->int_value == 0 && expr->float_value == 0;
}

bool IsProduct(const Expr& expr) {
  return expr->kind == ExprKind::kBinary && expr->binary() == BinaryOp::kMul &&
         ir::IsFloat(expr->dtype);
}

/// Appends the loads of `expr` that are made whatever the values are: all but a select's branches.
void AppendSureLoads(const Expr& expr, std::vector<Expr>* loads) {
  if (expr->kind == ExprKind::kLoad) loads->push_back(expr);
  const size_t sure = expr->kind == ExprKind::kSelect ? 1 : expr->args.size();
  for (size_t k = 0; k < sure; ++k) AppendSureLoads(expr->args[k], loads);
}

/// Whether `expr` loads nothing but these.
bool LoadsOnly(const Expr& expr, const std::vector<Expr>& loads) {
  const auto same = [&](const Expr& load) { return ir::Equal(load, expr); };
  if (expr->kind == ExprKind::kLoad && std::ranges::none_of(loads, same)) return false;
  return std::ranges::all_of(expr->args, [&](const Expr& e) { return LoadsOnly(e, loads); });
}

}  // namespace

bool FunctionEmitter::IsPure(const Expr& expr) {
  if (expr->kind == ExprKind::kVar) return true;
  if (expr->kind == ExprKind::kLoad || ir::IsFloat(expr->dtype)) return false;
  if (expr->kind == ExprKind::kConst) return true;
  const auto known = pure_.find(expr.get());
  if (known != pure_.end()) return known->second;
  const bool pure = std::all_of(expr->args.begin(), expr->args.end(),
                                [this](const Expr& arg) { return IsPure(arg); });
  pure_.emplace(expr.get(), pure);
  return pure;
}

Value FunctionEmitter::Eval(const Expr& expr) {
  if (expr->kind == ExprKind::kConst) return arith_.Constant(*expr);
  if (IsPure(expr)) return Materialise(index_.Decompose(expr), expr->dtype);
  if (const std::optional<Value> kept = Invariant(expr)) return *kept;
  const auto key = std::make_pair(expr.get(), std::make_pair(guard_, mask_));
  const auto known = statement_values_.find(key);
  if (known != statement_values_.end()) return known->second;
  const Value value = EvalGeneric(expr);
  statement_values_[key] = value;
  return value;
}

Value FunctionEmitter::EvalGeneric(const Expr& expr) {
  switch (expr->kind) {
    case ExprKind::kConst: return arith_.Constant(*expr);
    case ExprKind::kVar: return Materialise(index_.Decompose(expr), expr->dtype);
    case ExprKind::kLoad: {
      const Affine index = index_.Decompose(expr->args[0]);
      Value turned;
      return LoadTransposed(expr, index, &turned) ? turned : Load(expr->id, index);
    }
    case ExprKind::kCast: return EvalCast(expr);
    case ExprKind::kSelect: {
      const std::optional<Value> expanded = LoadExpanded(expr);
      return expanded ? *expanded : EvalSelect(expr);
    }
    case ExprKind::kUnary: {
      Value value = arith_.Unary(expr->unary(), Eval(expr->args[0]));
      return value;
    }
    case ExprKind::kBinary: return EvalBinary(expr);
  }
  HONE_UNREACHABLE();
  return {};
}

// A number of four bits, less a constant, as f32: a register holds all sixteen.
std::optional<Value> FunctionEmitter::HalfByteAsFloat(const Expr& expr) {
  Expr bits = expr->args[0];
  if (expr->dtype != DType::kF32 || bits->dtype != DType::kI32 || bits->kind != ExprKind::kBinary ||
      vector_.lanes != 16 || !function_->instructions().HasTables(arith_.TypeOf(DType::kF32, 16)))
    return std::nullopt;
  int64_t zero = 0;
  if (bits->binary() == BinaryOp::kSub && bits->args[0]->kind == ExprKind::kBinary) {
    const std::optional<int64_t> less = ir::AsInt(bits->args[1]);
    if (!less) return std::nullopt;
    zero = *less;
    bits = bits->args[0];
  }
  if (bits->binary() != BinaryOp::kAnd || ir::AsInt(bits->args[1]) != 15) return std::nullopt;
  const Value index = Eval(bits->args[0]);
  if (index.lanes != 16) return std::nullopt;
  llvm::SmallVector<llvm::Constant*, 16> all;
  for (int64_t k = 0; k < 16; ++k)
    all.push_back(llvm::ConstantFP::get(builder_.getFloatTy(), static_cast<double>(k - zero)));
  llvm::Value* chosen =
      function_->instructions().LookUp(builder_, llvm::ConstantVector::get(all), index.llvm);
  return Value{chosen, DType::kF32, 16};
}

Value FunctionEmitter::EvalCast(const Expr& expr) {
  const Expr& inner = expr->args[0];
  if (const std::optional<Value> half = HalfByteAsFloat(expr)) return *half;
  if (!IsPure(inner) || ir::IsBool(inner->dtype)) return arith_.Cast(Eval(inner), expr->dtype);
  const Affine value = index_.Decompose(inner);
  const bool small = ir::Interval{INT32_MIN, INT32_MAX}.Contains(index_.Bounds(value));
  return arith_.Cast(Materialise(value, small ? DType::kI32 : inner->dtype), expr->dtype);
}

Value FunctionEmitter::EvalBinary(const Expr& expr) {
  const Expr& left = expr->args[0];
  const Expr& right = expr->args[1];
  const bool add = expr->binary() == BinaryOp::kAdd;
  if (ir::IsFloat(expr->dtype) && (add || expr->binary() == BinaryOp::kSub)) {
    // Always contracted, so that a schedule does not change the rounding.
    if (IsProduct(left)) {
      Value c = Eval(right);
      if (!add) c = arith_.Unary(ir::UnaryOp::kNeg, c);
      return arith_.Fma(Eval(left->args[0]), Eval(left->args[1]), c);
    }
    if (IsProduct(right)) {
      Value a = Eval(right->args[0]);
      if (!add) a = arith_.Unary(ir::UnaryOp::kNeg, a);
      return arith_.Fma(a, Eval(right->args[1]), Eval(left));
    }
  }
  return arith_.Binary(expr->binary(), Eval(left), Eval(right));
}

// Loads inside run under the condition; its facts hold inside.
Value FunctionEmitter::EvalGuarded(const Expr& expr, const Value& condition) {
  llvm::Value* const guard = guard_;
  llvm::Value* const mask = mask_;
  llvm::Value*& slot = condition.lanes == 1 ? guard_ : mask_;
  slot = slot == nullptr ? condition.llvm : builder_.CreateAnd(slot, condition.llvm);
  const Value value = Eval(expr);
  guard_ = guard;
  mask_ = mask;
  return value;
}

Value FunctionEmitter::EvalSelect(const Expr& expr) {
  const Affine decided = index_.Decompose(expr->args[0]);
  if (decided.IsConst()) return Eval(expr->args[decided.constant != 0 ? 1 : 2]);
  const Value condition = Materialise(decided, DType::kBool);
  // What the condition has loaded may be loaded in the branches without a mask, and then once.
  std::vector<Expr> loaded;
  AppendSureLoads(expr->args[0], &loaded);
  const auto branch = [&](const Expr& taken, const Value& when) {
    return LoadsOnly(taken, loaded) ? Eval(taken) : EvalGuarded(taken, when);
  };
  const size_t facts = index_.num_facts();
  index_.PushFacts(decided, true);
  const Expr& first = expr->args[1];
  const Value a = branch(first, condition);
  index_.PopFacts(facts);
  // A masked load has already put zeros into the other lanes.
  const bool masked = first->kind == ExprKind::kLoad && a.lanes > 1 && condition.lanes > 1 &&
                      !LoadsOnly(first, loaded);
  if (masked && !IsRegister(first->id) && Of(first->id).scope != ir::Scope::kTable &&
      IsZero(expr->args[2])) {
    return a;
  }
  index_.PushFacts(decided, false);
  const Value b = branch(expr->args[2], arith_.Not(condition));
  index_.PopFacts(facts);
  return arith_.Select(condition, a, b);
}

Affine FunctionEmitter::Opaque(const Expr& expr) {
  const auto key = std::make_pair(expr.get(), std::make_pair(guard_, mask_));
  const auto known = statement_values_.find(key);
  Value value;
  if (known != statement_values_.end()) {
    value = known->second;
  } else {
    value = EvalGeneric(expr);
    statement_values_[key] = value;
  }
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value.llvm)) {
    const bool is_unsigned = ir::IsUnsigned(value.dtype) || ir::IsBool(value.dtype);
    return Affine(is_unsigned ? static_cast<int64_t>(constant->getZExtValue())
                              : constant->getSExtValue());
  }
  const auto made = opaque_.find(value.llvm);
  if (made != opaque_.end()) return made->second;
  llvm::Value* bits = value.llvm;
  if (!ir::IsBool(value.dtype) && (value.lanes == 1 || ir::IsUnsigned(value.dtype))) {
    bits = arith_.Cast(value, DType::kI64).llvm;
  }
  const Affine atom = index_.NewOpaque(value.lanes > 1, ir::IntervalOf(value.dtype));
  SetAtomValue(atom, bits);
  opaque_.emplace(value.llvm, atom);
  return atom;
}

}  // namespace hone::codegen
