#include "schedule/least_work.h"

#include <algorithm>
#include <optional>

#include "ir/expr.h"
#include "ir/panel_product.h"
#include "ir/workload_cost.h"
#include "schedule/algorithms/attention_form.h"
#include "schedule/algorithms/causal_form.h"
#include "schedule/algorithms/winograd.h"
#include "schedule/schedule.h"

namespace hone::schedule {
namespace {

/// How many multiply-adds of what the Stage loads fit into the time of one f32's, at best.
double Gain(const ir::Workload& workload, const ir::Stage& stage) {
  double gain = 1;
  ir::Visit(stage.body[0], [&](const ir::ExprNode& node) {
    if (node.kind != ir::ExprKind::kLoad) return;
    const ir::DType dtype = workload.tensors[static_cast<size_t>(node.id)].dtype;
    const double of_type = !ir::IsFloat(dtype) ? 4.0 : ir::SizeOf(dtype) < 4 ? 2.0 : 1.0;
    gain = std::max(gain, of_type);
  });
  return gain;
}

/// The two products of an attention under a causal mask, and which share of them is needed.
struct CausalProducts {
  int scores = -1, values = -1;
  double seen = 1;
};
CausalProducts FindCausalProducts(const ir::Workload& workload) {
  const Schedule schedule(workload);
  for (size_t i = 0; i < workload.stages.size(); ++i) {
    if (!ir::IsContraction(workload.stages[i])) continue;
    const auto form = MatchAttention(schedule, static_cast<int>(i));
    if (!form.ok()) continue;
    const std::optional<CausalForm> causal = FindCausal(workload, *form);
    if (!causal) continue;
    const auto& extents = workload.stages[static_cast<size_t>(form->exponential)].spatial;
    const int64_t rows = extents[static_cast<size_t>(causal->axis)];
    return {form->contraction, form->product, SeenShare(*causal, rows, form->keys)};
  }
  return {};
}

}  // namespace

double LeastFlop(const ir::Workload& workload) {
  constexpr double kWinogradGain = 4;
  const int winograd = FindWinogradStage(workload);
  const CausalProducts causal = FindCausalProducts(workload);
  double flop = 0;
  for (size_t i = 0; i < workload.stages.size(); ++i) {
    const ir::Stage& stage = workload.stages[i];
    if (!ir::IsContraction(stage)) continue;
    const double gain = static_cast<int>(i) == winograd ? kWinogradGain : Gain(workload, stage);
    const std::optional<ir::KeptPanels> panels = ir::PanelsOfStage(workload, static_cast<int>(i));
    const int id = static_cast<int>(i);
    const double seen = id == causal.scores || id == causal.values ? causal.seen : 1;
    flop += 2 * ir::PointsOf(stage) / gain * (panels ? ir::LeastKept(*panels) : 1) * seen;
  }
  return flop;
}

double LeastNs(const ir::Workload& workload, const ir::Target& target) {
  return std::max(LeastFlop(workload) / ir::MostFlopPerNs(target),
                  ir::CostOf(workload).bytes / ir::MostBytesPerNs(target));
}

}  // namespace hone::schedule
