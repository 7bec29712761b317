#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hone::graph::onnx_quantise {

/// u8 numbers: x stands as round(x / scale) + zero, saturated.
struct ByteGrid {
  float scale = 1;
  uint8_t zero = 0;

  float Restored(float x) const;
  bool operator==(const ByteGrid&) const = default;
};

/// The grid that holds [low, high] and zero, which must stand for itself. Where nothing but zero is
/// to be held the scale is one.
ByteGrid GridFor(double low, double high);

/// How the range of a grid follows from what was seen.
enum class RangeMethod : uint8_t {
  kMinMax,      ///< all that was seen
  kPercentile,  ///< as many at each end as the percentile leaves out are clipped
  kMse,         ///< the least mean of squared differences
  kEntropy,     ///< the least relative entropy of the histogram (TensorRT's calibration)
};
std::optional<RangeMethod> ParseRangeMethod(std::string_view text);
std::string_view ToText(RangeMethod method);

/// Counts of values in equal steps between two known ends. Not thread-safe.
class RangeHistogram {
 public:
  /// `low` < `high`, both finite.
  RangeHistogram(double low, double high);

  /// Values beyond the ends count in the outermost steps.
  void Add(float value);
  int64_t count() const { return count_; }

  /// `percentile`: of kPercentile, above 50 and at most 100.
  ByteGrid Grid(RangeMethod method, double percentile) const;

 private:
  double Centre(size_t step) const;
  double SquaredError(const ByteGrid& grid) const;
  double Divergence(const ByteGrid& grid) const;
  ByteGrid PercentileGrid(double percentile) const;

  double low_, high_;
  std::vector<int64_t> steps_;
  int64_t count_ = 0;
};

}  // namespace hone::graph::onnx_quantise
