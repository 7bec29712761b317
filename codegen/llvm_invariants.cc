#include <algorithm>
#include <utility>

#include "codegen/llvm_emitter.h"

// Divisions, roots and the like whose operands do not change in a loop, as the reciprocal of a
// row's sum: computed once before it. LLVM would have to know what the loop's stores leave alone.
namespace hone::codegen {

using ir::BinaryOp;
using ir::Expr;
using ir::ExprKind;
using ir::UnaryOp;

namespace {

/// Worth a register throughout a loop.
bool IsCostly(const Expr& expr) {
  if (!ir::IsFloat(expr->dtype)) return false;
  if (expr->kind == ExprKind::kBinary) return expr->binary() == BinaryOp::kDiv;
  if (expr->kind != ExprKind::kUnary) return false;
  return expr->unary() != UnaryOp::kNeg && expr->unary() != UnaryOp::kAbs;
}

/// Straight code: no branch of its own, and nothing that can trap.
bool IsStraight(const Expr& expr) {
  if (!ir::IsFloat(expr->dtype)) return false;
  switch (expr->kind) {
    case ExprKind::kConst: return true;
    case ExprKind::kBinary: {
      const BinaryOp op = expr->binary();
      return op == BinaryOp::kAdd || op == BinaryOp::kSub || op == BinaryOp::kMul ||
             op == BinaryOp::kDiv || op == BinaryOp::kMax || op == BinaryOp::kMin;
    }
    case ExprKind::kUnary: {
      const UnaryOp op = expr->unary();
      return op == UnaryOp::kNeg || op == UnaryOp::kAbs || op == UnaryOp::kSqrt ||
             op == UnaryOp::kRsqrt || op == UnaryOp::kExp || op == UnaryOp::kLog ||
             op == UnaryOp::kSigmoid || op == UnaryOp::kTanh;
    }
    case ExprKind::kCast: return true;
    default: return false;
  }
}

void CollectWrites(const ir::StmtNode& stmt, std::set<int>* out) {
  out->insert(stmt.buffers.begin(), stmt.buffers.end());
  for (const ir::Stmt& inner : stmt.body) CollectWrites(*inner, out);
}

}  // namespace

const std::set<int>& FunctionEmitter::WrittenIn(const ir::StmtNode& loop) {
  const auto [at, is_new] = written_.try_emplace(&loop);
  if (is_new) CollectWrites(loop, &at->second);
  return at->second;
}

// False when the expression is anything but straight code on memory that is the same in all lanes.
bool FunctionEmitter::InvariantLoads(const Expr& expr,
                                     std::vector<LoopFrame::InvariantLoad>* loads) {
  if (expr->kind == ExprKind::kLoad) {
    if (IsRegister(expr->id) || !ir::IsFloat(expr->dtype)) return false;
    Affine index = index_.Decompose(expr->args[0]);
    if (index_.DependsOnLane(index) || index_.Depth(index) == kDepthHere) return false;
    loads->push_back({expr->id, std::move(index)});
    return true;
  }
  return IsStraight(expr) &&
         std::all_of(expr->args.begin(), expr->args.end(),
                     [&](const Expr& arg) { return InvariantLoads(arg, loads); });
}

std::optional<Value> FunctionEmitter::Invariant(const Expr& expr) {
  if (frames_.size() < 2 || mask_ != nullptr || guard_ != nullptr || !IsCostly(expr))
    return std::nullopt;
  std::vector<LoopFrame::InvariantLoad> loads;
  if (!InvariantLoads(expr, &loads) || loads.empty()) return std::nullopt;
  int depth = 0;
  for (const auto& load : loads) depth = std::max(depth, index_.Depth(load.index));
  const auto is_kept = [&](const LoopFrame& frame) {
    return frame.branches == branches_ &&
           std::none_of(loads.begin(), loads.end(),
                        [&](const auto& load) { return frame.written->count(load.buffer) > 0; });
  };
  // The outermost of the loops in which nothing of it changes.
  size_t loop = frames_.size();
  while (loop > static_cast<size_t>(depth) + 1 && is_kept(frames_[loop - 1])) --loop;
  if (loop == frames_.size()) return std::nullopt;
  for (const auto& known : frames_[loop].invariants) {
    if (known.expr == expr.get() && known.loads == loads) return known.value;
  }
  llvm::IRBuilder<>::InsertPointGuard restore(builder_);
  builder_.SetInsertPoint(frames_[loop].entry);
  const VectorLoop vector = std::exchange(vector_, {});
  const int64_t generation = std::exchange(generation_, --hoisted_generation_);
  auto values = std::exchange(statement_values_, {});
  const Value value = EvalGeneric(expr);
  vector_ = vector;
  generation_ = generation;
  statement_values_ = std::move(values);
  frames_[loop].invariants.push_back({expr.get(), std::move(loads), value});
  return value;
}

}  // namespace hone::codegen
