#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"

#include "ir/accuracy_class.h"
#include "ir/interpreter.h"
#include "ir/tensor_buffer.h"
#include "ir/workload.h"
#include "measure/run_job.h"

// Whether outputs are right: the default schedule's against the interpreter at sampled points, a
// candidate's against the default's everywhere.
namespace hone::measure {

/// |y - reference| <= absolute * max|reference| + relative * |reference|.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

/// Strict 1e-5, 1e-4; default 1e-4, 1e-3; fast 1e-2, 1e-2. Floats of fewer bits get no less than
/// two steps of theirs.
Tolerance ToleranceOf(ir::AccuracyClass accuracy, ir::DType dtype);

/// What one output of the default schedule is, with what comparisons need of it.
struct ReferenceOutput {
  ir::DType dtype = ir::DType::kF32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
  double max_abs = 0;  ///< over finite elements
  /// Share of integer elements that may differ: none, unless they were rounded or chosen by floats
  /// that schedules may add up in another order.
  double flips = 0;
};

/// `outputs` as the default made them, in the Workload's order.
std::vector<ReferenceOutput> MakeReference(const ir::Workload& workload,
                                           std::span<const std::span<const std::byte>> outputs);

/// Ok, or kDataLoss that names the first wrong element, both values and how many are wrong. NaN
/// equals NaN, infinities equal themselves alone.
absl::Status CompareOutputs(const std::vector<ReferenceOutput>& reference,
                            std::span<const std::span<const std::byte>> outputs,
                            ir::AccuracyClass accuracy);

/// The same of a run of a part of the work, of which nobody says what it computes: `touched`, by
/// output, is where it may have written, and what is not all zeros there it has written. How many
/// such elements are right, when all are.
absl::StatusOr<int64_t> ComparePart(const std::vector<ReferenceOutput>& reference,
                                    std::span<const std::span<const std::byte>> outputs,
                                    const std::vector<std::vector<ByteRange>>& touched,
                                    ir::AccuracyClass accuracy);

/// Elements of a tensor that are worth a look: corners, both sides of tails of 4, 8, 16 and 32,
/// random ones; distinct, the first is 0, at most `count`.
std::vector<int64_t> SamplePoints(const std::vector<int64_t>& shape, int count, uint64_t seed);

/// Checks elements of an output of the default against the interpreter's values of them, one for
/// each point: within 4 times their error bound plus the tolerance. `output` is its number, for
/// the message. kDataLoss for a wrong element.
absl::Status CheckWithOracle(const ReferenceOutput& made, int output,
                             std::span<const int64_t> points,
                             std::span<const ir::PointValue> values, ir::AccuracyClass accuracy);

}  // namespace hone::measure
