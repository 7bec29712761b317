#include "ir/panel_product.h"

#include "ir/index/simplify.h"

namespace hone::ir {
namespace {

/// Loads of a tensor in all bodies.
int LoadsOf(const Workload& workload, int tensor) {
  int loads = 0;
  for (const Stage& stage : workload.stages) {
    for (const Expr& body : stage.body) {
      Visit(body, [&](const ExprNode& node) {
        loads += node.kind == ExprKind::kLoad && node.id == tensor ? 1 : 0;
      });
    }
  }
  return loads;
}

/// Fills in which axes index the weights: one spatial and one reduce axis, what has one element
/// aside.
bool MatchWeight(const Workload& workload, const Stage& stage, const Expr& load,
                 PanelProduct* product) {
  if (load->kind != ExprKind::kLoad) return false;
  const Tensor& tensor = workload.tensors[static_cast<size_t>(load->id)];
  if (tensor.kind != TensorKind::kConstant) return false;
  for (size_t d = 0; d < load->args.size(); ++d) {
    if (tensor.shape[d] == 1) continue;
    const ExprNode& index = *load->args[d];
    if (index.kind != ExprKind::kVar || tensor.shape[d] != stage.Extent(index.id)) return false;
    const bool reduced = index.id >= stage.num_spatial();
    int& axis = reduced ? product->term : product->column;
    if (axis >= 0) return false;
    axis = index.id;
    if (!reduced) product->dim = static_cast<int>(d);
  }
  product->weights = load->id;
  return product->term >= 0 && product->column >= 0;
}

}  // namespace

std::optional<PanelProduct> FindPanelProduct(const Workload& workload, int stage_id) {
  const Stage& stage = workload.stages[static_cast<size_t>(stage_id)];
  if (stage.combiner != Combiner::kSum || stage.scan >= 0 || !stage.store.empty())
    return std::nullopt;
  const Expr& body = stage.body[0];
  if (body->kind != ExprKind::kBinary || body->binary() != BinaryOp::kMul ||
      body->dtype != DType::kF32)
    return std::nullopt;
  for (const size_t side : {0, 1}) {
    PanelProduct product{.weight = body->args[side], .other = body->args[1 - side]};
    if (!MatchWeight(workload, stage, product.weight, &product)) continue;
    bool fits = LoadsOf(workload, product.weights) == 1 &&
                !DependsOnVar(product.other, product.column) &&
                DependsOnVar(product.other, product.term);
    for (int axis = stage.num_spatial(); axis < stage.num_axes(); ++axis)
      fits = fits && (axis == product.term || stage.Extent(axis) == 1);
    if (fits) return product;
  }
  return std::nullopt;
}

std::optional<KeptPanels> PanelsOfStage(const Workload& workload, int stage) {
  const std::optional<PanelProduct> product = FindPanelProduct(workload, stage);
  if (!product) return std::nullopt;
  const std::optional<KeptPanels> panels =
      PanelsOf(workload.tensors[static_cast<size_t>(product->weights)]);
  return panels && panels->dim == product->dim ? panels : std::nullopt;
}

}  // namespace hone::ir
