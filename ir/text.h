#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ir/expr.h"
#include "ir/workload.h"

namespace hone::ir {

/// How variables and tensors (or buffers) are called in the text of an expression.
struct ExprNames {
  std::function<std::string(int id)> var;
  std::function<std::string(int id)> tensor;
};

/// An expression on one line, fully typed and with no more parentheses than needed:
///   + - * / // % == != < <= > >= & | ^ << >> infix (`//` is the floor division of integers),
///   everything else as a call: exp(x), select(c, a, b), tdiv(a, b), f32(x) for a cast; loads are
///   x0[i0, i1].
/// Constants: 3 is i64, 3.0 is f32, true and false are bool, all others carry their type (3:u8,
/// 0.5:f64). Floats print in the shortest form that reads back to the same value; every NaN is
/// `nan`.
std::string ToText(const Expr& e, const ExprNames& names);

/// Names of a Stage's body: i0.. spatial, r0.. reduce, tensors by their names.
ExprNames NamesOf(const Workload& workload, const Stage& stage);

/// The shortest text that reads back to this value of the dtype.
std::string NumberText(DType dtype, double value);

/// The text form of a Workload; grammar in docs/formats/workload.md. Example:
///   workload 1
///   x0: f32[8,16] input range(-1,1)
///   x1: f32[16,4] constant
///   s0: f32[8,4] = sum[r0:16] (x0[i0, r0] * x1[r0, i1])
///   s1: f32[8,4] output = max(s0[i0, i1], 0.0)
std::string ToText(const Workload& workload);

/// Reads what ToText writes. The text may come from anywhere: malformed, huge and deeply nested
/// ones are kInvalidArgument with line and column. The result is well typed, and its loads have as
/// many indices as their tensor has dimensions; everything else is Verify's business (ir/verify.h).
absl::StatusOr<Workload> ParseWorkload(std::string_view text);

}  // namespace hone::ir
