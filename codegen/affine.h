#pragma once

#include <cstdint>

#include "ir/index/linear_sum.h"

namespace hone::codegen {

/// Index arithmetic at emission time. Atoms are numbers (IndexSpace), so that equal values are
/// found and made once.
using Affine = ir::LinearSum<int>;
using Term = Affine::Term;

/// A hash of the value, for memo tables; never stored.
inline uint64_t HashOf(const Affine& a) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  uint64_t hash = static_cast<uint64_t>(a.constant) * kMultiplier;
  for (const Term& term : a.terms) {
    hash = (hash ^ static_cast<uint64_t>(term.atom)) * kMultiplier;
    hash = (hash ^ static_cast<uint64_t>(term.coefficient)) * kMultiplier;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace hone::codegen
