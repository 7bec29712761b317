#include "graph/onnx_quantise/narrow_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "fmt/format.h"

#include "base/status.h"
#include "ir/half.h"

namespace hone::graph::onnx_quantise {
namespace {

constexpr float kMostOfI8 = 127;
constexpr float kLeastOfI4 = -8, kMostOfI4 = 7;
constexpr float kLeastScale = 1e-30F;

float Smooth(const std::vector<float>& smooth, size_t channel) {
  return smooth.empty() ? 1 : smooth[channel];
}

/// The weights times `smooth`, in their order.
std::vector<float> Smoothed(const Layer& layer, const std::vector<float>& smooth) {
  std::vector<float> values(static_cast<size_t>(layer.weights_data->type.NumElements()));
  std::memcpy(values.data(), layer.weights_data->bytes.data(), values.size() * sizeof(float));
  if (smooth.empty()) return values;
  for (int64_t n = 0; n < layer.columns; ++n)
    for (int64_t t = 0; t < layer.terms; ++t)
      values[layer.ElementOf(n, t)] *= smooth[layer.ChannelOf(n, t)];
  return values;
}

float Nearest(float x, float scale, float least, float most) {
  return std::min(std::max(std::nearbyint(x / scale), least), most);
}

void NarrowToI8(const Layer& layer, NarrowWeights* narrow) {
  for (int64_t n = 0; n < layer.columns; ++n) {
    float largest = 0;
    for (int64_t t = 0; t < layer.terms; ++t)
      largest = std::max(largest, std::fabs(narrow->restored[layer.ElementOf(n, t)]));
    const float scale = largest > kMostOfI8 * kLeastScale ? largest / kMostOfI8 : 1;
    narrow->scales.push_back(scale);
    for (int64_t t = 0; t < layer.terms; ++t) {
      const size_t e = layer.ElementOf(n, t);
      const float number = Nearest(narrow->restored[e], scale, -kMostOfI8, kMostOfI8);
      narrow->bytes[e] = static_cast<int8_t>(number);
      narrow->restored[e] = number * scale;
    }
  }
}

/// The scale of least squared error. The number of largest size may be -8 or 7, so both signs of
/// scales are tried, and ranges a little narrower.
float ScaleOfGroup(const std::vector<float>& values) {
  float extreme = 0;
  for (const float v : values)
    if (std::fabs(v) > std::fabs(extreme)) extreme = v;
  if (std::fabs(extreme) <= -kLeastOfI4 * kLeastScale) return 1;
  float best = 1;
  double least = HUGE_VAL;
  for (int i = 0; i < 16; ++i) {
    const float scale = extreme / (kLeastOfI4 + 0.2F * static_cast<float>(i));
    double error = 0;
    for (const float v : values) {
      const double difference =
          static_cast<double>(v) - static_cast<double>(Nearest(v, scale, kLeastOfI4, kMostOfI4)) *
                                       static_cast<double>(scale);
      error += difference * difference;
    }
    if (error < least) {
      least = error;
      best = scale;
    }
  }
  return best;
}

void NarrowToI4(const Layer& layer, int64_t group_size, NarrowWeights* narrow) {
  HONE_CHECK(layer.terms % group_size == 0);
  std::vector<float> values(static_cast<size_t>(group_size));
  for (int64_t n = 0; n < layer.columns; ++n) {
    for (int64_t first = 0; first < layer.terms; first += group_size) {
      for (int64_t i = 0; i < group_size; ++i)
        values[static_cast<size_t>(i)] = narrow->restored[layer.ElementOf(n, first + i)];
      const float scale = ScaleOfGroup(values);
      narrow->scales.push_back(scale);
      for (int64_t i = 0; i < group_size; ++i) {
        const size_t e = layer.ElementOf(n, first + i);
        const float number = Nearest(values[static_cast<size_t>(i)], scale, kLeastOfI4, kMostOfI4);
        narrow->bytes[e] = static_cast<int8_t>(number);
        narrow->restored[e] = number * scale;
      }
    }
  }
}

}  // namespace

std::string WhyNotNarrow(const Layer& layer, Scheme scheme, int64_t group_size) {
  constexpr int64_t kMostTerms = std::numeric_limits<int32_t>::max() / (255 * 127);
  constexpr float kMostOfF16 = 65504;
  if (IsIntegerProduct(scheme) && layer.terms > kMostTerms) {
    return fmt::format("a sum of {} products of bytes may overflow 32 bits (at most {} fit)",
                       layer.terms, kMostTerms);
  }
  if (scheme == Scheme::kInt8Dynamic && layer.op == "Conv")
    return "other engines do not support convolutions with ranges found in each run";
  if (scheme == Scheme::kInt4Weights) {
    if (layer.op == "Conv") return "only matrix products have weights of 4 bits";
    if (layer.terms % group_size != 0) {
      return fmt::format("its sums have {} terms, which groups of {} do not divide", layer.terms,
                         group_size);
    }
  }
  if (scheme == Scheme::kF16) {
    const auto* values = reinterpret_cast<const float*>(layer.weights_data->bytes.data());
    const int64_t count = layer.weights_data->type.NumElements();
    for (int64_t i = 0; i < count; ++i) {
      if (std::fabs(values[i]) <= kMostOfF16) continue;
      return fmt::format("its weight {} is outside the range of f16", values[i]);
    }
  }
  return "";
}

NarrowWeights Narrow(const Layer& layer, Scheme scheme, const std::vector<float>& smooth,
                     int64_t group_size) {
  NarrowWeights narrow;
  narrow.restored = Smoothed(layer, smooth);
  if (scheme == Scheme::kBf16 || scheme == Scheme::kF16) {
    const bool bf16 = scheme == Scheme::kBf16;
    for (float& value : narrow.restored) {
      const auto wide = static_cast<double>(value);
      const uint16_t half = bf16 ? ir::BF16FromDouble(wide) : ir::F16FromDouble(wide);
      narrow.halves.push_back(half);
      value = static_cast<float>(bf16 ? ir::BF16ToDouble(half) : ir::F16ToDouble(half));
    }
    return narrow;
  }
  narrow.bytes.resize(narrow.restored.size());
  if (scheme == Scheme::kInt4Weights)
    NarrowToI4(layer, group_size, &narrow);
  else
    NarrowToI8(layer, &narrow);
  return narrow;
}

std::vector<double> MeanShift(const Layer& layer, const NarrowWeights& narrow,
                              const std::vector<float>& smooth,
                              const std::vector<double>& channel_means) {
  const std::vector<float> before = Smoothed(layer, smooth);
  std::vector<double> shift(static_cast<size_t>(layer.columns));
  for (int64_t n = 0; n < layer.columns; ++n) {
    for (int64_t t = 0; t < layer.terms; ++t) {
      const size_t e = layer.ElementOf(n, t);
      const size_t channel = layer.ChannelOf(n, t);
      const double lost = static_cast<double>(before[e]) - static_cast<double>(narrow.restored[e]);
      shift[static_cast<size_t>(n)] +=
          lost * channel_means[channel] / static_cast<double>(Smooth(smooth, channel));
    }
  }
  return shift;
}

}  // namespace hone::graph::onnx_quantise
