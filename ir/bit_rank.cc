#include "ir/bit_rank.h"

#include <utility>
#include <vector>

namespace hone::ir {
namespace {

Expr Word(uint64_t value) { return ConstInt(DType::kU64, static_cast<int64_t>(value)); }

bool Is(const Expr& e, BinaryOp op) { return e->kind == ExprKind::kBinary && e->binary() == op; }

/// Sums of neighbouring bits, of pairs, of fours, then of all bytes by one multiplication.
Expr PopulationCount(const Expr& word) {
  constexpr uint64_t kPairs = 0x5555555555555555, kFours = 0x3333333333333333,
                     kBytes = 0x0f0f0f0f0f0f0f0f, kOnes = 0x0101010101010101;
  constexpr uint64_t kTop = 56;
  const auto shifted = [](const Expr& e, uint64_t by) {
    return Binary(BinaryOp::kShr, e, Word(by));
  };
  const auto masked = [](const Expr& e, uint64_t mask) {
    return Binary(BinaryOp::kAnd, e, Word(mask));
  };
  const Expr pairs = word - masked(shifted(word, 1), kPairs);
  const Expr fours = masked(pairs, kFours) + masked(shifted(pairs, 2), kFours);
  const Expr bytes = masked(fours + shifted(fours, 4), kBytes);
  return shifted(bytes * Word(kOnes), kTop);
}

/// Appends the summands of a sum.
void Flatten(const Expr& e, std::vector<Expr>* summands) {
  if (!Is(e, BinaryOp::kAdd)) {
    summands->push_back(e);
    return;
  }
  for (const Expr& part : e->args) Flatten(part, summands);
}

}  // namespace

Expr BitsBelow(const Expr& word, const Expr& place) {
  const Expr below = Binary(BinaryOp::kShl, Word(1), Cast(DType::kU64, place)) - Word(1);
  return Cast(DType::kI64, PopulationCount(Binary(BinaryOp::kAnd, word, below)));
}

Expr WhereSet(const Expr& word, const Expr& place, Expr value) {
  const Expr bit = Binary(BinaryOp::kAnd,
                          Binary(BinaryOp::kShr, word, Cast(DType::kU64, place)), Word(1));
  return Select(Binary(BinaryOp::kEq, bit, Word(0)), Const(DType::kF32, 0), std::move(value));
}

std::optional<ExpandedLoad> AsExpandedLoad(const Expr& e) {
  if (e->kind != ExprKind::kSelect || e->dtype != DType::kF32 ||
      e->args[2]->kind != ExprKind::kLoad || e->args[2]->args.size() != 1)
    return std::nullopt;
  const Expr& condition = e->args[0];
  if (!Is(condition, BinaryOp::kEq) || !Is(condition->args[0], BinaryOp::kAnd) ||
      !Is(condition->args[0]->args[0], BinaryOp::kShr))
    return std::nullopt;
  ExpandedLoad load;
  load.word = condition->args[0]->args[0]->args[0];
  const Expr& shift = condition->args[0]->args[0]->args[1];
  if (load.word->dtype != DType::kU64 || shift->kind != ExprKind::kCast) return std::nullopt;
  load.place = shift->args[0];
  if (load.place->dtype != DType::kI64 || !Equal(e, WhereSet(load.word, load.place, e->args[2])))
    return std::nullopt;
  load.buffer = e->args[2]->id;
  std::vector<Expr> summands;
  Flatten(e->args[2]->args[0], &summands);
  const Expr rank = BitsBelow(load.word, load.place);
  bool found = false;
  load.first = Int(0);
  for (const Expr& summand : summands) {
    const bool is_rank = !found && Equal(summand, rank);
    found |= is_rank;
    if (!is_rank) load.first = load.first + summand;
  }
  return found ? std::optional(std::move(load)) : std::nullopt;
}

}  // namespace hone::ir
