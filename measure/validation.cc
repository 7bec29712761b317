#include "measure/validation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>

#include "fmt/format.h"

#include "base/core/random.h"
#include "base/status.h"

namespace hone::measure {
namespace {

constexpr double kOracleFactor = 4;
constexpr double kFlippedShare = 1e-3;

double At(ir::DType dtype, const void* bytes, int64_t index) {
  return ir::ToDouble(dtype, ir::ReadElement(dtype, static_cast<const uint8_t*>(bytes), index));
}

bool Near(double value, double reference, double max_abs, const Tolerance& tolerance) {
  if (std::isnan(reference)) return std::isnan(value);
  if (std::isinf(reference)) return value == reference;
  return std::abs(value - reference) <=
         tolerance.absolute * max_abs + tolerance.relative * std::abs(reference);
}

// Whether all is near, quickly: false also for what only Near can judge (NaN, infinities).
bool AllNearF32(const float* values, const float* reference, int64_t count, double max_abs,
                const Tolerance& tolerance) {
  const auto absolute = static_cast<float>(tolerance.absolute * max_abs);
  const auto relative = static_cast<float>(tolerance.relative);
  int64_t far = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float distance = std::abs(values[i] - reference[i]);
    far += distance <= absolute + relative * std::abs(reference[i]) ? 0 : 1;
  }
  return far == 0;
}

// The same of a part of the work, zeros passed over; counts the others.
bool AllNearOrZeroF32(const float* values, const float* reference, int64_t count, double max_abs,
                      const Tolerance& tolerance, int64_t* right) {
  const auto absolute = static_cast<float>(tolerance.absolute * max_abs);
  const auto relative = static_cast<float>(tolerance.relative);
  int64_t far = 0, zeros = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float distance = std::abs(values[i] - reference[i]);
    const bool near = distance <= absolute + relative * std::abs(reference[i]);
    far += near || values[i] == 0 ? 0 : 1;
    zeros += values[i] == 0 ? 1 : 0;
  }
  *right += count - zeros;
  return far == 0;
}

