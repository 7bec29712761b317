#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/index/interval.h"
#include "ir/index/linear_sum.h"

// The rules of affine sums, the same whatever an atom is: an expression (ir/index/simplify.h), or
// a number of the emitter's (codegen::IndexSpace). A Space says what the atoms are:
//
//   using Sum = LinearSum<…>;
//   Interval Known(const Sum&);                             where a sum lies
//   std::optional<Division<Sum>> AsQuotient(const Atom&);   x and c > 0 where the atom is x div c
//   std::optional<Division<Sum>> AsRemainder(const Atom&);  x and c > 0 where it is x mod c
//   Sum Quotient(const Sum& x, int64_t c);                  x div c as it is, and x mod c
//   Sum Remainder(const Sum& x, int64_t c);
namespace hone::ir {

template <typename Sum>
struct Division {
  Sum dividend;
  int64_t divisor = 1;
};

/// Where a sum lies if `range_of(atom)` says where its atoms lie. What has no bound, or one beyond
/// those of an Interval, leaves the sum without.
template <typename Sum, typename RangeOf>
Interval BoundsOfSum(const Sum& sum, RangeOf&& range_of) {
  constexpr int64_t kNone = Interval::kInfinite;
  bool has_low = true, has_high = true;
  __int128 low = sum.constant, high = sum.constant;
  for (const auto& term : sum.terms) {
    const Interval part = range_of(term.atom) * Interval{term.coefficient, term.coefficient};
    has_low = has_low && part.low > -kNone;
    has_high = has_high && part.high < kNone;
    low += part.low;
    high += part.high;
  }
  return {has_low ? Saturated(low) : -kNone, has_high ? Saturated(high) : kNone};
}

/// What conditions say of sums. Not thread-safe.
template <typename Sum>
class KnownSums {
 public:
  using Terms = std::vector<typename Sum::Term>;
  /// The sum of `terms` lies in `range`.
  struct Fact {
    Terms terms;
    Interval range;
  };

  void Add(Terms terms, Interval range) { facts_.push_back({std::move(terms), range}); }
  size_t size() const { return facts_.size(); }
  void Shrink(size_t size) { facts_.resize(size); }
  const std::vector<Fact>& facts() const { return facts_; }

  /// `range` of `sum` without what the facts exclude: low > high where they contradict it, which
  /// means that the place is never reached.
  Interval Sharpen(const Sum& sum, Interval range) const {
    for (const Fact& fact : facts_) {
      if (const std::optional<int64_t> k = Multiple(sum.terms, fact.terms)) {
        const Interval constant = {sum.constant, sum.constant};
        range = Intersection(range, fact.range * Interval{*k, *k} + constant);
      }
    }
    return range;
  }

  /// The factor k with a = k·b.
  static std::optional<int64_t> Multiple(const Terms& a, const Terms& b) {
    if (a.size() != b.size() || a.empty()) return std::nullopt;
    const int64_t multiple = FloorDivide(DType::kI64, a[0].coefficient, b[0].coefficient);
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i].coefficient != WrapMul(multiple, b[i].coefficient)) return std::nullopt;
      if (!(a[i] == typename Sum::Term{b[i].atom, a[i].coefficient})) return std::nullopt;
    }
    return multiple;
  }

 private:
  std::vector<Fact> facts_;
};

/// sum = divisor · whole + rest; where `inside`, 0 <= rest < divisor.
template <typename Sum>
struct SumParts {
  Sum whole, rest;
  bool inside = false;
};

/// Every coefficient and the constant of the rest are in [0, divisor), unless it is inside with
/// others.
template <typename Space, typename Sum = typename Space::Sum>
SumParts<Sum> PartsOf(const Sum& sum, int64_t divisor, const Space& space) {
  SumParts<Sum> parts;
  const auto is_inside = [&] {
    const Interval rest = space.Known(parts.rest);
    if (!rest.IsBounded()) return false;
    const int64_t period = FloorDivInt(rest.low, divisor);
    if (period != FloorDivInt(rest.high, divisor)) return false;
    parts.whole.constant += period;
    parts.rest.constant -= period * divisor;
    parts.inside = true;
    return true;
  };
  // -x div 4 with x in 0..3 is -1: not to be seen once -x is written as 3·x - 4·x.
  std::tie(parts.whole, parts.rest) = PartByDivisor(sum, divisor);
  if (is_inside()) return parts;
  parts.rest.terms.clear();
  parts.whole.terms.clear();
  for (const auto& term : sum.terms) {
    const int64_t quotient = FloorDivInt(term.coefficient, divisor);
    const int64_t remainder = FloorModInt(term.coefficient, divisor);
    if (quotient != 0) parts.whole.terms.push_back({term.atom, quotient});
    if (remainder != 0) parts.rest.terms.push_back({term.atom, remainder});
  }
  is_inside();
  return parts;
}

