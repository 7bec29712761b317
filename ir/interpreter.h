#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "ir/tensor_buffer.h"
#include "ir/workload.h"

// The oracle: runs Workloads slowly and obviously. Integers at their width, floats in double with
// an error bound (ir/value.h), rounded to the declared dtype at each Stage's store and each Cast.
namespace hone::ir {

/// One output. Bounds say how far correct code may be away from `values`; 0 is exact.
struct InterpretedTensor {
  TensorBuffer tensor;  ///< rounded to its dtype
  std::vector<double>
      values;  ///< the same as double (what the interpreter knows, for u64 the nearest)
  std::vector<double> bounds;
};

/// Runs all of a Workload. `arguments`: the inputs, then the constants, in the order of
/// Workload::Inputs() and Constants(), with their dtypes and shapes. The result has one entry per
/// Workload::Outputs(). Errors: kInvalidArgument when the Workload does not verify or the arguments
/// do not fit; kOutOfRange when an index read from a tensor is outside; kInternal when a store map
/// leaves elements unwritten or writes one twice.
absl::StatusOr<std::vector<InterpretedTensor>> RunWorkload(const Workload& workload,
                                                           std::span<const TensorBuffer> arguments);

struct PointValue {
  double value = 0;
  double bound = 0;
  Element element;
};

/// Computes single elements of an output, and of other tensors only what they need (a scan's
/// region: all iterations up to the ones read). `output`: number in Workload::Outputs(); `points`:
/// flat row-major element numbers in the output tensor. Errors as for RunWorkload.
absl::StatusOr<std::vector<PointValue>> EvaluatePoints(const Workload& workload,
                                                       std::span<const TensorBuffer> arguments,
                                                       int output, std::span<const int64_t> points);

}  // namespace hone::ir
