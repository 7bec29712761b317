#include "compiler/batch_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "base/status.h"
#include "compiler/concat_placement.h"
#include "graph/group_limits.h"
#include "graph/grouping.h"
#include "graph/one_image.h"
#include "ir/workload_cost.h"

namespace hone::compiler {
namespace {

absl::StatusOr<ModelSteps> StepsOf(graph::Graph graph, const ir::Target& target) {
  HONE_ASSIGN_OR_RETURN(const std::vector<graph::Group> groups, graph::GroupNodes(graph, target));
  HONE_ASSIGN_OR_RETURN(ModelSteps steps, MakeSteps(std::move(graph), groups));
  PlaceConcats(steps);
  return steps;
}

bool HasBatch(const graph::Graph& graph) {
  if (graph.inputs.empty()) return false;
  const auto& shape = graph.values[static_cast<size_t>(graph.inputs.front())].type.shape;
  return !shape.empty() && shape[0] > 1;
}

/// An output is fetched before it is written. Constants are read in order, so that half of the wait
/// for them is hidden.
double FarBytes(const ModelSteps& model, const ModelStep& step, int64_t near_bytes,
                bool far_constants) {
  double bytes = 0;
  const auto add = [&](const std::vector<graph::ValueId>& values, double times, int64_t most) {
    for (const graph::ValueId value : values) {
      const int64_t each = model.graph.values[static_cast<size_t>(value)].type.Bytes();
      if (each > most) bytes += times * static_cast<double>(each);
    }
  };
  add(step.inputs, 1, near_bytes);
  add(step.outputs, 2, near_bytes);
  if (far_constants) add(step.constants, 0.5, 0);
  return bytes;
}

}  // namespace

double NominalNs(const ModelSteps& model, const ir::Target& target) {
  const graph::GroupLimits limits = graph::LimitsOfKinds().Of(target).Of(target);
  std::vector<double> flop;
  for (const ModelKernel& kernel : model.kernels)
    flop.push_back(ir::CostOf(kernel.workload).flop());
  int64_t constants = 0;
  for (const ModelStep& step : model.steps) {
    for (const graph::ValueId c : step.constants) {
      constants += model.graph.values[static_cast<size_t>(c)].type.Bytes();
    }
  }
  double ns = 0;
  for (const ModelStep& step : model.steps) {
    const double work =
        step.kernel < 0 ? 0 : flop[static_cast<size_t>(step.kernel)] / ir::MostFlopPerNs(target);
    const double far = FarBytes(model, step, limits.near_bytes, constants > limits.near_bytes);
    ns += std::max(work, far / limits.far_bytes_per_ns);
  }
  return ns * static_cast<double>(model.images);
}

absl::StatusOr<ModelSteps> MakeSteps(graph::Graph graph, const ir::Target& target, BatchRun batch,
                                     TraceSource& traces) {
  const bool has_caches = graph::LimitsOfKinds().Of(target).Of(target).near_bytes > 0;
  if (!HasBatch(graph) || (batch != BatchRun::kEach && !has_caches)) {
    return StepsOf(std::move(graph), target);
  }
  absl::StatusOr<graph::OneImage> one = graph::OneImageOf(graph);
  if (!one.ok() && batch == BatchRun::kEach) {
    return absl::UnimplementedError(absl::StrCat(
        "the batch cannot run image by image: ", one.status().message(), "; run it together"));
  }
  HONE_ASSIGN_OR_RETURN(ModelSteps together, StepsOf(std::move(graph), target));
  if (!one.ok()) {
    together.batch.why = StatusMessage(one.status());
    return together;
  }
  HONE_ASSIGN_OR_RETURN(ModelSteps each, StepsOf(std::move(one->graph), target));
  each.images = one->images;
  for (ModelKernel& kernel : each.kernels) kernel.count *= static_cast<int>(each.images);
  KnownBatch known{batch, "as --batch says"};
  if (batch == BatchRun::kAuto) {
    HONE_ASSIGN_OR_RETURN(known, traces.FindBatch(together.kernels, target));
  }
  BatchChoice choice{.why = known.why, .judged = batch == BatchRun::kAuto};
  for (const ModelKernel& k : together.kernels) choice.together.emplace_back(k.hash, k.count);
  if (known.run == BatchRun::kAuto) {
    // A sum of equal parts differs by its rounding.
    const bool apart = NominalNs(each, target) < (1 - 1e-6) * NominalNs(together, target);
    known.run = apart ? BatchRun::kEach : BatchRun::kTogether;
    choice.why = "by the target's nominal times";
    choice.judged = false;
  }
  ModelSteps& chosen = known.run == BatchRun::kEach ? each : together;
  chosen.batch = std::move(choice);
  return std::move(chosen);
}

}  // namespace hone::compiler