absl::Status CompareFloats(const ReferenceOutput& reference, std::span<const std::byte> output,
                           size_t number, ir::AccuracyClass accuracy) {
  const Tolerance tolerance = ToleranceOf(accuracy, reference.dtype);
  const int64_t count = static_cast<int64_t>(output.size()) / ir::SizeOf(reference.dtype);
  if (reference.dtype == ir::DType::kF32 &&
      AllNearF32(reinterpret_cast<const float*>(output.data()),
                 reinterpret_cast<const float*>(reference.bytes.data()), count, reference.max_abs,
                 tolerance)) {
    return absl::OkStatus();
  }
  int64_t wrong = 0;
  int64_t first = -1;
  for (int64_t i = 0; i < count; ++i) {
    if (Near(At(reference.dtype, output.data(), i), At(reference.dtype, reference.bytes.data(), i),
             reference.max_abs, tolerance)) {
      continue;
    }
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return absl::OkStatus();
  return absl::DataLossError(fmt::format(
      "{} of {} elements of output {} are wrong; element {} is {}, the default schedule gives {} "
      "(largest magnitude {}, class {})",
      wrong, count, number, first, At(reference.dtype, output.data(), first),
      At(reference.dtype, reference.bytes.data(), first), reference.max_abs,
      std::string(ir::AccuracyClassName(accuracy))));
}

absl::Status CompareIntegers(const ReferenceOutput& reference, std::span<const std::byte> output,
                             size_t number) {
  if (std::memcmp(output.data(), reference.bytes.data(), output.size()) == 0) {
    return absl::OkStatus();
  }
  const auto size = static_cast<size_t>(ir::SizeOf(reference.dtype));
  const auto count = static_cast<int64_t>(output.size() / size);
  int64_t wrong = 0;
  int64_t first = -1;
  for (int64_t i = 0; i < count; ++i) {
    const size_t at = static_cast<size_t>(i) * size;
    if (std::memcmp(output.data() + at, reference.bytes.data() + at, size) == 0) continue;
    if (wrong++ == 0) first = i;
  }
  if (static_cast<double>(wrong) <= reference.flips * static_cast<double>(count)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(fmt::format(
      "{} of {} elements of output {} are wrong; element {} is {}, the default schedule gives {}",
      wrong, count, number, first, At(reference.dtype, output.data(), first),
      At(reference.dtype, reference.bytes.data(), first)));
}

// Whether some Stage adds or multiplies floats up, in an order that the schedule chooses.
bool FoldsFloats(const ir::Workload& workload) {
  return std::ranges::any_of(workload.stages, [&](const ir::Stage& stage) {
    const bool ordered = stage.combiner == ir::Combiner::kSum ||
                         stage.combiner == ir::Combiner::kProduct ||
                         stage.combiner == ir::Combiner::kSumSumSq;
    return ordered && ir::IsFloat(workload.tensors[stage.results[0]].dtype);
  });
}

// Coordinates of one axis at which schedules go wrong.
std::vector<int64_t> EdgesOf(int64_t extent) {
  std::set<int64_t> edges = {0, 1, extent - 2, extent - 1};
  for (const int64_t tile : {4, 8, 16, 32}) {
    const int64_t tail = extent / tile * tile;
    edges.insert({tile - 1, tile, tail - 1, tail});
  }
  std::vector<int64_t> inside;
  for (const int64_t edge : edges) {
    if (edge >= 0 && edge < extent) inside.push_back(edge);
  }
  return inside;
}

}  // namespace

Tolerance ToleranceOf(ir::AccuracyClass accuracy, ir::DType dtype) {
  constexpr std::array<Tolerance, ir::kNumAccuracyClasses> kTolerances = {
      Tolerance{1e-5, 1e-4}, Tolerance{1e-4, 1e-3}, Tolerance{1e-2, 1e-2}};
  Tolerance tolerance = kTolerances[static_cast<size_t>(accuracy)];
  double step = 0;
  if (dtype == ir::DType::kF16) step = 0x1p-10;
  if (dtype == ir::DType::kBF16) step = 0x1p-7;
  tolerance.absolute = std::max(tolerance.absolute, step / 8);
  tolerance.relative = std::max(tolerance.relative, 2 * step);
  return tolerance;
}

std::vector<ReferenceOutput> MakeReference(const ir::Workload& workload,
                                           std::span<const std::span<const std::byte>> outputs) {
  const std::vector<int> ids = workload.Outputs();
  HONE_CHECK(ids.size() == outputs.size());
  const bool folds_floats = FoldsFloats(workload);
  std::vector<ReferenceOutput> reference;
  for (size_t k = 0; k < ids.size(); ++k) {
    const ir::Tensor& tensor = workload.tensors[ids[k]];
    ReferenceOutput output{.dtype = tensor.dtype, .shape = tensor.shape};
    const auto* bytes = reinterpret_cast<const uint8_t*>(outputs[k].data());
    output.bytes.assign(bytes, bytes + tensor.Bytes());
    if (ir::IsFloat(tensor.dtype)) {
      for (int64_t i = 0; i < tensor.NumElements(); ++i) {
        const double magnitude = std::abs(At(tensor.dtype, bytes, i));
        if (std::isfinite(magnitude)) output.max_abs = std::max(output.max_abs, magnitude);
      }
    } else {
      output.flips = folds_floats ? kFlippedShare : 0;
    }
    reference.push_back(std::move(output));
  }
  return reference;
}

absl::Status CompareOutputs(const std::vector<ReferenceOutput>& reference,
                            std::span<const std::span<const std::byte>> outputs,
                            ir::AccuracyClass accuracy) {
  HONE_CHECK(reference.size() == outputs.size());
  for (size_t k = 0; k < reference.size(); ++k) {
    if (outputs[k].size() != reference[k].bytes.size()) {
      return absl::DataLossError(fmt::format("output {} has {} bytes, the default's {}", k,
                                             outputs[k].size(), reference[k].bytes.size()));
    }
    HONE_RETURN_IF_ERROR(ir::IsFloat(reference[k].dtype)
                             ? CompareFloats(reference[k], outputs[k], k, accuracy)
                             : CompareIntegers(reference[k], outputs[k], k));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ComparePart(const std::vector<ReferenceOutput>& reference,
                                    std::span<const std::span<const std::byte>> outputs,
                                    const std::vector<std::vector<ByteRange>>& touched,
                                    ir::AccuracyClass accuracy) {
  HONE_CHECK(reference.size() == outputs.size() && touched.size() == outputs.size());
  int64_t right = 0;
  for (size_t k = 0; k < reference.size(); ++k) {
    const ReferenceOutput& wanted = reference[k];
    const Tolerance tolerance = ToleranceOf(accuracy, wanted.dtype);
    const int64_t size = ir::SizeOf(wanted.dtype);
    const auto* const values = outputs[k].data();
    // Zeros of the size of an element.
    constexpr std::array<std::byte, 8> kUntouched{};
    for (const ByteRange& range : touched[k]) {
      const int64_t right_before = right;
      if (wanted.dtype == ir::DType::kF32 &&
          AllNearOrZeroF32(reinterpret_cast<const float*>(values + range.begin),
                           reinterpret_cast<const float*>(wanted.bytes.data() + range.begin),
                           (range.end - range.begin) / size, wanted.max_abs, tolerance, &right)) {
        continue;
      }
      right = right_before;
      for (int64_t i = range.begin / size; i < range.end / size; ++i) {
        if (std::memcmp(values + i * size, kUntouched.data(), static_cast<size_t>(size)) == 0)
          continue;
        const double value = At(wanted.dtype, values, i);
        const double reference_value = At(wanted.dtype, wanted.bytes.data(), i);
        const bool near = ir::IsFloat(wanted.dtype)
                              ? Near(value, reference_value, wanted.max_abs, tolerance)
                              : value == reference_value || wanted.flips > 0;
        if (!near) {
          return absl::DataLossError(
              fmt::format("element {} of output {} is {} in a part of the work, the default "
                          "schedule gives {}",
                          i, k, value, reference_value));
        }
        ++right;
      }
    }
  }
  return right;
}

std::vector<int64_t> SamplePoints(const std::vector<int64_t>& shape, int count, uint64_t seed) {
  int64_t elements = 1;
  for (const int64_t extent : shape) elements *= extent;
  if (elements == 0) return {};
  std::vector<std::vector<int64_t>> edges;
  for (const int64_t extent : shape) edges.push_back(EdgesOf(extent));
  std::vector<int64_t> points = {0};
  std::set<int64_t> seen = {0};
  const auto add = [&](int64_t point) {
    if (seen.insert(point).second) points.push_back(point);
  };
  add(elements - 1);
  Random random(seed);
  for (int turn = 0; turn < 4 * count && static_cast<int>(points.size()) < count; ++turn) {
    int64_t point = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const bool edge = random.Chance(0.75);
      const auto inside = static_cast<int64_t>(random.Below(static_cast<uint64_t>(shape[axis])));
      point = point * shape[axis] + (edge ? random.Pick(edges[axis]) : inside);
    }
    add(point);
  }
  points.resize(std::min<size_t>(points.size(), static_cast<size_t>(count)));
  return points;
}

absl::Status CheckWithOracle(const ReferenceOutput& made, int output,
                             std::span<const int64_t> points,
                             std::span<const ir::PointValue> values, ir::AccuracyClass accuracy) {
  HONE_CHECK(points.size() == values.size());
  const Tolerance tolerance = ToleranceOf(accuracy, made.dtype);
  for (size_t i = 0; i < points.size(); ++i) {
    const double value = At(made.dtype, made.bytes.data(), points[i]);
    const double wanted = values[i].value;
    const double slack = kOracleFactor * values[i].bound;
    const bool is_float = ir::IsFloat(made.dtype);
    // A value that may be anything proves nothing.
    if (std::isnan(slack) || std::isinf(slack)) continue;
    if (is_float && Near(value, wanted, made.max_abs, tolerance)) continue;
    if (value == wanted || std::abs(value - wanted) <= slack) continue;
    return absl::DataLossError(fmt::format(
        "the default schedule is wrong: element {} of output {} is {}, the oracle says {} "
        "(error bound {})",
        points[i], output, value, wanted, values[i].bound));
  }
  return absl::OkStatus();
}

}  // namespace hone::measure
