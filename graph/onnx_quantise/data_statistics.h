#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/onnx_quantise/source_model.h"

namespace hone::graph::onnx_quantise {

/// What calibration saw of a group's value, by channels. Not thread-safe.
class DataStatistics {
 public:
  explicit DataStatistics(const InputGroup& group);

  /// One run's value, row-major: `inner` elements of a channel lie side by side, then those of the
  /// next one (1 where the channel is the last axis).
  void Add(std::span<const float> data, size_t inner);

  /// Ends of what was seen, over all channels divided by `smooth` (empty: ones).
  double Low(const std::vector<float>& smooth) const;
  double High(const std::vector<float>& smooth) const;
  /// The largest size of each channel.
  std::vector<double> Largest() const;
  /// The mean of each channel, before smoothing.
  std::vector<double> Means() const;
  /// How many numbers were seen of each channel.
  int64_t Count() const { return count_.empty() ? 0 : count_[0]; }
  /// The Euclidean norm of all that was seen of each channel.
  std::vector<double> Norms() const;
  /// Vectors of all channels, spread over what was seen: [rows][channels]. Where the channel is the
  /// last axis; else empty.
  const std::vector<float>& rows() const { return rows_; }

 private:
  size_t channels_;
  bool last_;
  std::vector<float> low_, high_;
  std::vector<double> sum_, squares_;
  std::vector<int64_t> count_;
  std::vector<float> rows_;
};

}  // namespace hone::graph::onnx_quantise
