#include "ir/workload_cost.h"

#include <algorithm>
#include <optional>

#include "ir/panel_product.h"

namespace hone::ir {
namespace {

/// Arithmetic nodes of a body; what loads and selects decide with is not counted.
int64_t CountArithmetic(const ExprNode& node) {
  int64_t count = 0;
  switch (node.kind) {
    case ExprKind::kConst:
    case ExprKind::kVar:
    case ExprKind::kLoad: return 0;
    case ExprKind::kSelect:
      // One of the branches is taken; padding's other branch is a constant.
      return std::max(CountArithmetic(*node.args[1]), CountArithmetic(*node.args[2]));
    case ExprKind::kCast: break;
    case ExprKind::kUnary: count = 1; break;
    case ExprKind::kBinary: count = IsComparison(node.binary()) ? 0 : 1; break;
  }
  for (const Expr& arg : node.args) count += CountArithmetic(*arg);
  return count;
}

bool HasLoad(const Expr& e) {
  bool found = false;
  Visit(e, [&](const ExprNode& node) { found = found || node.kind == ExprKind::kLoad; });
  return found;
}

/// The product of two loaded values behind casts, or null.
const ExprNode* Product(const Expr& e) {
  const ExprNode* inner = e.get();
  while (inner->kind == ExprKind::kCast) inner = inner->args[0].get();
  const bool product = inner->kind == ExprKind::kBinary && inner->binary() == BinaryOp::kMul;
  return product && HasLoad(inner->args[0]) && HasLoad(inner->args[1]) ? inner : nullptr;
}

/// The dtype as which the factor of a product is read: a load behind casts and guards; nothing
/// where it is computed.
std::optional<DType> ReadAs(const Workload& workload, const ExprNode& factor) {
  switch (factor.kind) {
    case ExprKind::kCast: return ReadAs(workload, *factor.args[0]);
    case ExprKind::kLoad: return workload.tensors[static_cast<size_t>(factor.id)].dtype;
    case ExprKind::kSelect: {
      const bool guarded = !HasLoad(factor.args[2]);
      return guarded ? ReadAs(workload, *factor.args[1]) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

ArithmeticUnit UnitOf(const Workload& workload, const Stage& stage) {
  if (!IsContraction(stage)) return ArithmeticUnit::kF32;
  const ExprNode& product = *Product(stage.body[0]);
  const auto all = [&](DType first, DType second) {
    return std::ranges::all_of(product.args, [&](const Expr& factor) {
      const auto read = ReadAs(workload, *factor);
      return read == first || read == second;
    });
  };
  if (product.dtype == DType::kI32 && all(DType::kI8, DType::kU8)) return ArithmeticUnit::kDotI8;
  if (product.dtype == DType::kF32 && all(DType::kBF16, DType::kBF16))
    return ArithmeticUnit::kDotBF16;
  return ArithmeticUnit::kF32;
}

/// Adds the bytes that every load of `node` reads when it is evaluated at `points` points.
void AddLoads(const Workload& workload, const ExprNode& node, double points,
              std::vector<double>& read_bytes) {
  if (node.kind == ExprKind::kLoad) {
    const auto tensor = static_cast<size_t>(node.id);
    read_bytes[tensor] += points * static_cast<double>(SizeOf(workload.tensors[tensor].dtype));
  }
  for (const Expr& arg : node.args) AddLoads(workload, *arg, points, read_bytes);
}

}  // namespace

bool IsContraction(const Stage& stage) {
  if (stage.combiner != Combiner::kSum || stage.reduce.empty()) return false;
  const ExprNode* const product = Product(stage.body[0]);
  return product != nullptr && !Equal(product->args[0], product->args[1]);
}

double PointsOf(const Stage& stage) {
  double points = 1;
  for (int axis = 0; axis < stage.num_axes(); ++axis)
    points *= static_cast<double>(stage.Extent(axis));
  return points;
}

WorkloadCost CostOf(const Workload& workload) {
  WorkloadCost cost;
  std::vector<double> read_bytes(workload.tensors.size(), 0);
  for (size_t id = 0; id < workload.stages.size(); ++id) {
    const Stage& stage = workload.stages[id];
    const std::optional<KeptPanels> panels = PanelsOfStage(workload, static_cast<int>(id));
    const double points = PointsOf(stage) * (panels ? LikelyKept(*panels) : 1);
    int64_t operations = 0;
    for (const Expr& body : stage.body) operations += CountArithmetic(*body);
    if (stage.combiner != Combiner::kNone) operations += static_cast<int64_t>(stage.body.size());
    for (const Expr& body : stage.body) AddLoads(workload, *body, points, read_bytes);
    cost.operations[static_cast<size_t>(UnitOf(workload, stage))] +=
        points * static_cast<double>(operations);
  }
  for (size_t i = 0; i < workload.tensors.size(); ++i) {
    const Tensor& tensor = workload.tensors[i];
    const auto bytes = static_cast<double>(tensor.Bytes());
    const bool read = tensor.kind == TensorKind::kInput || tensor.kind == TensorKind::kConstant;
    // A gather reads only the rows of its table that are looked up.
    if (read || tensor.output) cost.bytes += read ? std::min(bytes, read_bytes[i]) : bytes;
  }
  return cost;
}

}  // namespace hone::ir