/// sum = factor · coarse + fine with 0 <= fine < factor, a factor of the divisor above 1: then
/// sum div divisor = coarse div (divisor / factor), as (64·x + y) div 128 = x div 2 for y < 64.
template <typename Sum>
struct FactoredSum {
  int64_t factor = 1;
  Sum coarse, fine;
};

template <typename Space, typename Sum = typename Space::Sum>
std::optional<FactoredSum<Sum>> TakeFactor(const Sum& sum, int64_t divisor, const Space& space) {
  const auto take = [&](int64_t factor) -> std::optional<FactoredSum<Sum>> {
    if (factor == 1) return std::nullopt;
    auto [coarse, fine] = PartByDivisor(sum, factor);
    const Interval range = space.Known(fine);
    if (range.low < 0 || range.high >= factor) return std::nullopt;
    return FactoredSum<Sum>{factor, std::move(coarse), std::move(fine)};
  };
  int64_t shared = divisor;
  for (const auto& term : sum.terms) {
    const int64_t factor = std::gcd(divisor, term.coefficient);
    if (factor > 1) shared = std::gcd(shared, factor);
    if (auto parts = take(factor)) return parts;
  }
  return sum.IsConst() ? std::nullopt : take(shared);
}

/// sum div divisor (positive, as in all of these), rounded down, with all taken out that can be.
template <typename Space, typename Sum = typename Space::Sum>
Sum DivideSum(const Sum& sum, int64_t divisor, const Space& space) {
  if (divisor == 1) return sum;
  // (x div c + k) div d = (x + k·c) div (c·d).
  if (sum.terms.size() == 1 && sum.terms[0].coefficient == 1) {
    std::optional<Division<Sum>> inner = space.AsQuotient(sum.terms[0].atom);
    int64_t divisors = 0;
    if (inner && !__builtin_mul_overflow(inner->divisor, divisor, &divisors)) {
      inner->dividend.constant += sum.constant * inner->divisor;
      return DivideSum(inner->dividend, divisors, space);
    }
  }
  const SumParts<Sum> parts = PartsOf(sum, divisor, space);
  if (parts.inside) return parts.whole;
  if (const auto by_factor = TakeFactor(parts.rest, divisor, space)) {
    return parts.whole + DivideSum(by_factor->coarse, divisor / by_factor->factor, space);
  }
  return parts.whole + space.Quotient(parts.rest, divisor);
}

/// sum mod divisor, in [0, divisor).
template <typename Space, typename Sum = typename Space::Sum>
Sum RemainderOfSum(const Sum& sum, int64_t divisor, const Space& space) {
  if (divisor == 1) return Sum(0);
  const SumParts<Sum> parts = PartsOf(sum, divisor, space);
  if (parts.inside) return parts.rest;
  if (const auto by_factor = TakeFactor(parts.rest, divisor, space)) {
    const int64_t factor = by_factor->factor;
    return AddScaled(by_factor->fine, RemainderOfSum(by_factor->coarse, divisor / factor, space),
                     factor);
  }
  return space.Remainder(parts.rest, divisor);
}

/// k·c·(x div c) + k·(x mod c) = k·x, for every such pair of `sum`.
template <typename Space, typename Sum = typename Space::Sum>
void JoinDivisions(Sum* sum, const Space& space) {
  for (size_t i = 0; i < sum->terms.size(); ++i) {
    const typename Sum::Term remainder = sum->terms[i];
    const std::optional<Division<Sum>> of = space.AsRemainder(remainder.atom);
    if (!of) continue;
    const Sum quotient = DivideSum(of->dividend, of->divisor, space);
    if (quotient.terms.size() != 1 || quotient.constant != 0) continue;
    if (quotient.terms[0].coefficient != 1) continue;
    const int64_t factor = remainder.coefficient;
    const typename Sum::Term pair = {quotient.terms[0].atom, WrapMul(factor, of->divisor)};
    if (std::find(sum->terms.begin(), sum->terms.end(), pair) == sum->terms.end()) continue;
    sum->Add(pair.atom, -pair.coefficient);
    sum->Add(remainder.atom, -factor);
    sum->Add(of->dividend, factor);
    i = static_cast<size_t>(-1);
  }
}

/// The larger (or smaller) of two sums where their ranges say which; their difference may wrap.
template <typename Space, typename Sum = typename Space::Sum>
std::optional<Sum> ExtremeOf(const Sum& a, const Sum& b, bool larger, const Space& space) {
  int64_t constant = 0;
  if (a.IsConst() && b.IsConst()) return (a.constant < b.constant) == larger ? b : a;
  if (__builtin_sub_overflow(a.constant, b.constant, &constant)) return std::nullopt;
  const Interval difference = space.Known(a - b);
  if (difference.high <= 0) return larger ? b : a;
  if (difference.low >= 0) return larger ? a : b;
  return std::nullopt;
}

}  // namespace hone::ir
