#include "codegen/affine.h"

#include "ir/integer.h"

namespace hone::codegen {

using ir::WrapAdd;
using ir::WrapMul;

Affine AddScaled(const Affine& a, const Affine& b, int64_t scale) {
  Affine sum(WrapAdd(a.constant, WrapMul(scale, b.constant)));
  if (scale == 0 || b.terms.empty()) {
    sum.terms = a.terms;
    return sum;
  }
  sum.terms.reserve(a.terms.size() + b.terms.size());
  auto left = a.terms.begin();
  auto right = b.terms.begin();
  while (left != a.terms.end() || right != b.terms.end()) {
    Term term;
    if (right == b.terms.end() || (left != a.terms.end() && left->atom < right->atom)) {
      term = *left++;
    } else if (left == a.terms.end() || right->atom < left->atom) {
      term = {right->atom, WrapMul(scale, right->coef)};
      ++right;
    } else {
      term = {left->atom, WrapAdd(left->coef, WrapMul(scale, right->coef))};
      ++left;
      ++right;
    }
    if (term.coef != 0) sum.terms.push_back(term);
  }
  return sum;
}

Affine Scale(const Affine& a, int64_t scale) { return AddScaled(Affine(0), a, scale); }

uint64_t HashOf(const Affine& a) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  uint64_t hash = static_cast<uint64_t>(a.constant) * kMultiplier;
  for (const Term& term : a.terms) {
    hash = (hash ^ static_cast<uint64_t>(term.atom)) * kMultiplier;
    hash = (hash ^ static_cast<uint64_t>(term.coef)) * kMultiplier;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace hone::codegen
