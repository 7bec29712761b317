#include "codegen/affine.h"

#include <algorithm>

namespace hone::codegen {
namespace {

int64_t Clamp(__int128 value) {
  return static_cast<int64_t>(std::clamp<__int128>(value, -kUnbounded, kUnbounded));
}

// Wraps like the machine instead of overflowing.
int64_t WrapAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t WrapMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

}  // namespace

Range operator+(const Range& a, const Range& b) {
  return {Clamp(static_cast<__int128>(a.low) + b.low),
          Clamp(static_cast<__int128>(a.high) + b.high)};
}

Range operator*(const Range& a, const Range& b) {
  const __int128 products[] = {
      static_cast<__int128>(a.low) * b.low, static_cast<__int128>(a.low) * b.high,
      static_cast<__int128>(a.high) * b.low, static_cast<__int128>(a.high) * b.high};
  const auto [low, high] = std::minmax_element(std::begin(products), std::end(products));
  return {Clamp(*low), Clamp(*high)};
}

int64_t Affine::Coef(int atom) const {
  for (const Term& term : terms) {
    if (term.atom == atom) return term.coef;
  }
  return 0;
}

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
