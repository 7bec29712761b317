#include "graph/index_map.h"

#include <algorithm>
#include <utility>

#include "ir/index/interval.h"

namespace hone::graph {
namespace {

using ir::BinaryOp;
using ir::Expr;
using ir::ExprKind;
using Term = IndexSum::Term;

ir::Interval RangeOf(const IndexSum& sum) {
  ir::Interval range{sum.constant, sum.constant};
  for (const Term& term : sum.terms) {
    const int64_t reach = term.coefficient * (term.digit.extent - 1);
    (reach < 0 ? range.low : range.high) += reach;
  }
  return range;
}

// Adds equal digits, drops zeros, joins neighbouring digits of an axis into one.
void Normalise(IndexSum& sum, std::span<const int64_t> extents) {
  std::vector<Term>& terms = sum.terms;
  bool changed = true;
  while (changed) {
    changed = false;
    std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) {
      return std::pair(a.digit.axis, a.digit.divisor) < std::pair(b.digit.axis, b.digit.divisor);
    });
    std::vector<Term> kept;
    for (const Term& term : terms) {
      if (term.coefficient == 0 || term.digit.extent == 1) continue;
      if (!kept.empty() && kept.back().digit == term.digit) {
        kept.back().coefficient += term.coefficient;
        changed = true;
        continue;
      }
      if (!kept.empty()) {
        Term& low = kept.back();
        if (low.digit.axis == term.digit.axis &&
            low.digit.divisor * low.digit.extent == term.digit.divisor &&
            low.coefficient * low.digit.extent == term.coefficient) {
          // Beyond the end of the axis there are no digits: 10 = 4 · 3 parts joined are 10 again,
          // not 12.
          const int64_t rest =
              (extents[low.digit.axis] + low.digit.divisor - 1) / low.digit.divisor;
          low.digit.extent = std::min(low.digit.extent * term.digit.extent, rest);
          changed = true;
          continue;
        }
      }
      kept.push_back(term);
    }
    changed = changed || kept.size() != terms.size();
    terms = std::move(kept);
  }
}

struct Division {
  IndexSum quotient;
  IndexSum remainder;
};

// sum = divisor · quotient + remainder with remainder in [0, divisor), when digits can be parted
// that way.
std::optional<Division> Divide(const IndexSum& sum, int64_t divisor,
                               std::span<const int64_t> extents) {
  if (divisor <= 0) return std::nullopt;
  Division division;
  int64_t constant_quotient = sum.constant / divisor;
  if (constant_quotient * divisor > sum.constant) --constant_quotient;
  division.quotient.constant = constant_quotient;
  division.remainder.constant = sum.constant - constant_quotient * divisor;
  for (const Term& term : sum.terms) {
    if (term.coefficient % divisor == 0) {
      division.quotient.terms.push_back({term.coefficient / divisor, term.digit});
      continue;
    }
    const bool straddles = term.coefficient > 0 && divisor % term.coefficient == 0 &&
                           term.coefficient * term.digit.extent > divisor;
    if (!straddles) {
      division.remainder.terms.push_back(term);
      continue;
    }
    const int64_t low_extent = divisor / term.coefficient;
    const Digit& digit = term.digit;
    const bool ends_axis = digit.divisor * digit.extent >= extents[digit.axis];
    if (digit.extent % low_extent != 0 && !ends_axis) return std::nullopt;
    division.remainder.terms.push_back({term.coefficient, {digit.axis, digit.divisor, low_extent}});
    const int64_t high_extent = (digit.extent + low_extent - 1) / low_extent;
    division.quotient.terms.push_back({1, {digit.axis, digit.divisor * low_extent, high_extent}});
  }
  Normalise(division.quotient, extents);
  Normalise(division.remainder, extents);
  const ir::Interval range = RangeOf(division.remainder);
  if (range.low < 0 || range.high >= divisor) return std::nullopt;
  return division;
}

std::optional<IndexSum> AnalyseBinary(const ir::ExprNode& e, std::span<const int64_t> extents) {
  const std::optional<IndexSum> a = AnalyseIndex(e.args[0], extents);
  const std::optional<IndexSum> b = AnalyseIndex(e.args[1], extents);
  if (!a || !b) return std::nullopt;
  IndexSum result;
  switch (e.binary()) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: {
      const int64_t sign = e.binary() == BinaryOp::kAdd ? 1 : -1;
      result = *a;
      result.constant += sign * b->constant;
      for (const Term& term : b->terms)
        result.terms.push_back({sign * term.coefficient, term.digit});
      break;
    }
    case BinaryOp::kMul: {
      if (!a->terms.empty() && !b->terms.empty()) return std::nullopt;
      const int64_t factor = a->terms.empty() ? a->constant : b->constant;
      result = a->terms.empty() ? *b : *a;
      result.constant *= factor;
      for (Term& term : result.terms) term.coefficient *= factor;
      break;
    }
    case BinaryOp::kDiv:
    case BinaryOp::kMod: {
      if (!b->terms.empty()) return std::nullopt;
      std::optional<Division> division = Divide(*a, b->constant, extents);
      if (!division) return std::nullopt;
      result = e.binary() == BinaryOp::kDiv ? division->quotient : division->remainder;
      break;
    }
    default: return std::nullopt;
  }
  Normalise(result, extents);
  return result;
}

std::vector<int64_t> Strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// Whether the digits, each used once, are all digits of every axis.
bool DigitsTileAxes(std::vector<Digit> digits, std::span<const int64_t> extents) {
  std::sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) {
    return std::pair(a.axis, a.divisor) < std::pair(b.axis, b.divisor);
  });
  size_t next = 0;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    int64_t reached = 1;
    while (next < digits.size() && digits[next].axis == static_cast<int>(axis)) {
      if (digits[next].divisor != reached) return false;
      reached *= digits[next++].extent;
    }
    if (reached != extents[axis]) return false;
  }
  return next == digits.size();
}

}  // namespace

