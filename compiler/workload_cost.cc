#include "compiler/workload_cost.h"

#include <algorithm>

namespace hone::compiler {
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

/// Adds the bytes that every load of `node` reads when it is evaluated at `points` points.
void AddLoads(const ir::Workload& workload, const ir::ExprNode& node, double points,
              std::vector<double>& read_bytes) {
  if (node.kind == ir::ExprKind::kLoad) {
    const auto tensor = static_cast<size_t>(node.id);
    read_bytes[tensor] += points * static_cast<double>(ir::SizeOf(workload.tensors[tensor].dtype));
  }
  for (const ir::Expr& arg : node.args) AddLoads(workload, *arg, points, read_bytes);
}

}  // namespace

WorkloadCost CostOf(const ir::Workload& workload) {
  WorkloadCost cost;
  std::vector<double> read_bytes(workload.tensors.size(), 0);
  for (const ir::Stage& stage : workload.stages) {
    double points = 1;
    for (int axis = 0; axis < stage.num_axes(); ++axis)
      points *= static_cast<double>(stage.Extent(axis));
    int64_t operations = 0;
    for (const ir::Expr& body : stage.body) operations += CountArithmetic(*body);
    if (stage.combiner != ir::Combiner::kNone)
      operations += static_cast<int64_t>(stage.body.size());
    for (const ir::Expr& body : stage.body) AddLoads(workload, *body, points, read_bytes);
    cost.flop += points * static_cast<double>(operations);
  }
  for (size_t i = 0; i < workload.tensors.size(); ++i) {
    const ir::Tensor& tensor = workload.tensors[i];
    const auto bytes = static_cast<double>(tensor.Bytes());
    const bool read =
        tensor.kind == ir::TensorKind::kInput || tensor.kind == ir::TensorKind::kConstant;
    // A gather reads only the rows of its table that are looked up.
    if (read || tensor.output) cost.bytes += read ? std::min(bytes, read_bytes[i]) : bytes;
  }
  return cost;
}

}  // namespace hone::compiler
