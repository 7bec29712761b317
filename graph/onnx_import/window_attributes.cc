#include "graph/onnx_import/window_attributes.h"

#include <algorithm>

#include "fmt/format.h"

namespace hone::graph::onnx_import {
namespace {

constexpr int64_t kMaxAttribute = int64_t{1} << 31;

/// Pads so that the output has ceil(input / stride) positions.
void PadSame(WindowAttributes& window, const std::vector<int64_t>& shape, bool more_at_end) {
  const size_t count = window.kernel.size();
  for (size_t i = 0; i < count; ++i) {
    const int64_t input = shape[2 + i];
    const int64_t output = (input + window.strides[i] - 1) / window.strides[i];
    const int64_t span = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const int64_t total = std::max<int64_t>(0, (output - 1) * window.strides[i] + span - input);
    window.pads[i] = more_at_end ? total / 2 : total - total / 2;
    window.pads[count + i] = total - window.pads[i];
  }
}

bool Check(NodeImport& node, std::string_view name, const std::vector<int64_t>& values,
           size_t count, int64_t low) {
  if (values.size() != count) {
    node.Invalid(fmt::format("{} must have {} values, not {}", name, count, values.size()));
    return false;
  }
  for (int64_t value : values) {
    if (value < low || value > kMaxAttribute) {
      node.Invalid(value < low ? fmt::format("{} must be at least {}, not {}", name, low, value)
                               : fmt::format("{} is too large: {}", name, value));
      return false;
    }
  }
  return true;
}

}  // namespace

WindowAttributes ReadWindow(NodeImport& node, ValueId x, ValueId weights) {
  WindowAttributes window;
  if (!node.CheckRank(x, 3, 5, "the input")) return window;
  const std::vector<int64_t> shape = node.ShapeOf(x);
  const size_t count = shape.size() - 2;
  if (*std::max_element(shape.begin(), shape.end()) > kMaxAttribute) {
    node.Invalid(fmt::format("an extent of the input {} is above {}", ToText(node.TypeOf(x)),
                             kMaxAttribute));
    return window;
  }
  if (weights != kNoValue) {
    if (!node.CheckRank(weights, shape.size(), shape.size(), "the weights")) return window;
    const std::vector<int64_t>& w = node.ShapeOf(weights);
    window.kernel.assign(w.begin() + 2, w.end());
    const std::vector<int64_t> stated = node.Ints("kernel_shape", window.kernel);
    if (stated != window.kernel) {
      node.Invalid(fmt::format("kernel_shape is [{}], but the weights have [{}]",
                               fmt::join(stated, ","), fmt::join(window.kernel, ",")));
    }
  } else {
    window.kernel = node.Ints("kernel_shape");
  }
  window.strides = node.Ints("strides", std::vector<int64_t>(count, 1));
  window.dilations = node.Ints("dilations", std::vector<int64_t>(count, 1));
  window.pads = node.Ints("pads", std::vector<int64_t>(2 * count, 0));
  const std::string auto_pad =
      node.Choice("auto_pad", "NOTSET", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  if (!Check(node, "kernel_shape", window.kernel, count, 1) ||
      !Check(node, "strides", window.strides, count, 1) ||
      !Check(node, "dilations", window.dilations, count, 1) ||
      !Check(node, "pads", window.pads, 2 * count, 0)) {
    return window;
  }
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    PadSame(window, shape, auto_pad == "SAME_UPPER");
  } else if (auto_pad == "VALID") {
    std::fill(window.pads.begin(), window.pads.end(), 0);
  }
  return window;
}

}  // namespace hone::graph::onnx_import
