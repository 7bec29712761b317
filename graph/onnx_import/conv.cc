#include <algorithm>
#include <string>
#include <utility>

#include "fmt/format.h"

#include "graph/onnx_import/handler.h"
#include "graph/onnx_import/window_attributes.h"

// Conv and ConvTranspose.
namespace hone::graph::onnx_import {
namespace {

void Conv(NodeImport& n) {
  const ValueId x = n.Input(0);
  const ValueId w = n.Input(1);
  const WindowAttributes window = ReadWindow(n, x, w);
  std::vector<ValueId> inputs = {x, w};
  if (n.Has(2)) inputs.push_back(n.Input(2));
  n.SetOutput(0, n.Emit("Conv", inputs,
                        {{"strides", window.strides},
                         {"dilations", window.dilations},
                         {"pads", window.pads},
                         {"group", n.Int("group", 1)},
                         {"layout", std::string("nchw")}}));
}

using Shape = std::vector<int64_t>;

/// Shares what the convolution makes beyond `wanted` between the pads. Where it makes less: zeros
/// are appended to an output_shape, auto_pad takes what there is.
void ResolvePads(NodeImport& n, const Shape& input, const WindowAttributes& window,
                 const Shape& wanted, const std::string& auto_pad, bool append_zeros,
                 Shape& output_padding, Shape& pads) {
  const size_t count = window.kernel.size();
  for (size_t i = 0; i < count; ++i) {
    const __int128 span = static_cast<__int128>(window.kernel[i] - 1) * window.dilations[i] + 1;
    const __int128 room = static_cast<__int128>(window.strides[i]) * (input[2 + i] - 1) +
                          output_padding[i] + span - wanted[i];
    constexpr int64_t kMaxRoom = int64_t{1} << 40;
    if (room > kMaxRoom || room < -kMaxRoom)
      return n.Invalid("strides and dilations make an output extent that overflows");
    auto total = static_cast<int64_t>(room);
    const int64_t missing =
        std::max<int64_t>(0, -std::exchange(total, std::max<int64_t>(0, total)));
    if (append_zeros) output_padding[i] += missing;
    pads[i] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    pads[count + i] = total - pads[i];
  }
}

/// Spreads nothing, but gives the kernel zeros up to a multiple of the stride, so that every phase
/// of the output has whole taps and the constant is padded once; the surplus is taken off the end
/// of the output.
ValueId WithWholeTaps(NodeImport& n, ValueId w, const WindowAttributes& window, Shape& pads) {
  const size_t count = window.kernel.size();
  Shape end(count + 2, 0);
  bool needed = false;
  for (size_t i = 0; i < count; ++i) {
    if (window.dilations[i] != 1) return w;
    const int64_t taps = (window.kernel[i] + window.strides[i] - 1) / window.strides[i];
    end[2 + i] = taps * window.strides[i] - window.kernel[i];
    // As of padded inputs: more is memory for zeros.
    constexpr int64_t kMostPadding = int64_t{1} << 20;
    if (end[2 + i] > kMostPadding) {
      n.Unsupported(
          fmt::format("stride {} is too large for kernel size {}; it may exceed it by at most {}",
                      window.strides[i], window.kernel[i], kMostPadding));
      return w;
    }
    needed = needed || end[2 + i] != 0;
  }
  if (!needed) return w;
  for (size_t i = 0; i < count; ++i) pads[count + i] += end[2 + i];
  return n.Emit("Pad", {w},
                {{"begin", Shape(count + 2, 0)}, {"end", end}, {"mode", std::string("constant")}});
}

void ConvTranspose(NodeImport& n) {
  const ValueId x = n.Input(0);
  ValueId w = n.Input(1);
  const std::string auto_pad = n.String("auto_pad", "NOTSET");
  WindowAttributes window = ReadWindow(n, x, w);
  if (!n.ok()) return;
  const size_t count = window.kernel.size();
  const Shape input = n.ShapeOf(x);
  Shape output_padding = n.Ints("output_padding", Shape(count, 0));
  Shape output_shape = n.Ints("output_shape");
  if (output_shape.size() == count + 2)
    output_shape.erase(output_shape.begin(), output_shape.begin() + 2);
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (output_padding.size() != count || (!output_shape.empty() && output_shape.size() != count)) {
    return n.Invalid(fmt::format(
        "output_padding and output_shape must have {} values, one for each spatial axis", count));
  }
  for (const Shape& extents : {output_padding, output_shape}) {
    for (int64_t extent : extents) {
      if (extent < 0 || extent > (int64_t{1} << 31))
        return n.Invalid(
            fmt::format("{} in output_padding or output_shape is out of range", extent));
    }
  }
  const bool asked = !output_shape.empty();
  if (!asked && same) {
    for (size_t i = 0; i < count; ++i) output_shape.push_back(input[2 + i] * window.strides[i]);
  }
  Shape pads = window.pads;
  if (!output_shape.empty()) {
    ResolvePads(n, input, window, output_shape, auto_pad, asked, output_padding, pads);
  }
  if (!n.ok()) return;
  w = WithWholeTaps(n, w, window, pads);
  std::vector<ValueId> inputs = {x, w};
  if (n.Has(2)) inputs.push_back(n.Input(2));
  n.SetOutput(0, n.Emit("ConvTranspose", inputs,
                        {{"strides", window.strides},
                         {"dilations", window.dilations},
                         {"pads", pads},
                         {"output_padding", output_padding},
                         {"group", n.Int("group", 1)},
                         {"layout", std::string("nchw")}}));
}

void DeformConv(NodeImport& n) {
  const ValueId x = n.Input(0);
  const ValueId w = n.Input(1);
  const WindowAttributes window = ReadWindow(n, x, w);
  n.SetOutput(0, n.Emit("DeformConv", {x, w, n.Input(2), n.OptionalInput(3), n.OptionalInput(4)},
                        {{"strides", window.strides},
                         {"dilations", window.dilations},
                         {"pads", window.pads},
                         {"group", n.Int("group", 1)},
                         {"offset_group", n.Int("offset_group", 1)}}));
}

void Col2Im(NodeImport& n) {
  const ValueId x = n.Input(0);
  const Shape image = n.KnownInts(1, "the image's shape");
  const Shape block = n.KnownInts(2, "the block's shape");
  const Shape ones(image.size(), 1);
  n.SetOutput(0, n.Emit("Col2Im", {x},
                        {{"image", image},
                         {"block", block},
                         {"strides", n.Ints("strides", ones)},
                         {"dilations", n.Ints("dilations", ones)},
                         {"pads", n.Ints("pads", Shape(2 * image.size(), 0))}}));
}

constexpr Handler kHandlers[] = {
    {"DeformConv", 19, 3, 5, 1, DeformConv},
    {"Col2Im", 18, 3, 3, 1, Col2Im},
    {"ConvTranspose", 1, 2, 3, 1, ConvTranspose},
    {"Conv", 1, 2, 3, 1, Conv},
};

}  // namespace

std::span<const Handler> ConvHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
