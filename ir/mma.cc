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

bool IsByte(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }

/// A number of f16, bf16 or a byte in memory, widened; null: another factor.
Expr NarrowLoad(const Expr& factor) {
  if (factor->kind != ExprKind::kCast) return nullptr;
  const Expr& load = factor->args[0];
  const bool narrow = factor->dtype == DType::kF32
                          ? load->dtype == DType::kF16 || load->dtype == DType::kBF16
                          : factor->dtype == DType::kI32 && IsByte(load->dtype);
  return narrow && load->kind == ExprKind::kLoad && !HasLoad(load->args[0]) ? load : nullptr;
}

}  // namespace

int64_t MmaTermsOf(DType factor) { return kMmaTermBytes / SizeOf(factor); }

std::optional<MmaLoop> FindMma(const StmtNode& loop) {
  const StmtNode* const columns = OnlyLoop(loop);
  const StmtNode* const terms = columns == nullptr ? nullptr : OnlyLoop(*columns);
  const StmtNode* const store = terms == nullptr ? nullptr : OnlyStatement(*terms);
  if (store == nullptr || store->kind != StmtKind::kStore || store->combiner != Combiner::kSum ||
      loop.extent != kMmaRowHalves || columns->extent != kMmaColumnPair ||
      terms->loop == LoopKind::kVector)
    return std::nullopt;
  const Expr& value = store->values[0];
  if (value->kind != ExprKind::kBinary || value->binary() != BinaryOp::kMul) return std::nullopt;
  MmaLoop mma{store, loop.var, columns->var, terms->var, terms->extent};
  mma.first = NarrowLoad(value->args[0]);
  mma.second = NarrowLoad(value->args[1]);
  if (mma.first == nullptr || mma.second == nullptr) return std::nullopt;
  if (mma.first->dtype != mma.second->dtype && !IsByte(mma.first->dtype)) return std::nullopt;
  if (terms->extent % mma.step() != 0) return std::nullopt;
  if (DependsOnVar(mma.second, mma.row)) std::swap(mma.first, mma.second);
  const bool apart = DependsOnVar(mma.first, mma.row) && DependsOnVar(mma.second, mma.column) &&
                     !DependsOnVar(mma.first, mma.column) && !DependsOnVar(mma.second, mma.row);
  return apart ? std::optional(mma) : std::nullopt;
}

// A word of a lane is 4 bytes of a row or column: neighbouring terms. Words of upper
// and lower rows alternate, and then come those of the second half of the terms.
MmaPlace FirstPlace(int64_t lane, int64_t element, int64_t terms) {
  const int64_t word = terms / 8;  // elements of one
  return {.row = lane / 4 + (element / word % 2) * 8,
          .term = lane % 4 * word + element % word + element / (2 * word) * (terms / 2)};
}

MmaPlace SecondPlace(int64_t lane, int64_t element, int64_t terms) {
  const int64_t word = terms / 8;
  return {.column = lane / 4,
          .term = lane % 4 * word + element % word + element / word * (terms / 2)};
}

MmaPlace SumPlace(int64_t lane, int64_t element) {
  return {.row = lane / 4 + (element / 2) * 8, .column = lane % 4 * 2 + element % 2};
}

void MultiplyFragments(MmaFragments* fragments) {
  const int64_t terms = fragments->terms;
  double first[kMmaRows][kMostMmaTerms], second[kMostMmaTerms][kMmaColumns];
  for (int64_t lane = 0; lane < kMmaLanes; ++lane) {
    for (int64_t e = 0; e < terms / 2; ++e) {
      const MmaPlace at = FirstPlace(lane, e, terms);
      first[at.row][at.term] = fragments->first[static_cast<size_t>(lane)][static_cast<size_t>(e)];
    }
    for (int64_t e = 0; e < terms / 4; ++e) {
      const MmaPlace at = SecondPlace(lane, e, terms);
      second[at.term][at.column] =
          fragments->second[static_cast<size_t>(lane)][static_cast<size_t>(e)];
    }
  }
  for (int64_t lane = 0; lane < kMmaLanes; ++lane) {
    for (size_t e = 0; e < kMmaSums; ++e) {
      const MmaPlace at = SumPlace(lane, static_cast<int64_t>(e));
      double& sum = fragments->sums[static_cast<size_t>(lane)][e];
      for (int64_t k = 0; k < terms; ++k) sum += first[at.row][k] * second[k][at.column];
    }
  }
}

}  // namespace hone::ir
