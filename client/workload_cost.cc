#include "client/workload_cost.h"

#include <algorithm>

namespace hone::client {
namespace {

/// Arithmetic nodes of a body; what loads and selects decide with is not counted.
int64_t CountArithmetic(const ir::ExprNode& node) {
  int64_t count = 0;
  switch (node.kind) {
    case ir::ExprKind::kConst:
    case ir::ExprKind::kVar:
    case ir::ExprKind::kLoad: return 0;
    case ir::ExprKind::kSelect:
      // One of the branches is taken; padding's other branch is a constant.
      return std::max(CountArithmetic(*node.args[1]), CountArithmetic(*node.args[2]));
    case ir::ExprKind::kCast: break;
    case ir::ExprKind::kUnary: count = 1; break;
    case ir::ExprKind::kBinary: count = ir::IsComparison(node.binary()) ? 0 : 1; break;
  }
  for (const ir::Expr& arg : node.args) count += CountArithmetic(*arg);
  return count;
}

}  // namespace

WorkloadCost CostOf(const ir::Workload& workload) {
  WorkloadCost cost;
  for (const ir::Stage& stage : workload.stages) {
    double points = 1;
    for (int axis = 0; axis < stage.num_axes(); ++axis)
      points *= static_cast<double>(stage.Extent(axis));
    int64_t operations = 0;
    for (const ir::Expr& body : stage.body) operations += CountArithmetic(*body);
    if (stage.combiner != ir::Combiner::kNone)
      operations += static_cast<int64_t>(stage.body.size());
    cost.flop += points * static_cast<double>(operations);
  }
  for (const ir::Tensor& tensor : workload.tensors) {
    const bool boundary = tensor.kind == ir::TensorKind::kInput ||
                          tensor.kind == ir::TensorKind::kConstant || tensor.output;
    if (boundary) cost.bytes += static_cast<double>(tensor.Bytes());
  }
  return cost;
}

}  // namespace hone::client
