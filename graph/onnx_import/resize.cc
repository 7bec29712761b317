#include <cmath>
#include <numeric>

#include "fmt/format.h"

#include "graph/onnx_import/handler.h"

// Resize and its predecessor Upsample.
namespace hone::graph::onnx_import {
namespace {

using Shape = std::vector<int64_t>;

struct Request {
  Shape sizes;                 ///< of all axes
  std::vector<double> scales;  ///< of all axes
  std::vector<double> roi;     ///< begins, then ends, of all axes; or empty
  std::string mode;
  std::string coordinate;
  std::string nearest;
};

void EmitResize(NodeImport& n, const Request& request) {
  Attributes attributes{{"sizes", request.sizes},
                        {"scales", request.scales},
                        {"mode", request.mode},
                        {"coordinate", request.coordinate},
                        {"nearest", request.nearest},
                        {"cubic_a", n.Float("cubic_coeff_a", -0.75)},
                        {"exclude_outside", n.Int("exclude_outside", 0)},
                        {"extrapolation", n.Float("extrapolation_value", 0)}};
  if (n.opset() >= 18) attributes["antialias"] = n.Int("antialias", 0);
  if (request.coordinate == "tf_crop_and_resize") attributes["roi"] = request.roi;
  n.SetOutput(0, n.Emit("Resize", {n.Input(0)}, std::move(attributes)));
}

/// sizes = floor(input · scale), the product in f32 as in ONNX Runtime: a scale of 1.4 is a little
/// less, but five times it is seven.
void SizesFromScales(NodeImport& n, const Shape& shape, Request& request) {
  for (size_t i = 0; i < shape.size(); ++i) {
    const double size =
        std::floor(static_cast<float>(shape[i]) * static_cast<float>(request.scales[i]));
    if (!(request.scales[i] > 0) || !(size >= 1 && size < 1e12)) {
      return n.Invalid(
          fmt::format("scale {} does not fit an axis of extent {}", request.scales[i], shape[i]));
    }
    request.sizes.push_back(static_cast<int64_t>(size));
  }
}

void Upsample(NodeImport& n) {
  const ValueId x = n.Input(0);
  Request request{.coordinate = "asymmetric", .nearest = "floor"};
  request.mode = n.Choice("mode", "nearest", {"nearest", "linear"});
  request.scales = n.opset() < 9 ? n.Floats("scales") : n.KnownFloats(1, "the scales");
  if (!n.ok()) return;
  const Shape shape = n.ShapeOf(x);
  if (request.scales.size() != shape.size())
    return n.Invalid(fmt::format("{} scales are given for an input of rank {}",
                                 request.scales.size(), shape.size()));
  SizesFromScales(n, shape, request);
  Attributes attributes{{"sizes", request.sizes},
                        {"scales", request.scales},
                        {"mode", request.mode},
                        {"coordinate", request.coordinate},
                        {"nearest", request.nearest}};
  n.SetOutput(0, n.Emit("Resize", {x}, std::move(attributes)));
}

std::string AspectRatioPolicy(NodeImport& n) {
  if (n.opset() < 18) return "stretch";
  return n.Choice("keep_aspect_ratio_policy", "stretch", {"stretch", "not_larger", "not_smaller"});
}

/// Sizes that keep the aspect ratio: the largest or smallest common scale.
void KeepAspectRatio(NodeImport& n, const Shape& shape, const Shape& axes, Shape& sizes,
                     std::vector<double>& scales) {
  const std::string policy = AspectRatioPolicy(n);
  if (policy == "stretch" || axes.empty()) return;
  double scale = scales[static_cast<size_t>(axes[0])];
  for (int64_t axis : axes) {
    const double own = scales[static_cast<size_t>(axis)];
    scale = policy == "not_larger" ? std::min(scale, own) : std::max(scale, own);
  }
  for (int64_t axis : axes) {
    const auto a = static_cast<size_t>(axis);
    const double size = std::floor(scale * static_cast<double>(shape[a]) + 0.5);
    if (!(size < 1e12))
      return n.Invalid(fmt::format("scale {} does not fit an axis of extent {}", scale, shape[a]));
    scales[a] = scale;
    sizes[a] = std::max<int64_t>(1, static_cast<int64_t>(size));
  }
}

void ResizeAxes(NodeImport& n, size_t roi, size_t scales, size_t sizes) {
  const ValueId x = n.Input(0);
  const Shape shape = n.ShapeOf(x);
  Shape axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (n.opset() >= 18 && n.HasAttribute("axes")) axes = n.Axes(n.Ints("axes"), shape.size());
  Request request;
  request.mode = n.Choice("mode", "nearest", {"nearest", "linear", "cubic"});
  request.coordinate =
      n.Choice("coordinate_transformation_mode", "half_pixel",
               {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"});
  request.nearest = n.Choice("nearest_mode", "round_prefer_floor",
                             {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  request.scales.assign(shape.size(), 1.0);
  const bool by_size = n.Has(sizes) && n.TypeOf(n.Input(sizes)).NumElements() > 0;
  std::vector<double> given;
  if (by_size) {
    given = n.KnownFloats(sizes, "the sizes");
  } else {
    given = n.KnownFloats(scales, "the scales");
  }
  if (!n.ok()) return;
  if (given.size() != axes.size())
    return n.Invalid(
        fmt::format("{} sizes or scales are given for {} axes", given.size(), axes.size()));
  if (by_size) request.sizes = shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(axes[i]);
    if (by_size && !(given[i] >= 1 && given[i] < 1e12))
      return n.Invalid(fmt::format("size {} is out of range", given[i]));
    if (by_size) request.sizes[a] = static_cast<int64_t>(given[i]);
    request.scales[a] = by_size ? given[i] / static_cast<double>(shape[a]) : given[i];
  }
  if (by_size) {
    KeepAspectRatio(n, shape, axes, request.sizes, request.scales);
  } else {
    AspectRatioPolicy(n);
    SizesFromScales(n, shape, request);
  }
  if (request.coordinate == "tf_crop_and_resize") {
    const std::vector<double> box = n.KnownFloats(roi, "the region of interest");
    if (!n.ok()) return;
    if (box.size() != 2 * axes.size())
      return n.Invalid(fmt::format("roi must have {} values, two for each axis, not {}",
                                   2 * axes.size(), box.size()));
    request.roi.assign(shape.size(), 0.0);
    request.roi.insert(request.roi.end(), shape.size(), 1.0);
    for (size_t i = 0; i < axes.size(); ++i) {
      request.roi[static_cast<size_t>(axes[i])] = box[i];
      request.roi[shape.size() + static_cast<size_t>(axes[i])] = box[axes.size() + i];
    }
  }
  if (n.ok()) EmitResize(n, request);
}

/// Does not say which pixel is nearest: as in ONNX Runtime and in ONNX's own cases of that time.
void ResizeOfOpset10(NodeImport& n) {
  const ValueId x = n.Input(0);
  Request request{.coordinate = "asymmetric", .nearest = "ceil_if_smaller"};
  request.mode = n.Choice("mode", "nearest", {"nearest", "linear"});
  request.scales = n.KnownFloats(1, "the scales");
  if (!n.ok()) return;
  const Shape shape = n.ShapeOf(x);
  if (request.scales.size() != shape.size())
    return n.Invalid(fmt::format("{} scales are given for an input of rank {}",
                                 request.scales.size(), shape.size()));
  SizesFromScales(n, shape, request);
  if (n.ok()) EmitResize(n, request);
}

void Resize(NodeImport& n) { ResizeAxes(n, 1, 2, 3); }

constexpr Handler kHandlers[] = {
    {"Upsample", 7, 1, 2, 1, Upsample},
    {"Resize", 10, 2, 2, 1, ResizeOfOpset10},
    {"Resize", 11, 1, 4, 1, Resize},
};

}  // namespace

std::span<const Handler> ResizeHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
