#include "compiler/batch_run.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "base/status.h"
#include "compiler/cascades.h"
#include "compiler/concat_placement.h"
#include "graph/group_limits.h"
#include "graph/grouping.h"
#include "graph/one_image.h"
#include "ir/workload_cost.h"

namespace hone::compiler {
namespace {

absl::StatusOr<ModelSteps> StepsOf(graph::Graph graph, const std::vector<graph::Group>& groups) {
  HONE_ASSIGN_OR_RETURN(ModelSteps steps, MakeSteps(std::move(graph), groups));
  PlaceConcats(steps);
  return steps;
}

absl::StatusOr<ModelSteps> StepsOf(graph::Graph graph, const ir::Target& target) {
  HONE_ASSIGN_OR_RETURN(const std::vector<graph::Group> groups, graph::GroupNodes(graph, target));
  return StepsOf(std::move(graph), groups);
}

/// A model and the graph and way by which its steps were made.
struct MadeSteps {
  ModelSteps steps;
  graph::Graph graph;
};

/// The same with its chains of layers joined, where that was asked for or measured.
absl::StatusOr<ModelSteps> WithCascades(MadeSteps made, const ir::Target& target, CascadeRun asked,
                                        TraceSource& traces) {
  if (asked == CascadeRun::kOff) return std::move(made.steps);
  HONE_ASSIGN_OR_RETURN(const std::vector<graph::Group> groups,
                        graph::GroupNodes(made.graph, target));
  const CascadeRun wanted = asked == CascadeRun::kAll ? CascadeRun::kAll : CascadeRun::kOn;
  HONE_ASSIGN_OR_RETURN(const Cascades joined,
                        JoinCascades(made.graph, groups, target, wanted, traces));
  CascadeChoice choice{.possible = joined.possible};
  if (choice.possible == 0) return std::move(made.steps);
  KnownCascades known{asked, "as --cascades says"};
  if (asked == CascadeRun::kAuto) {
    HONE_ASSIGN_OR_RETURN(known, traces.FindCascadeRun(made.steps.kernels, target));
    choice.judged = known.run != CascadeRun::kAuto;
  }
  choice.why = known.why.empty() ? "they were not measured" : known.why;
  for (const ModelKernel& k : made.steps.kernels) choice.apart.emplace_back(k.hash, k.count);
  ModelSteps* chosen = &made.steps;
  std::optional<ModelSteps> cascaded;
  if (known.run != CascadeRun::kAuto && known.run != CascadeRun::kOff) {
    HONE_ASSIGN_OR_RETURN(cascaded, StepsOf(std::move(made.graph), joined.groups));
    cascaded->images = made.steps.images;
    cascaded->batch = std::move(made.steps.batch);
    for (ModelKernel& kernel : cascaded->kernels)
      kernel.count *= static_cast<int>(cascaded->images);
    choice.joined = joined.joined;
    chosen = &*cascaded;
  }
  chosen->cascades = std::move(choice);
  return std::move(*chosen);
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

namespace {

/// With every layer a kernel of its own.
absl::StatusOr<MadeSteps> MakeApart(graph::Graph graph, const ir::Target& target, BatchRun batch,
                                    TraceSource& traces) {
  const bool has_caches = graph::LimitsOfKinds().Of(target).Of(target).near_bytes > 0;
  if (!HasBatch(graph) || (batch != BatchRun::kEach && !has_caches)) {
    HONE_ASSIGN_OR_RETURN(ModelSteps steps, StepsOf(graph, target));
    return MadeSteps{std::move(steps), std::move(graph)};
  }
  absl::StatusOr<graph::OneImage> one = graph::OneImageOf(graph);
  if (!one.ok() && batch == BatchRun::kEach) {
    return absl::UnimplementedError(absl::StrCat(
        "the batch cannot run image by image: ", one.status().message(), "; run it together"));
  }
  HONE_ASSIGN_OR_RETURN(ModelSteps together, StepsOf(graph, target));
  if (!one.ok()) {
    together.batch.why = StatusMessage(one.status());
    return MadeSteps{std::move(together), std::move(graph)};
  }
  HONE_ASSIGN_OR_RETURN(ModelSteps each, StepsOf(one->graph, target));
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
  const bool by_image = known.run == BatchRun::kEach;
  MadeSteps made{std::move(by_image ? each : together), std::move(by_image ? one->graph : graph)};
  made.steps.batch = std::move(choice);
  return made;
}

}  // namespace

absl::StatusOr<ModelSteps> MakeSteps(graph::Graph graph, const ir::Target& target, BatchRun batch,
                                     CascadeRun cascades, TraceSource& traces) {
  HONE_ASSIGN_OR_RETURN(MadeSteps made, MakeApart(std::move(graph), target, batch, traces));
  return WithCascades(std::move(made), target, cascades, traces);
}

}  // namespace hone::compiler
