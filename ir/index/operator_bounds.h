#pragma once

#include <optional>

#include "ir/expr.h"
#include "ir/index/interval.h"

// Bounds of the results of integer operators, from bounds of the operands.
namespace hone::ir {

/// Where `a op b` lies that does not wrap; unbounded for an operator that nothing is known of.
Interval BoundsOfBinary(BinaryOp op, const Interval& a, const Interval& b);

/// Whether `d op 0` (a comparison) for every d in `difference`; nothing where it depends on d.
std::optional<bool> HoldsThroughout(BinaryOp op, const Interval& difference);

}  // namespace hone::ir
