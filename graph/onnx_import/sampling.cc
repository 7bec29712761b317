#include <algorithm>
#include <numeric>

#include "fmt/format.h"

#include "graph/onnx_import/handler.h"

// GridSample, AffineGrid, RoiAlign, CenterCropPad.
namespace hone::graph::onnx_import {
namespace {

using ir::DType;
using Shape = std::vector<int64_t>;

void GridSample(NodeImport& n) {
  const ValueId x = n.Input(0);
  std::string mode = n.Choice("mode", n.opset() >= 20 ? "linear" : "bilinear",
                              {"nearest", "linear", "cubic", "bilinear", "bicubic"});
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  n.SetOutput(
      0, n.Emit("GridSample", {x, n.Input(1)},
                {{"mode", mode},
                 {"padding", n.Choice("padding_mode", "zeros", {"zeros", "border", "reflection"})},
                 {"align_corners", int64_t{n.Int("align_corners", 0) != 0}}}));
}

/// Positions of the pixels of one axis in [-1, 1].
std::vector<double> NormalisedPixels(int64_t extent, bool align_corners) {
  std::vector<double> places;
  const auto count = static_cast<double>(extent);
  for (int64_t i = 0; i < extent; ++i) {
    const auto at = static_cast<double>(i);
    places.push_back(align_corners ? (extent == 1 ? -1 : 2 * at / (count - 1) - 1)
                                   : (2 * at + 1) / count - 1);
  }
  return places;
}

/// theta [n, d, d+1] times the homogeneous places [d+1, pixels].
void AffineGrid(NodeImport& n) {
  const ValueId theta = n.Input(0);
  const Shape size = n.KnownInts(1, "the size");
  const bool align_corners = n.Int("align_corners", 0) != 0;
  if (!n.CheckRank(theta, 3, 3, "theta")) return;
  if (size.size() < 4 || size.size() > 5 || *std::min_element(size.begin(), size.end()) < 1) {
    return n.Invalid(
        fmt::format("size [{}] must have 4 or 5 extents of at least 1", fmt::join(size, ",")));
  }
  const size_t axes = size.size() - 2;
  if (n.ShapeOf(theta) !=
      Shape{size[0], static_cast<int64_t>(axes), static_cast<int64_t>(axes) + 1}) {
    return n.Invalid(fmt::format("theta {} does not fit size [{}]", ToText(n.TypeOf(theta)),
                                 fmt::join(size, ",")));
  }
  const Shape extents(size.begin() + 2, size.end());
  const int64_t pixels = TensorType{.shape = extents}.NumElements();
  if (!n.CheckTable(pixels, 1, "the grid")) return;
  std::vector<double> places;
  for (size_t row = 0; row < axes; ++row) {  // x first: the last axis
    const size_t axis = axes - 1 - row;
    const std::vector<double> own = NormalisedPixels(extents[axis], align_corners);
    const int64_t stride =
        TensorType{.shape =
                       Shape(extents.begin() + static_cast<ptrdiff_t>(axis) + 1, extents.end())}
            .NumElements();
    for (int64_t i = 0; i < pixels; ++i)
      places.push_back(own[static_cast<size_t>(i / stride % extents[axis])]);
  }
  places.insert(places.end(), static_cast<size_t>(pixels), 1.0);
  const ValueId constant =
      n.Constant(MakeConstant(n.DTypeOf(theta), {static_cast<int64_t>(axes) + 1, pixels}, places));
  const ValueId product = n.Emit("MatMul", {theta, constant});
  Shape result = {size[0]};
  result.insert(result.end(), extents.begin(), extents.end());
  result.push_back(static_cast<int64_t>(axes));
  n.SetOutput(0, n.Reshape(n.Transpose(product, {0, 2, 1}), result));
}

void RoiAlign(NodeImport& n) {
  const ValueId x = n.Input(0);
  const std::string coordinate = n.opset() >= 16
                                     ? n.Choice("coordinate_transformation_mode", "half_pixel",
                                                {"half_pixel", "output_half_pixel"})
                                     : "output_half_pixel";
  const int64_t samples = n.Int("sampling_ratio", 0);
  if (samples < 1)
    n.Unsupported(
        "sampling_ratio 0 is not supported, as the number of samples then depends on data; export "
        "the model with 1 or more");
  n.SetOutput(0, n.Emit("RoiAlign", {x, n.Input(1), n.Input(2)},
                        {{"mode", n.Choice("mode", "avg", {"avg", "max"})},
                         {"height", n.Int("output_height", 1)},
                         {"width", n.Int("output_width", 1)},
                         {"samples", samples},
                         {"scale", n.Float("spatial_scale", 1)},
                         {"half_pixel", int64_t{coordinate == "half_pixel"}}}));
}

/// Crops or pads both ends of the axes to the wanted extents; odd differences go to the end.
void CenterCropPad(NodeImport& n) {
  const ValueId x = n.Input(0);
  const Shape wanted = n.KnownInts(1, "the shape");
  const Shape from = n.ShapeOf(x);
  Shape axes(from.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (n.HasAttribute("axes")) axes = n.Axes(n.Ints("axes"), from.size());
  if (!n.ok()) return;
  if (wanted.size() != axes.size())
    return n.Invalid(fmt::format("shape has {} values for {} axes", wanted.size(), axes.size()));
  Shape begin(from.size(), 0);
  Shape end(from.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(axes[i]);
    if (wanted[i] < 1 || wanted[i] > (int64_t{1} << 40))
      return n.Invalid(fmt::format("extent {} of the shape is out of range", wanted[i]));
    const int64_t difference = wanted[i] - from[a];
    // Cropping starts at floor(-difference / 2), padding with floor(difference / 2).
    begin[a] = difference / 2;
    end[a] = difference - begin[a];
  }
  n.SetOutput(
      0, n.Emit("Pad", {x}, {{"begin", begin}, {"end", end}, {"mode", std::string("constant")}}));
}

constexpr Handler kHandlers[] = {
    {"GridSample", 16, 2, 2, 1, GridSample},
    {"AffineGrid", 20, 2, 2, 1, AffineGrid},
    {"RoiAlign", 10, 3, 3, 1, RoiAlign},
    {"CenterCropPad", 18, 2, 2, 1, CenterCropPad},
};

}  // namespace

std::span<const Handler> SamplingHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