std::optional<IndexSum> AnalyseIndex(const ir::Expr& index, std::span<const int64_t> extents) {
  switch (index->kind) {
    case ExprKind::kConst:
      if (const auto value = ir::AsInt(index)) return IndexSum{*value, {}};
      return std::nullopt;
    case ExprKind::kVar: {
      if (index->id < 0 || index->id >= static_cast<int>(extents.size())) return std::nullopt;
      IndexSum sum{0, {{1, {index->id, 1, extents[index->id]}}}};
      Normalise(sum, extents);
      return sum;
    }
    case ExprKind::kBinary: return AnalyseBinary(*index, extents);
    default: return std::nullopt;
  }
}

ir::Expr ToExpr(const IndexSum& sum, std::span<const int64_t> extents) {
  // Large coefficients first: the outer part of an index is written on the left.
  std::vector<Term> terms = sum.terms;
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Term& a, const Term& b) { return a.coefficient > b.coefficient; });
  Expr result = ir::Int(0);
  for (const Term& term : terms) {
    Expr value = ir::Var(term.digit.axis);
    if (term.digit.divisor > 1) value = ir::FloorDiv(value, term.digit.divisor);
    const bool ends_axis = term.digit.divisor * term.digit.extent >= extents[term.digit.axis];
    if (!ends_axis) value = ir::FloorMod(value, term.digit.extent);
    result = std::move(result) + std::move(value) * term.coefficient;
  }
  if (sum.constant < 0) return std::move(result) - (-sum.constant);
  return std::move(result) + sum.constant;
}

ir::Expr SimplifyIndex(const ir::Expr& index, std::span<const int64_t> extents) {
  const std::optional<IndexSum> sum = AnalyseIndex(index, extents);
  return sum ? ToExpr(*sum, extents) : index;
}

std::optional<std::vector<ir::Expr>> InvertIndices(std::span<const ir::Expr> indices,
                                                   std::span<const int64_t> extents,
                                                   std::span<const int64_t> shape) {
  struct Place {
    Digit digit;
    int dimension;
    int64_t coefficient;
  };
  std::vector<Place> places;
  for (size_t d = 0; d < indices.size(); ++d) {
    std::optional<IndexSum> sum = AnalyseIndex(indices[d], extents);
    if (!sum || sum->constant != 0) return std::nullopt;
    std::sort(sum->terms.begin(), sum->terms.end(),
              [](const Term& a, const Term& b) { return a.coefficient < b.coefficient; });
    int64_t reached = 1;
    for (const Term& term : sum->terms) {
      if (term.coefficient != reached) return std::nullopt;
      reached *= term.digit.extent;
      places.push_back({term.digit, static_cast<int>(d), term.coefficient});
    }
    if (reached != shape[d]) return std::nullopt;
  }
  std::vector<Digit> digits;
  for (const Place& place : places) digits.push_back(place.digit);
  if (!DigitsTileAxes(digits, extents)) return std::nullopt;

  std::vector<Expr> inverse(extents.size(), ir::Int(0));
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    IndexSum sum;
    for (const Place& place : places) {
      if (place.digit.axis != static_cast<int>(axis)) continue;
      sum.terms.push_back(
          {place.digit.divisor, {place.dimension, place.coefficient, place.digit.extent}});
    }
    Normalise(sum, shape);
    inverse[axis] = ToExpr(sum, shape);
  }
  return inverse;
}

std::optional<int64_t> ContiguousOffset(std::span<const ir::Expr> indices,
                                        std::span<const int64_t> extents,
                                        std::span<const int64_t> shape) {
  const std::vector<int64_t> tensor_strides = Strides(shape);
  IndexSum position;
  for (size_t d = 0; d < indices.size(); ++d) {
    const std::optional<IndexSum> sum = AnalyseIndex(indices[d], extents);
    if (!sum) return std::nullopt;
    position.constant += sum->constant * tensor_strides[d];
    for (const Term& term : sum->terms) {
      position.terms.push_back({term.coefficient * tensor_strides[d], term.digit});
    }
  }
  Normalise(position, extents);
  const std::vector<int64_t> axis_strides = Strides(extents);
  IndexSum wanted;
  wanted.constant = position.constant;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    wanted.terms.push_back({axis_strides[axis], {static_cast<int>(axis), 1, extents[axis]}});
  }
  Normalise(wanted, extents);
  if (!(wanted == position)) return std::nullopt;
  return position.constant;
}

bool ReadsOnce(std::span<const ir::Expr> indices, std::span<const int64_t> extents) {
  // The map is injective when the digits of each dimension do not overlap and together they name
  // the whole point.
  std::vector<Digit> digits;
  for (size_t d = 0; d < indices.size(); ++d) {
    std::optional<IndexSum> sum = AnalyseIndex(indices[d], extents);
    if (!sum) return false;
    std::sort(sum->terms.begin(), sum->terms.end(), [](const Term& a, const Term& b) {
      return std::abs(a.coefficient) < std::abs(b.coefficient);
    });
    int64_t reached = 1;
    for (const Term& term : sum->terms) {
      if (std::abs(term.coefficient) < reached) return false;
      reached = std::abs(term.coefficient) * (term.digit.extent - 1) + reached;
      digits.push_back(term.digit);
    }
  }
  return DigitsTileAxes(std::move(digits), extents);
}

}  // namespace hone::graph
