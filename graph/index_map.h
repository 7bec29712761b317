#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/expr.h"
#include "ir/index/linear_sum.h"

// Quasi-affine index expressions in a normal form that can be compared, composed and inverted.
// Grouping and BuildWorkload decide with these functions about reshape, transpose, depth-to-space
// and slices.
namespace hone::graph {

/// Some digits of an axis: floor(axis / divisor) mod extent, a value in [0, extent).
struct Digit {
  int axis = 0;
  int64_t divisor = 1;
  int64_t extent = 1;
  auto operator<=>(const Digit&) const = default;
};

/// A sum of digits in normal form: digits of one axis that can be merged are merged.
using IndexSum = ir::LinearSum<Digit>;

/// The normal form of `index` over axes of the given extents (Var(k) in [0, extents[k])), or empty
/// when the expression loads, multiplies axes, or splits an axis in a way that does not divide it.
std::optional<IndexSum> AnalyseIndex(const ir::Expr& index, std::span<const int64_t> extents);

/// The sum as an expression, as short as the extents allow: no modulus where the digits end the
/// axis.
ir::Expr ToExpr(const IndexSum& sum, std::span<const int64_t> extents);

/// AnalyseIndex and ToExpr where the analysis works, else the expression as it is.
ir::Expr SimplifyIndex(const ir::Expr& index, std::span<const int64_t> extents);

/// For a map from axes (extents) to an element of a tensor (shape): one expression per axis over
/// Var(d), d a dimension of the tensor, that gives the axis back. Empty unless the map is a
/// bijection that permutes digits.
std::optional<std::vector<ir::Expr>> InvertIndices(std::span<const ir::Expr> indices,
                                                   std::span<const int64_t> extents,
                                                   std::span<const int64_t> shape);

/// Whether the map reads element after element: row-major position in the tensor = row-major
/// position in the axes
/// + the offset returned (elements).
std::optional<int64_t> ContiguousOffset(std::span<const ir::Expr> indices,
                                        std::span<const int64_t> extents,
                                        std::span<const int64_t> shape);

/// True when no element of the tensor is read by two points of the axes (false when it cannot be
/// shown).
bool ReadsOnce(std::span<const ir::Expr> indices, std::span<const int64_t> extents);

}  // namespace hone::graph
