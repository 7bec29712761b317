#include "graph/onnx_prune/weight_update.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "fmt/format.h"

#include "graph/onnx_import/onnx.pb.h"

namespace hone::graph::onnx_prune {
namespace {

using onnx_quantise::Layer;

/// Two matrices of so many rows and columns are 64 MB, and take some seconds.
constexpr int64_t kMostTerms = 2048;
/// Windows of one run that are looked at.
constexpr int64_t kMostWindows = 4096;
/// Fewer numbers of a channel than so many for each term are answers learned by heart.
constexpr int64_t kLeastOfTerm = 2;

/// A square matrix of which only what is not below the diagonal counts, by rows.
class Upper {
 public:
  explicit Upper(size_t size) : size_(size), values_(size * size) {}
  double* Row(size_t i) { return values_.data() + i * size_; }
  const double* Row(size_t i) const { return values_.data() + i * size_; }
  size_t size() const { return size_; }

 private:
  size_t size_;
  std::vector<double> values_;
};

void Subtract(double* to, const double* from, double factor, size_t first, size_t end) {
  for (size_t i = first; i < end; ++i) to[i] -= factor * from[i];
}

/// R of A = Rᵀ R in place.
void Factorise(Upper& a) {
  for (size_t j = 0; j < a.size(); ++j) {
    double* row = a.Row(j);
    const double root = std::sqrt(row[j]);
    for (size_t i = j; i < a.size(); ++i) row[i] /= root;
    for (size_t i = j + 1; i < a.size(); ++i) Subtract(a.Row(i), row, row[i], i, a.size());
  }
}

Upper Inverse(const Upper& r) {
  Upper inverse(r.size());
  for (size_t i = r.size(); i-- > 0;) {
    double* row = inverse.Row(i);
    row[i] = 1;
    for (size_t p = i + 1; p < r.size(); ++p)
      Subtract(row, inverse.Row(p), r.Row(i)[p], p, r.size());
    for (size_t p = i; p < r.size(); ++p) row[p] /= r.Row(i)[i];
  }
  return inverse;
}

/// U of H⁻¹ = Uᵀ U, of H's rows and columns in `order`: what inverts the factor of the matrix the
/// other way round, turned back.
Upper InverseFactor(const InputMoments& moments, const std::vector<size_t>& order) {
  const size_t size = order.size();
  double diagonal = 0;
  for (size_t i = 0; i < size; ++i) diagonal += moments.At(i, i);
  constexpr double kDamping = 0.01;
  const double damping = diagonal > 0 ? kDamping * diagonal / static_cast<double>(size) : 1;
  Upper turned(size);
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = i; j < size; ++j)
      turned.Row(i)[j] = moments.At(order[size - 1 - i], order[size - 1 - j]);
    turned.Row(i)[i] += damping;
  }
  Factorise(turned);
  const Upper inverse = Inverse(turned);
  for (size_t i = 0; i < size; ++i)
    for (size_t j = i; j < size; ++j) turned.Row(i)[j] = inverse.Row(size - 1 - j)[size - 1 - i];
  return turned;
}

}  // namespace

void InputMoments::AddPoint(const std::vector<float>& point) {
  for (size_t a = 0; a < terms_; ++a) {
    double* row = sums_.data() + a * terms_;
    const auto factor = static_cast<double>(point[a]);
    if (factor == 0) continue;
    for (size_t b = a; b < terms_; ++b) row[b] += factor * static_cast<double>(point[b]);
  }
}

void InputMoments::Add(std::span<const float> data, size_t inner) {
  std::vector<float> point(terms_);
  const size_t block = terms_ * inner;
  for (size_t first = 0; first + block <= data.size(); first += block) {
    for (size_t i = 0; i < inner; ++i) {
      for (size_t c = 0; c < terms_; ++c) point[c] = data[first + c * inner + i];
      AddPoint(point);
    }
  }
}

