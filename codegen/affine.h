#pragma once

#include <cstdint>
#include <vector>

// Integer index arithmetic at emission time: sums of constants and multiples of atoms (loop
// variables and what cannot be split further), with their ranges.
namespace hone::codegen {

/// All integers from low to high, both included; ends saturate at +-kUnbounded.
struct Range {
  int64_t low = 0;
  int64_t high = 0;

  bool IsPoint() const { return low == high; }
  bool Within(int64_t smallest, int64_t largest) const {
    return low >= smallest && high <= largest;
  }
};

inline constexpr int64_t kUnbounded = int64_t{1} << 62;

Range operator+(const Range& a, const Range& b);
Range operator*(const Range& a, const Range& b);

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
  /// The coefficient of an atom, 0 if absent.
  int64_t Coef(int atom) const;
  bool operator==(const Affine&) const = default;
};

/// a + scale * b.
Affine AddScaled(const Affine& a, const Affine& b, int64_t scale);
Affine Scale(const Affine& a, int64_t scale);
inline Affine operator+(const Affine& a, const Affine& b) { return AddScaled(a, b, 1); }
inline Affine operator-(const Affine& a, const Affine& b) { return AddScaled(a, b, -1); }

/// Floor division and remainder by a positive constant.
constexpr int64_t FloorDivInt(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
constexpr int64_t FloorModInt(int64_t a, int64_t b) { return a % b + (a % b < 0 ? b : 0); }

/// A hash of the value, for memo tables; never stored.
uint64_t HashOf(const Affine& a);

}  // namespace hone::codegen
