#include "schedule/least_work.h"

#include <algorithm>
#include <optional>

#include "ir/expr.h"
#include "ir/panel_product.h"
#include "ir/workload_cost.h"
#include "schedule/algorithms/winograd.h"

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

}  // namespace

double LeastFlop(const ir::Workload& workload) {
  constexpr double kWinogradGain = 4;
  const int winograd = FindWinogradStage(workload);
  double flop = 0;
  for (size_t i = 0; i < workload.stages.size(); ++i) {
    const ir::Stage& stage = workload.stages[i];
    if (!ir::IsContraction(stage)) continue;
    const double gain = static_cast<int>(i) == winograd ? kWinogradGain : Gain(workload, stage);
    const std::optional<ir::KeptPanels> panels = ir::PanelsOfStage(workload, static_cast<int>(i));
    flop += 2 * ir::PointsOf(stage) / gain * (panels ? ir::LeastKept(*panels) : 1);
  }
  return flop;
}

double LeastNs(const ir::Workload& workload, const ir::Target& target) {
  return std::max(LeastFlop(workload) / ir::MostFlopPerNs(target),
                  ir::CostOf(workload).bytes / ir::MostBytesPerNs(target));
}

}  // namespace hone::schedule
