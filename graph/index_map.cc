#include "graph/index_map.h"

#include <algorithm>
#include <utility>

#include "ir/index/interval.h"
#include "ir/index/sum_rules.h"

namespace hone::graph {
namespace {

using ir::BinaryOp;
using ir::Expr;
using ir::ExprKind;
using Term = IndexSum::Term;

ir::Interval RangeOf(const IndexSum& sum) {
  return ir::BoundsOfSum(sum, [](const Digit& digit) { return ir::Interval{0, digit.extent - 1}; });
}

// Drops digits that are always 0 and joins neighbouring digits of an axis into one.
void Normalise(IndexSum& sum, std::span<const int64_t> extents) {
  for (bool changed = true; changed;) {
    changed = false;
    IndexSum kept(sum.constant);
    for (const Term& term : sum.terms) {
      if (term.atom.extent == 1) continue;
      if (!kept.terms.empty()) {
        Term& low = kept.terms.back();
        if (low.atom.axis == term.atom.axis &&
            low.atom.divisor * low.atom.extent == term.atom.divisor &&
            low.coefficient * low.atom.extent == term.coefficient) {
          // Beyond the end of the axis there are no digits: 10 = 4 · 3 parts joined are 10 again,
          // not 12.
          const int64_t rest = (extents[low.atom.axis] + low.atom.divisor - 1) / low.atom.divisor;
          low.atom.extent = std::min(low.atom.extent * term.atom.extent, rest);
          changed = true;
          continue;
        }
      }
      kept.terms.push_back(term);
    }
    // What was joined may equal another.
    sum = IndexSum(kept.constant);
    for (const Term& term : kept.terms) sum.Add(term.atom, term.coefficient);
  }
}

/// Digits as atoms of ir/index/sum_rules.h: one alone is parted into a high and a low one.
struct DigitSpace {
  using Sum = IndexSum;
  std::span<const int64_t> extents;
  bool* failed;  ///< something cannot be parted so

  static ir::Interval Known(const IndexSum& sum) { return RangeOf(sum); }
  static std::optional<ir::Division<IndexSum>> AsQuotient(const Digit&) { return std::nullopt; }
  IndexSum Quotient(const IndexSum& x, int64_t c) const {
    const Digit digit = Alone(x, c);
    return IndexSum::Of({digit.axis, digit.divisor * c, (digit.extent + c - 1) / c});
  }
  IndexSum Remainder(const IndexSum& x, int64_t c) const {
    const Digit digit = Alone(x, c);
    return IndexSum::Of({digit.axis, digit.divisor, c});
  }

 private:
  Digit Alone(const IndexSum& x, int64_t c) const {
    const bool alone = x.constant == 0 && x.terms.size() == 1 && x.terms[0].coefficient == 1;
    const Digit digit = alone ? x.terms[0].atom : Digit{0, 1, 1};
    const bool ends_axis = digit.divisor * digit.extent >= extents[digit.axis];
    *failed = *failed || !alone || (digit.extent % c != 0 && !ends_axis);
    return digit;
  }
};

struct Division {
  IndexSum quotient;
  IndexSum remainder;
};

// sum = divisor · quotient + remainder with remainder in [0, divisor), when digits can be parted
// that way.
std::optional<Division> Divide(const IndexSum& sum, int64_t divisor,
                               std::span<const int64_t> extents) {
  if (divisor <= 0) return std::nullopt;
  bool failed = false;
  const DigitSpace space{extents, &failed};
  Division division{ir::DivideSum(sum, divisor, space), ir::RemainderOfSum(sum, divisor, space)};
  if (failed) return std::nullopt;
  Normalise(division.quotient, extents);
  Normalise(division.remainder, extents);
  return division;
}

std::optional<IndexSum> AnalyseBinary(const ir::ExprNode& e, std::span<const int64_t> extents) {
  const std::optional<IndexSum> a = AnalyseIndex(e.args[0], extents);
  const std::optional<IndexSum> b = AnalyseIndex(e.args[1], extents);
  if (!a || !b) return std::nullopt;
  IndexSum result;
  switch (e.binary()) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: result = e.binary() == BinaryOp::kAdd ? *a + *b : *a - *b; break;
    case BinaryOp::kMul: {
      if (!a->IsConst() && !b->IsConst()) return std::nullopt;
      result = a->IsConst() ? Scale(*b, a->constant) : Scale(*a, b->constant);
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
  std::ranges::sort(digits);
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
      if (const auto value = ir::AsInt(index)) return IndexSum(*value);
      return std::nullopt;
    case ExprKind::kVar: {
      if (index->id < 0 || index->id >= static_cast<int>(extents.size())) return std::nullopt;
      IndexSum sum = IndexSum::Of({index->id, 1, extents[index->id]});
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
    Expr value = ir::Var(term.atom.axis);
    if (term.atom.divisor > 1) value = ir::FloorDiv(value, term.atom.divisor);
    const bool ends_axis = term.atom.divisor * term.atom.extent >= extents[term.atom.axis];
    if (!ends_axis) value = ir::FloorMod(value, term.atom.extent);
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
      reached *= term.atom.extent;
      places.push_back({term.atom, static_cast<int>(d), term.coefficient});
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
      sum.Add({place.dimension, place.coefficient, place.digit.extent}, place.digit.divisor);
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
    position.Add(*sum, tensor_strides[d]);
  }
  Normalise(position, extents);
  const std::vector<int64_t> axis_strides = Strides(extents);
  IndexSum wanted;
  wanted.constant = position.constant;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    wanted.Add({static_cast<int>(axis), 1, extents[axis]}, axis_strides[axis]);
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
      reached = std::abs(term.coefficient) * (term.atom.extent - 1) + reached;
      digits.push_back(term.atom);
    }
  }
  return DigitsTileAxes(std::move(digits), extents);
}

}  // namespace hone::graph
