#include "schedule/algorithms/panel_rewriter.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "schedule/primitives/primitive.h"

namespace hone::schedule {

using ir::DType;
using ir::Expr;
using ir::Int;

absl::StatusOr<PanelSubject> FindPanelSubject(const ir::Workload& workload, int stage,
                                              int64_t width, std::string_view algorithm) {
  std::optional<ir::PanelProduct> product = ir::FindPanelProduct(workload, stage);
  if (!product) {
    return Illegal(fmt::format("{}: {} is no product by a matrix of weights", algorithm,
                               workload.stages[stage].name));
  }
  const ir::Tensor& weights = workload.tensors[product->weights];
  const std::optional<ir::KeptPanels> panels = ir::PanelsOfStage(workload, stage);
  if (!panels)
    return Illegal(fmt::format("{}: nothing is known of zeros in {}", algorithm, weights.name));
  if (panels->width != width) {
    return Illegal(fmt::format("{}: the panels of {} have {} columns, not {}", algorithm,
                               weights.name, panels->width, width));
  }
  return PanelSubject{*std::move(product), *panels, *ir::MatrixOf(weights, panels->dim)};
}

PanelRewriter::PanelRewriter(Schedule& schedule, int stage, PanelSubject subject, int first)
    : schedule_(schedule),
      stage_(stage),
      subject_(std::move(subject)),
      next_(first),
      num_panels_((matrix().columns + width() - 1) / width()) {}

int PanelRewriter::Append(ir::Combiner combiner, DType dtype, std::vector<int64_t> spatial,
                          int64_t reduce, Expr body) {
  ir::Stage stage;
  stage.spatial = spatial;
  stage.reduce = {reduce};
  stage.combiner = combiner;
  stage.body = {std::move(body)};
  return AppendStage(schedule_, std::move(stage), fmt::format("s{}", next_++), dtype,
                     std::move(spatial));
}

void PanelRewriter::Become(std::vector<int64_t> reduce, Expr body) {
  ir::Stage& stage = schedule_.workload.stages[stage_];
  stage.reduce = std::move(reduce);
  stage.body = {std::move(body)};
  ResetLoops(schedule_, stage_);
}

Expr PanelRewriter::Weight(const Expr& term, const Expr& column) const {
  std::vector<Expr> at(static_cast<size_t>(out().num_axes()), Int(0));
  at[subject_.product.term] = term;
  at[subject_.product.column] = is_ragged() ? ir::Min(column, Int(matrix().columns - 1)) : column;
  return ir::SubstituteVars(subject_.product.weight, at);
}

Expr PanelRewriter::Other(const Expr& term) const {
  std::vector<Expr> axes;
  for (int axis = 0; axis < out().num_axes(); ++axis)
    axes.push_back(axis < out().num_spatial() ? ir::Var(axis) : Int(0));
  axes[subject_.product.term] = term;
  return ir::SubstituteVars(subject_.product.other, axes);
}

Expr PanelRewriter::Number(int tensor, std::vector<Expr> indices) {
  return ir::Load(tensor, DType::kI32, std::move(indices));
}

Expr PanelRewriter::Index(int tensor, std::vector<Expr> indices) {
  return ir::Cast(DType::kI64, Number(tensor, std::move(indices)));
}

Expr PanelRewriter::Limited(int tensor, std::vector<Expr> indices, int64_t extent) {
  return ir::Max(ir::Min(Index(tensor, std::move(indices)), Int(extent - 1)), Int(0));
}

}  // namespace hone::schedule
