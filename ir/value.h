#pragma once

#include <cstdint>

#include "ir/dtype.h"
#include "ir/expr.h"
#include "ir/tensor_buffer.h"
#include "ir/workload.h"

// The meaning of every operator, slow and obvious, with an error bound: what the interpreter
// computes with.
namespace hone::ir {

/// A value of some dtype. Floats are held in double and *not* rounded to their dtype between
/// operations; `bound` is how far code that computes in the dtype may be away from it, to first
/// order, whatever the order of its sums. For integers and bool `bound` is how far the value may be
/// off because it was made from inexact floats (a comparison too close to call has bound 1); 0 is
/// exact. Infinities and NaN have bound 0.
struct Value {
  double f = 0;
  int64_t i = 0;
  double bound = 0;
};

/// The unit roundoff of a float dtype: 2^-11, 2^-8, 2^-24, 2^-53.
double UnitRoundoff(DType dtype);

Value ValueOf(Element element);

/// `dtype` is that of the operand or operands.
Value Apply(UnaryOp op, DType dtype, Value a);
Value Apply(BinaryOp op, DType dtype, Value a, Value b);
/// select(condition, a, b) where the condition is bool; when it is too close to call the difference
/// of the branches goes into the bound.
Value ApplySelect(DType dtype, Value condition, Value a, Value b);
Value ApplyCast(DType from, DType to, Value a);
/// What is in memory after a store: rounded to the dtype.
Value Stored(DType dtype, Value a);
Element ElementOf(Value a);

/// Whether (value, index) replaces (best, best_index) under an arg combiner; as ArgWins
/// (ir/combiner.h).
struct ValueAndIndex {
  Value value;
  Value index;
};
bool ArgReplaces(Combiner combiner, DType dtype, const ValueAndIndex& candidate,
                 const ValueAndIndex& best);

/// The sum of terms added one by one with Add, in any order. The rounding errors of n-1 additions
/// are bounded by γ·u·Σ|term| with γ = min(n-1, 4·√n): Higham and Mary, "A new approach to
/// probabilistic rounding error analysis", SIAM J. Sci. Comput. 41(5), 2019, Theorem 2.4 with λ =
/// 4; the worst case n-1 would hide a lost term. Not thread-safe.
class SumOf {
 public:
  explicit SumOf(DType dtype) : dtype_(dtype) {}
  void Add(Value term);
  Value Result() const;

 private:
  DType dtype_;
  Value sum_;
  double magnitude_ = 0;
  int64_t count_ = 0;
  bool whole_ = true;
};

}  // namespace hone::ir
