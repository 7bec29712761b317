#include "ir/mma.h"

#include "ir/index/simplify.h"
#include "ir/narrow_product.h"

namespace hone::ir {
namespace {

bool IsByte(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }

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
