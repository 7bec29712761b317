#include "ir/mma.h"

#include "ir/index/simplify.h"

namespace hone::ir {
namespace {

/// The loop that is all of a body, blocks of one statement aside; null: another statement.
const StmtNode* OnlyStatement(const StmtNode& around) {
  const StmtNode* inner = &around;
  while (inner == &around || inner->kind == StmtKind::kBlock) {
    if (inner->body.size() != 1) return nullptr;
    inner = inner->body[0].get();
  }
  return inner;
}

const StmtNode* OnlyLoop(const StmtNode& around) {
  const StmtNode* const inner = OnlyStatement(around);
  const bool plain = inner != nullptr && inner->kind == StmtKind::kFor &&
                     (inner->loop == LoopKind::kSerial || inner->loop == LoopKind::kUnrolled ||
                      inner->loop == LoopKind::kVector);
  return plain ? inner : nullptr;
}

/// A number of f16 or bf16 in memory, widened; null: another factor.
Expr NarrowLoad(const Expr& factor) {
  if (factor->kind != ExprKind::kCast || factor->dtype != DType::kF32) return nullptr;
  const Expr& load = factor->args[0];
  const bool narrow = load->dtype == DType::kF16 || load->dtype == DType::kBF16;
  return narrow && load->kind == ExprKind::kLoad && !HasLoad(load->args[0]) ? load : nullptr;
}

}  // namespace

std::optional<MmaLoop> FindMma(const StmtNode& loop) {
  const StmtNode* const columns = OnlyLoop(loop);
  const StmtNode* const terms = columns == nullptr ? nullptr : OnlyLoop(*columns);
  const StmtNode* const store = terms == nullptr ? nullptr : OnlyStatement(*terms);
  if (store == nullptr || store->kind != StmtKind::kStore || store->combiner != Combiner::kSum ||
      loop.extent != kMmaRowHalves || columns->extent != kMmaColumnPair ||
      terms->extent % kMmaTerms != 0 || terms->loop == LoopKind::kVector)
    return std::nullopt;
  const Expr& value = store->values[0];
  if (value->kind != ExprKind::kBinary || value->binary() != BinaryOp::kMul) return std::nullopt;
  MmaLoop mma{store, loop.var, columns->var, terms->var, terms->extent};
  mma.first = NarrowLoad(value->args[0]);
  mma.second = NarrowLoad(value->args[1]);
  if (mma.first == nullptr || mma.second == nullptr || mma.first->dtype != mma.second->dtype)
    return std::nullopt;
  if (DependsOnVar(mma.second, mma.row)) std::swap(mma.first, mma.second);
  mma.dtype = mma.first->dtype;
  const bool apart = DependsOnVar(mma.first, mma.row) && DependsOnVar(mma.second, mma.column) &&
                     !DependsOnVar(mma.first, mma.column) && !DependsOnVar(mma.second, mma.row);
  return apart ? std::optional(mma) : std::nullopt;
}

MmaPlace FirstPlace(int64_t lane, int64_t element) {
  return {.row = lane / 4 + (element / 2 % 2) * 8,
          .term = lane % 4 * 2 + element % 2 + (element / 4) * 8};
}

MmaPlace SecondPlace(int64_t lane, int64_t element) {
  return {.column = lane / 4, .term = lane % 4 * 2 + element % 2 + (element / 2) * 8};
}

MmaPlace SumPlace(int64_t lane, int64_t element) {
  return {.row = lane / 4 + (element / 2) * 8, .column = lane % 4 * 2 + element % 2};
}

void MultiplyFragments(MmaFragments* fragments) {
  double first[kMmaRows][kMmaTerms], second[kMmaTerms][kMmaColumns];
  for (int64_t lane = 0; lane < kMmaLanes; ++lane) {
    for (size_t e = 0; e < kMmaFirst; ++e) {
      const MmaPlace at = FirstPlace(lane, static_cast<int64_t>(e));
      first[at.row][at.term] = fragments->first[static_cast<size_t>(lane)][e];
    }
    for (size_t e = 0; e < kMmaSecond; ++e) {
      const MmaPlace at = SecondPlace(lane, static_cast<int64_t>(e));
      second[at.term][at.column] = fragments->second[static_cast<size_t>(lane)][e];
    }
  }
  for (int64_t lane = 0; lane < kMmaLanes; ++lane) {
    for (size_t e = 0; e < kMmaSums; ++e) {
      const MmaPlace at = SumPlace(lane, static_cast<int64_t>(e));
      double& sum = fragments->sums[static_cast<size_t>(lane)][e];
      for (int64_t k = 0; k < kMmaTerms; ++k) sum += first[at.row][k] * second[k][at.column];
    }
  }
}

}  // namespace hone::ir
