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

constexpr Handler kHandlers[] = {
    {"Conv", 1, 2, 3, 1, Conv},
};

}  // namespace

std::span<const Handler> ConvHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
