#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/index/interval.h"
#include "ir/integer.h"

namespace hone::ir {

/// constant + Σ coefficient · atom: the one affine form. What an atom is, its users say: an
/// expression (Linear), a number (codegen::Affine), some digits of an axis (graph::IndexSum). Terms
/// are sorted by Order (negative, 0 or positive for two atoms), no atom stands twice and no
/// coefficient is 0, so equal sums have equal forms. Arithmetic wraps, as that of expressions does.
template <typename Atom, typename Order = std::compare_three_way>
struct LinearSum {
  struct Term {
    Atom atom{};
    int64_t coefficient = 0;
    bool operator==(const Term& other) const {
      return coefficient == other.coefficient && Order()(atom, other.atom) == 0;
    }
  };
  int64_t constant = 0;
  std::vector<Term> terms;

  LinearSum() = default;
  explicit LinearSum(int64_t value) : constant(value) {}
  static LinearSum Of(Atom atom, int64_t coefficient = 1) {
    LinearSum sum;
    if (coefficient != 0) sum.terms.push_back({std::move(atom), coefficient});
    return sum;
  }

  bool IsConst() const { return terms.empty(); }
  bool operator==(const LinearSum&) const = default;

  void Add(const Atom& atom, int64_t coefficient) { Add(Of(atom), coefficient); }
  void Add(const LinearSum& other, int64_t factor) {
    constant = WrapAdd(constant, WrapMul(other.constant, factor));
    if (factor == 0 || other.terms.empty()) return;
    std::vector<Term> sum;
    sum.reserve(terms.size() + other.terms.size());
    auto left = terms.begin();
    for (const Term& right : other.terms) {
      Term term{right.atom, WrapMul(right.coefficient, factor)};
      for (; left != terms.end(); ++left) {
        const auto order = Order()(left->atom, right.atom);
        if (order > 0) break;
        if (order < 0) {
          sum.push_back(*left);
          continue;
        }
        term.coefficient = WrapAdd(term.coefficient, left->coefficient);
        ++left;
        break;
      }
      if (term.coefficient != 0) sum.push_back(std::move(term));
    }
    sum.insert(sum.end(), left, terms.end());
    terms = std::move(sum);
  }

  friend LinearSum AddScaled(LinearSum a, const LinearSum& b, int64_t scale) {
    a.Add(b, scale);
    return a;
  }
  friend LinearSum operator+(LinearSum a, const LinearSum& b) {
    return AddScaled(std::move(a), b, 1);
  }
  friend LinearSum operator-(LinearSum a, const LinearSum& b) {
    return AddScaled(std::move(a), b, -1);
  }
  friend LinearSum Scale(const LinearSum& a, int64_t factor) {
    return AddScaled(LinearSum(), a, factor);
  }

  /// (q, r) with sum = divisor · q + r: q has the terms that the divisor (positive) divides, r the
  /// others and a constant in [0, divisor).
  friend std::pair<LinearSum, LinearSum> PartByDivisor(const LinearSum& sum, int64_t divisor) {
    LinearSum whole(FloorDivInt(sum.constant, divisor)), rest(FloorModInt(sum.constant, divisor));
    for (const Term& term : sum.terms) {
      if (term.coefficient % divisor == 0) {
        whole.terms.push_back({term.atom, term.coefficient / divisor});
      } else {
        rest.terms.push_back(term);
      }
    }
    return {std::move(whole), std::move(rest)};
  }
};

}  // namespace hone::ir
