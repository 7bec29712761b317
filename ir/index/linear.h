#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/expr.h"

namespace hone::ir {

/// An integer expression as constant + Σ coefficient · atom. Atoms are variables or expressions
/// that are not linear (floor-div, mod, min, max, loads, …), kept in a fixed order, so equal sums
/// have equal forms. Arithmetic wraps, as that of expressions does.
struct Linear {
  int64_t constant = 0;
  struct Term {
    Expr atom;
    int64_t coefficient = 0;
  };
  std::vector<Term> terms;  ///< different atoms, no coefficient 0

  void Add(const Expr& atom, int64_t coefficient);
  void Add(const Linear& other, int64_t factor);
};

Linear AtomOf(const Expr& e);
Linear Scale(Linear linear, int64_t factor);
/// a - b; nothing where its constant wraps, which says nothing of which is larger.
std::optional<Linear> Difference(const Linear& a, const Linear& b);
Expr ToExpr(const Linear& linear);
/// The largest g > 0 known to divide every value of `linear` (its constant included); 0 when it is
/// always 0.
int64_t KnownFactor(const Linear& linear);

/// A total order on expressions that does not depend on addresses: negative, 0 where they are
/// equal, positive.
int Compare(const Expr& a, const Expr& b);

}  // namespace hone::ir
