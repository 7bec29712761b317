#include <map>
#include <string>

#include "graph/onnx_import/handler.h"

namespace hone::graph::onnx_import {
namespace {

/// By name, then by first opset.
using HandlerTable = std::map<std::string_view, std::map<int64_t, const Handler*>, std::less<>>;

HandlerTable MakeTable() {
  HandlerTable table;
  for (const std::span<const Handler> family :
       {ActivationHandlers(), AttentionHandlers(), ElementwiseHandlers(), ShapeHandlers(),
        SliceHandlers(),      GatherHandlers(),    ConstantHandlers(),    ConvHandlers(),
        PoolHandlers(),       MatMulHandlers(),    NormaliseHandlers(),   ReduceHandlers(),
        ResizeHandlers(),     RecurrentHandlers(), SelectionHandlers(),   QuantiseHandlers(),
        LossHandlers(),       SamplingHandlers(),  SignalHandlers(),      LegacyHandlers()}) {
    for (const Handler& handler : family) table[handler.op][handler.since] = &handler;
  }
  return table;
}

const HandlerTable& Table() {
  static const HandlerTable table = MakeTable();
  return table;
}

}  // namespace

const Handler* FindHandler(std::string_view op, int64_t opset) {
  const auto found = Table().find(op);
  if (found == Table().end()) return nullptr;
  const auto after = found->second.upper_bound(opset);
  return after == found->second.begin() ? nullptr : std::prev(after)->second;
}

int64_t FirstOpset(std::string_view op) {
  const auto found = Table().find(op);
  return found == Table().end() ? 0 : found->second.begin()->first;
}

}  // namespace hone::graph::onnx_import
