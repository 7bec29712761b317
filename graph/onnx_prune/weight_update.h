#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/onnx_quantise/source_model.h"

namespace hone::graph::onnx_prune {

/// Which places of an image the sums of a convolution read. Rows before columns.
struct Window {
  std::array<int64_t, 2> kernel = {1, 1}, strides = {1, 1}, dilations = {1, 1};
  std::array<int64_t, 4> pads = {};  ///< begins before ends
};

/// That of a layer; nothing for other convolutions than those of whole images by known pads.
std::optional<Window> WindowOf(const onnx_quantise::SourceModel& source,
                               const onnx_quantise::Layer& layer);

/// Sums of products of each two terms of a layer's sums, over all that was seen of what it reads:
/// X Xᵀ. Not thread-safe.
class InputMoments {
 public:
  explicit InputMoments(int64_t terms)
      : terms_(static_cast<size_t>(terms)), sums_(terms_ * terms_) {}

  /// One run's value, of as many channels as terms, as DataStatistics::Add.
  void Add(std::span<const float> data, size_t inner);
  /// One run's images [n, channels, rows, columns]: a few thousand of the windows, spread over
  /// them.
  void AddWindows(std::span<const float> images, const std::vector<int64_t>& shape,
                  const Window& window);

  /// The element of two terms.
  double At(size_t a, size_t b) const {
    return a <= b ? sums_[a * terms_ + b] : sums_[b * terms_ + a];
  }
  /// Bytes that one of so many terms takes.
  static int64_t Bytes(int64_t terms) {
    return terms * terms * static_cast<int64_t>(sizeof(double));
  }

 private:
  void AddPoint(const std::vector<float>& point);

  size_t terms_;
  std::vector<double> sums_;
};

/// Why UpdatedWeights is not for this layer, of whose data each channel was seen `count` times;
/// empty: it is.
std::string WhyNotUpdated(const onnx_quantise::SourceModel& source,
                          const onnx_quantise::Layer& layer, int64_t count);

/// The layer's weights, of which those that are zero in `pruned` and not in the layer are gone: the
/// others make up for these on what was seen. By the inverse of H = X Xᵀ + λI, λ being 1 % of the
/// mean of the diagonal: each weight that goes moves those of its column that come after it, terms
/// that most columns lose coming first (Frantar and Alistarh 2023, SparseGPT, section 3.2). Where
/// all columns lose the same terms that is the least error that there is.
std::vector<float> UpdatedWeights(const onnx_quantise::Layer& layer,
                                  const std::vector<float>& pruned, const InputMoments& moments);

}  // namespace hone::graph::onnx_prune
