#pragma once

#include <optional>

#include "ir/expr.h"

namespace hone::ir {

// Values of which only those other than zero are kept, one behind the other, with a word of 64 bits
// that says which of 64 are. An expression says so in plain arithmetic, so that interpreters need
// not know of it; code generators know its form and make one instruction of it for 16 of them.

/// How many bits of `word` (u64) below `place` (i64, 0..63) are set, as i64: where the value of
/// that place stands among those that are kept.
Expr BitsBelow(const Expr& word, const Expr& place);
/// 0 where the bit of that place is not set, else `value`, a load whose index contains
/// BitsBelow(word, place). f32.
Expr WhereSet(const Expr& word, const Expr& place, Expr value);

/// The parts of such an expression, in a loop nest.
struct ExpandedLoad {
  Expr word, place;
  int buffer = -1;
  Expr first;  ///< index of the first value of the word
};
/// Nothing where the expression is no WhereSet of a load.
std::optional<ExpandedLoad> AsExpandedLoad(const Expr& e);

}  // namespace hone::ir
