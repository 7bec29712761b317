#include "server/least_flop.h"

#include <algorithm>

#include "graph/group_cost.h"
#include "ir/expr.h"
#include "schedule/algorithms/winograd.h"

namespace hone::server {
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
  const int winograd = schedule::FindWinogradStage(workload);
  double flop = 0;
  for (size_t i = 0; i < workload.stages.size(); ++i) {
    const ir::Stage& stage = workload.stages[i];
    if (!graph::IsContraction(stage)) continue;
    double points = 1;
    for (int axis = 0; axis < stage.num_axes(); ++axis) {
      points *= static_cast<double>(stage.Extent(axis));
    }
    const double gain = static_cast<int>(i) == winograd ? kWinogradGain : Gain(workload, stage);
    flop += 2 * points / gain;
  }
  return flop;
}

}  // namespace hone::server
