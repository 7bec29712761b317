#include <cmath>
#include <numbers>

#include "fmt/format.h"

#include "graph/onnx_import/handler.h"

// Windows and Fourier transforms: constants, and products with constant matrices.
namespace hone::graph::onnx_import {
namespace {

using ir::DType;
using Shape = std::vector<int64_t>;

constexpr int64_t kMaxLength = int64_t{1} << 22;
/// Frames overlap: minutes of sound at 44.1 kHz, with the Fourier matrix's limit in memory.
constexpr int64_t kMostFramed = int64_t{1} << 25;

/// Σ c[k]·cos(2πki/N) for i in [0, size), N the size or (symmetric) one less.
void Window(NodeImport& n, double c0, double c1, double c2) {
  const double size = n.KnownScalar(0, "the size");
  const DType dtype = n.ElementType("output_datatype", DType::kF32);
  const bool periodic = n.Int("periodic", 1) != 0;
  if (!n.ok()) return;
  if (!(size >= 0 && size <= static_cast<double>(kMaxLength)))
    return n.Invalid(fmt::format("size {} is out of range", size));
  const double period = periodic ? size : size - 1;
  std::vector<double> values(static_cast<size_t>(size));
  for (size_t i = 0; i < values.size(); ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / (period == 0 ? 1 : period);
    values[i] = c0 + c1 * std::cos(angle) + c2 * std::cos(2 * angle);
  }
  n.SetOutput(0, n.Constant(MakeConstant(dtype, {static_cast<int64_t>(values.size())}, values)));
}

void HannWindow(NodeImport& n) { Window(n, 0.5, -0.5, 0); }
void HammingWindow(NodeImport& n) { Window(n, 25.0 / 46.0, -21.0 / 46.0, 0); }
void BlackmanWindow(NodeImport& n) { Window(n, 0.42, -0.5, 0.08); }

void MelWeightMatrix(NodeImport& n) {
  const double bands = n.KnownScalar(0, "num_mel_bins");
  const double length = n.KnownScalar(1, "dft_length");
  const double rate = n.KnownScalar(2, "sample_rate");
  const double low = n.KnownScalar(3, "lower_edge_hertz");
  const double high = n.KnownScalar(4, "upper_edge_hertz");
  const DType dtype = n.ElementType("output_datatype", DType::kF32);
  if (!n.ok()) return;
  if (!(bands >= 1 && length >= 1 && rate > 0 && low >= 0 && high >= low &&
        bands * length < static_cast<double>(kMaxLength))) {
    return n.Invalid(fmt::format(
        "num_mel_bins {}, dft_length {}, sample_rate {} or the edges {} to {} Hz are out of range",
        bands, length, rate, low, high));
  }
  const auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const auto count = static_cast<int64_t>(bands);
  const int64_t bins = static_cast<int64_t>(length) / 2 + 1;
  const double step = (to_mel(high) - to_mel(low)) / (bands + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < count + 2; ++i) {
    const double hertz =
        700 * (std::pow(10, (static_cast<double>(i) * step + to_mel(low)) / 2595) - 1);
    const double edge = std::floor((length + 1) * hertz / rate);
    if (!(edge >= 0 && edge < static_cast<double>(bins)))
      return n.Invalid("upper_edge_hertz lies above half the sample rate");
    edges.push_back(static_cast<int64_t>(edge));
  }
  std::vector<double> weights(static_cast<size_t>(bins * count));
  for (int64_t band = 0; band < count; ++band) {
    const auto b = static_cast<size_t>(band);
    const auto at = [&](int64_t bin) -> double& {
      return weights[static_cast<size_t>(bin * count + band)];
    };
    const int64_t rise = edges[b + 1] - edges[b];
    const int64_t fall = edges[b + 2] - edges[b + 1];
    if (rise == 0) at(edges[b + 1]) = 1;
    for (int64_t bin = edges[b]; rise > 0 && bin <= edges[b + 1]; ++bin) {
      at(bin) = static_cast<double>(bin - edges[b]) / static_cast<double>(rise);
    }
    for (int64_t bin = edges[b + 1]; bin < edges[b + 2]; ++bin)
      at(bin) = static_cast<double>(edges[b + 2] - bin) / static_cast<double>(fall);
  }
  n.SetOutput(0, n.Constant(MakeConstant(dtype, {bins, count}, weights)));
}

struct Transform {
  int64_t given = 0;   ///< samples that are there; further ones count as zero
  int64_t length = 0;  ///< of the transform
  int64_t parts = 1;   ///< 1 real, 2 complex input
  bool inverse = false;
  bool onesided = false;
};

/// The matrix [given·parts, outputs·out_parts] of a discrete Fourier transform. Its inverse of
/// one-sided input gives real samples.
std::vector<double> TransformMatrix(const Transform& t, int64_t outputs, int64_t out_parts) {
  std::vector<double> matrix;
  const auto length = static_cast<double>(t.length);
  const double sign = t.inverse ? 1 : -1;
  for (int64_t i = 0; i < t.given; ++i) {
    const bool used = i < (t.inverse && t.onesided ? t.length / 2 + 1 : t.length);
    // One-sided spectra hold each inner frequency once for two.
    const bool twice = t.inverse && t.onesided && i != 0 && 2 * i != t.length;
    const double scale = (used ? 1.0 : 0.0) * (twice ? 2.0 : 1.0) / (t.inverse ? length : 1.0);
    for (int64_t part = 0; part < t.parts; ++part) {
      for (int64_t k = 0; k < outputs; ++k) {
        const double angle =
            sign * 2 * std::numbers::pi * static_cast<double>(i * k % t.length) / length;
        const double real = scale * std::cos(angle);
        const double imaginary = scale * std::sin(angle);
        matrix.push_back(part == 0 ? real : -imaginary);
        if (out_parts == 2) matrix.push_back(part == 0 ? imaginary : real);
      }
    }
  }
  return matrix;
}

/// Transforms the second last axis of x [rest…, samples, parts].
ValueId Transformed(NodeImport& n, ValueId x, Transform t) {
  if (!n.ok()) return kNoValue;
  Shape shape = n.ShapeOf(x);
  t.given = shape[shape.size() - 2];
  t.parts = shape.back();
  const int64_t outputs = t.onesided && !t.inverse ? t.length / 2 + 1 : t.length;
  const int64_t out_parts = t.onesided && t.inverse ? 1 : 2;
  if (t.length < 1 || t.length > kMaxLength || t.given > kMaxLength ||
      t.given * t.parts * outputs > kMaxLength * 4) {
    n.Unsupported(fmt::format("a transform of length {} is not supported", t.length));
    return kNoValue;
  }
  const ValueId matrix =
      n.Constant(MakeConstant(n.DTypeOf(x), {t.given * t.parts, outputs * out_parts},
                              TransformMatrix(t, outputs, out_parts)));
  Shape rows(shape.begin(), shape.end() - 2);
  const int64_t count = TensorType{.shape = rows}.NumElements();
  const ValueId y = n.Emit("MatMul", {n.Reshape(x, {count, t.given * t.parts}), matrix});
  rows.push_back(outputs);
  rows.push_back(out_parts);
  return n.Reshape(y, rows);
}

void Dft(NodeImport& n) {
  ValueId x = n.Input(0);
  const size_t rank = n.RankOf(x);
  Transform t{.inverse = n.Int("inverse", 0) != 0, .onesided = n.Int("onesided", 0) != 0};
  int64_t axis = n.opset() >= 20 ? -2 : n.Int("axis", 1);
  if (n.opset() >= 20 && n.Has(2)) axis = n.KnownInt(2, "the axis");
  axis = n.Axis(axis, rank);
  if (!n.CheckRank(x, 2, 6, "the input")) return;
  const Shape shape = n.ShapeOf(x);
  if (axis + 1 == static_cast<int64_t>(rank) || shape.back() < 1 || shape.back() > 2 ||
      !ir::IsFloat(n.DTypeOf(x))) {
    return n.Invalid(
        fmt::format("the input must hold real or complex floats, and its last axis cannot be "
                    "transformed; axis is {} and the input {}",
                    axis, ToText(n.TypeOf(x))));
  }
  t.length = shape[static_cast<size_t>(axis)];
  if (t.inverse && t.onesided) t.length = 2 * (t.length - 1);
  if (n.Has(1)) t.length = n.KnownInt(1, "the length");
  if (!n.ok()) return;
  Shape perm;  // the axis to the second last place, and back
  for (int64_t d = 0; d + 1 < static_cast<int64_t>(rank); ++d) {
    if (d != axis) perm.push_back(d);
  }
  perm.push_back(axis);
  perm.push_back(static_cast<int64_t>(rank) - 1);
  Shape back(rank);
  for (size_t d = 0; d < rank; ++d) back[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
  const ValueId y = Transformed(n, n.Transpose(x, perm), t);
  n.SetOutput(0, n.Transpose(y, back));
}

void Stft(NodeImport& n) {
  const ValueId signal = n.Input(0);
  const int64_t hop = n.KnownInt(1, "frame_step");
  const bool onesided = n.Int("onesided", 1) != 0;
  if (!n.CheckRank(signal, 2, 3, "the signal")) return;
  Shape shape = n.ShapeOf(signal);
  if (shape.size() == 2) shape.push_back(1);
  int64_t length = n.Has(2) ? n.TypeOf(n.Input(2)).NumElements() : shape[1];
  if (n.Has(3)) length = n.KnownInt(3, "frame_length");
  if (!n.ok()) return;
  if (length < 1 || length > shape[1] || hop < 1)
    return n.Invalid(fmt::format("frames of {} samples every {} do not fit a signal of {} samples",
                                 length, hop, shape[1]));
  if (shape[2] < 1 || shape[2] > 2 || !ir::IsFloat(n.DTypeOf(signal)))
    return n.Invalid("the signal must be real or complex floats, not " + ToText(n.TypeOf(signal)));
  const int64_t frames = (shape[1] - length) / hop + 1;
  if (!n.CheckTable(frames, length, "the frames", kMostFramed)) return;
  Shape indices;
  for (int64_t f = 0; f < frames; ++f) {
    for (int64_t i = 0; i < length; ++i) indices.push_back(f * hop + i);
  }
  const ValueId framed = n.Emit(
      "Gather", {n.Reshape(signal, shape), n.Constant(MakeInt64s({frames, length}, indices))},
      {{"axis", int64_t{1}}});
  ValueId weighted = framed;
  if (n.Has(2)) {
    if (n.TypeOf(n.Input(2)).NumElements() != length)
      return n.Invalid(fmt::format("the window has {} values, but a frame {}",
                                   n.TypeOf(n.Input(2)).NumElements(), length));
    weighted = n.Mul(framed, n.Reshape(n.Input(2), {length, 1}));
  }
  n.SetOutput(0, Transformed(n, weighted, {.length = length, .onesided = onesided}));
}

constexpr Handler kHandlers[] = {
    {"HannWindow", 17, 1, 1, 1, HannWindow},
    {"HammingWindow", 17, 1, 1, 1, HammingWindow},
    {"BlackmanWindow", 17, 1, 1, 1, BlackmanWindow},
    {"MelWeightMatrix", 17, 5, 5, 1, MelWeightMatrix},
    {"DFT", 17, 1, 2, 1, Dft},
    {"DFT", 20, 1, 3, 1, Dft},
    {"STFT", 17, 2, 4, 1, Stft},
};

}  // namespace

std::span<const Handler> SignalHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
