#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

using Shape = std::vector<int64_t>;

/// Pads of the spatial axes (all begins, then all ends) of a Pad that surrounds images with zeros.
std::optional<Shape> ZerosAround(const Rewriter& rewriter, const Graph& graph, const Node& pad) {
  constexpr int64_t kMost = 4096;  // far from what windows refuse
  const OpCall call = MakeCall(graph, pad);
  const Shape begin = call.Ints("begin");
  const Shape end = call.Ints("end");
  const bool has_value = pad.inputs.size() > 1 && pad.inputs[1] != kNoValue;
  if (call.String("mode", "constant") != "constant" || begin.size() < 3) return std::nullopt;
  if (has_value && rewriter.Uniform(pad.inputs[1]) != 0.0) return std::nullopt;
  if (begin[0] != 0 || begin[1] != 0 || end[0] != 0 || end[1] != 0) return std::nullopt;
  Shape pads(begin.begin() + 2, begin.end());
  pads.insert(pads.end(), end.begin() + 2, end.end());
  if (std::ranges::any_of(pads, [](int64_t p) { return p < 0 || p > kMost; })) return std::nullopt;
  return pads;
}

}  // namespace

absl::StatusOr<int> FoldPads(Graph& graph, const PassContext&) {
  Rewriter rewriter(graph);
  int changes = 0;
  for (const Node& old : rewriter.old_nodes()) {
    Node conv = rewriter.Mapped(old);
    const Node* pad = conv.op == "Conv" ? rewriter.ProducerOf(conv.inputs[0], "Pad") : nullptr;
    std::optional<Shape> pads;
    if (pad != nullptr && MakeCall(graph, conv).String("layout", "nchw") == "nchw")
      pads = ZerosAround(rewriter, graph, *pad);
    if (!pads) {
      rewriter.Keep(old);
      continue;
    }
    const Shape own = MakeCall(graph, conv).Ints("pads");
    for (size_t k = 0; k < own.size(); ++k) (*pads)[k] += own[k];
    conv.inputs[0] = pad->inputs[0];
    conv.attributes["pads"] = *pads;
    conv.outputs.clear();
    HONE_ASSIGN_OR_RETURN(const ValueId result, rewriter.Add(std::move(conv)));
    rewriter.Replace(old.outputs[0], result);
    ++changes;
  }
  HONE_RETURN_IF_ERROR(rewriter.Finish());
  return changes;
}

}  // namespace hone::graph
