#include "fmt/format.h"

#include "graph/onnx_import/handler.h"

// Gather, GatherElements, GatherND.
namespace hone::graph::onnx_import {
namespace {

void Gather(NodeImport& n) {
  const ValueId x = n.Input(0);
  const int64_t axis = n.Axis(n.Int("axis", 0), n.RankOf(x));
  n.SetOutput(0, n.Emit("Gather", {x, n.Input(1)}, {{"axis", axis}}));
}

void GatherElements(NodeImport& n) {
  const ValueId x = n.Input(0);
  const int64_t axis = n.Axis(n.Int("axis", 0), n.RankOf(x));
  n.SetOutput(0, n.Emit("GatherElements", {x, n.Input(1)}, {{"axis", axis}}));
}

void GatherNd(NodeImport& n) {
  const ValueId x = n.Input(0);
  const int64_t batch_dims = n.Int("batch_dims", 0);
  n.SetOutput(0, n.Emit("GatherND", {x, n.Input(1)}, {{"batch_dims", batch_dims}}));
}

constexpr Handler kHandlers[] = {
    {"Gather", 1, 2, 2, 1, Gather},
    {"GatherElements", 11, 2, 2, 1, GatherElements},
    {"GatherND", 11, 2, 2, 1, GatherNd},
};

}  // namespace

std::span<const Handler> GatherHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
