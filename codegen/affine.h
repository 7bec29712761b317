#pragma once

#include <cstdint>
#include <vector>

// Integer index arithmetic at emission time: sums of constants and multiples of atoms (loop
// variables and what cannot be split further). Atoms are numbers here, so that equal values are
// found and made once; ir/index/linear.h has the form that expressions are rewritten in.
namespace hone::codegen {

/// coef * atom; atoms are numbered by IndexSpace.
struct Term {
  int atom = 0;
  int64_t coef = 0;
  bool operator==(const Term&) const = default;
};

/// constant + sum of terms. Terms are sorted by atom and no coefficient is zero, so equal sums
/// compare equal.
struct Affine {
  int64_t constant = 0;
  std::vector<Term> terms;

  Affine() = default;
  explicit Affine(int64_t value) : constant(value) {}

  bool IsConst() const { return terms.empty(); }
  bool operator==(const Affine&) const = default;
};

/// a + scale * b.
Affine AddScaled(const Affine& a, const Affine& b, int64_t scale);
Affine Scale(const Affine& a, int64_t scale);
inline Affine operator+(const Affine& a, const Affine& b) { return AddScaled(a, b, 1); }
inline Affine operator-(const Affine& a, const Affine& b) { return AddScaled(a, b, -1); }

/// A hash of the value, for memo tables; never stored.
uint64_t HashOf(const Affine& a);

}  // namespace hone::codegen