void InputMoments::AddWindows(std::span<const float> images, const std::vector<int64_t>& shape,
                              const Window& window) {
  const auto extent = [&](size_t d) {
    const int64_t spread = window.dilations[d] * (window.kernel[d] - 1) + 1;
    return (shape[d + 2] + window.pads[d] + window.pads[d + 2] - spread) / window.strides[d] + 1;
  };
  const int64_t rows = extent(0), columns = extent(1), all = shape[0] * rows * columns;
  std::vector<float> point(terms_);
  for (int64_t at = 0; at < all; at += 1 + all / kMostWindows) {
    const int64_t image = at / (rows * columns);
    const int64_t top = at / columns % rows * window.strides[0] - window.pads[0];
    const int64_t left = at % columns * window.strides[1] - window.pads[1];
    size_t term = 0;
    for (int64_t c = 0; c < shape[1]; ++c) {
      for (int64_t i = 0; i < window.kernel[0]; ++i) {
        for (int64_t j = 0; j < window.kernel[1]; ++j) {
          const int64_t y = top + i * window.dilations[0], x = left + j * window.dilations[1];
          const bool inside = y >= 0 && y < shape[2] && x >= 0 && x < shape[3];
          const int64_t from = ((image * shape[1] + c) * shape[2] + y) * shape[3] + x;
          point[term++] = inside ? images[static_cast<size_t>(from)] : 0;
        }
      }
    }
    AddPoint(point);
  }
}

std::optional<Window> WindowOf(const onnx_quantise::SourceModel& source, const Layer& layer) {
  const std::vector<int64_t>& shape = layer.weights_data->type.shape;
  if (layer.op != "Conv" || shape.size() != 4 || layer.terms != layer.channels * layer.window)
    return std::nullopt;
  Window window{.kernel = {shape[2], shape[3]}};
  for (const onnx::AttributeProto& each : source.proto->graph().node(layer.node).attribute()) {
    const auto read = [&](auto& numbers) {
      for (size_t k = 0; k < numbers.size() && static_cast<int>(k) < each.ints_size(); ++k)
        numbers[k] = each.ints(static_cast<int>(k));
    };
    if (each.name() == "strides") read(window.strides);
    if (each.name() == "dilations") read(window.dilations);
    if (each.name() == "pads") read(window.pads);
    if (each.name() == "auto_pad" && each.s() != "NOTSET" && each.s() != "VALID")
      return std::nullopt;
  }
  return window;
}

std::string WhyNotUpdated(const onnx_quantise::SourceModel& source, const Layer& layer,
                          int64_t count) {
  const bool plain = layer.window == 1 && layer.terms == layer.channels;
  if (!plain && !WindowOf(source, layer))
    return "its sums are over groups, or windows other than of images by known pads";
  if (layer.terms > kMostTerms)
    return fmt::format("its sums have {} terms, more than {}", layer.terms, kMostTerms);
  if (count >= kLeastOfTerm * layer.terms) return "";
  return fmt::format("each channel was seen {} times, fewer than {} for each of its {} terms",
                     count, kLeastOfTerm, layer.terms);
}

std::vector<float> UpdatedWeights(const Layer& layer, const std::vector<float>& pruned,
                                  const InputMoments& moments) {
  const auto* own = reinterpret_cast<const float*>(layer.weights_data->bytes.data());
  const auto terms = static_cast<size_t>(layer.terms);
  const auto gone = [&](int64_t column, size_t term) {
    const size_t at = layer.ElementOf(column, static_cast<int64_t>(term));
    return pruned[at] == 0 && own[at] != 0;
  };
  std::vector<int64_t> lost(terms);
  for (int64_t n = 0; n < layer.columns; ++n)
    for (size_t t = 0; t < terms; ++t) lost[t] += gone(n, t) ? 1 : 0;
  std::vector<size_t> order(terms);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t t) { return lost[t]; });
  const Upper factor = InverseFactor(moments, order);
  std::vector<float> updated = pruned;
  std::vector<double> column(terms);
  for (int64_t n = 0; n < layer.columns; ++n) {
    const auto element = [&](size_t i) {
      return layer.ElementOf(n, static_cast<int64_t>(order[i]));
    };
    for (size_t i = 0; i < terms; ++i) column[i] = static_cast<double>(own[element(i)]);
    for (size_t i = 0; i < terms; ++i)
      if (gone(n, order[i]))
        Subtract(column.data(), factor.Row(i), column[i] / factor.Row(i)[i], i, terms);
    for (size_t i = 0; i < terms; ++i)
      updated[element(i)] = gone(n, order[i]) ? 0 : static_cast<float>(column[i]);
  }
  return updated;
}

}  // namespace hone::graph::onnx_prune
