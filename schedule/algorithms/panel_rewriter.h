#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/panel_product.h"
#include "schedule/schedule.h"

namespace hone::schedule {

/// A product by weights of which zeros are known.
struct PanelSubject {
  ir::PanelProduct product;
  ir::KeptPanels panels;
  ir::MatrixForm matrix;
};
/// Errors, in the name of an algorithm: the Stage is no such product, nothing is known of its
/// weights, or of panels of another width.
absl::StatusOr<PanelSubject> FindPanelSubject(const ir::Workload& workload, int stage,
                                              int64_t width, std::string_view algorithm);

/// What algorithms for such products share: their Stages are of panels of columns, axis 0.
class PanelRewriter {
 protected:
  /// New Stages are called s`first`, s`first + 1`, …
  PanelRewriter(Schedule& schedule, int stage, PanelSubject subject, int first);

  const ir::Stage& out() const { return schedule_.workload.stages[stage_]; }
  const ir::KeptPanels& panels() const { return subject_.panels; }
  const ir::MatrixForm& matrix() const { return subject_.matrix; }
  int64_t width() const { return subject_.panels.width; }
  int64_t num_panels() const { return num_panels_; }
  int column() const { return subject_.product.column; }
  /// Whether the last panel has fewer columns.
  bool is_ragged() const { return matrix().columns % width() != 0; }

  /// A Stage that reduces over one axis; gives its tensor.
  int Append(ir::Combiner combiner, ir::DType dtype, std::vector<int64_t> spatial, int64_t reduce,
             ir::Expr body);
  int Sum(ir::DType dtype, std::vector<int64_t> spatial, int64_t reduce, ir::Expr body) {
    return Append(ir::Combiner::kSum, dtype, std::move(spatial), reduce, std::move(body));
  }
  /// The Stage itself becomes the sum of `body` over these axes.
  void Become(std::vector<int64_t> reduce, ir::Expr body);

  /// The weight of a term in a column; that of the last column where it is beyond that.
  ir::Expr Weight(const ir::Expr& term, const ir::Expr& column) const;
  /// The other factor of a term.
  ir::Expr Other(const ir::Expr& term) const;

  /// Elements of tensors of i32; as indices, and as those of so many.
  static ir::Expr Number(int tensor, std::vector<ir::Expr> indices);
  static ir::Expr Index(int tensor, std::vector<ir::Expr> indices);
  static ir::Expr Limited(int tensor, std::vector<ir::Expr> indices, int64_t extent);
  static ir::Expr Nothing() { return ir::ConstInt(ir::DType::kI32, 0); }
  static ir::Expr OneIf(const ir::Expr& condition) {
    return ir::Select(condition, ir::ConstInt(ir::DType::kI32, 1), Nothing());
  }

 private:
  Schedule& schedule_;
  int stage_;
  PanelSubject subject_;
  int next_;
  int64_t num_panels_;
};

}  // namespace hone::schedule
