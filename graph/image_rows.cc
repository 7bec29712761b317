#include "graph/image_rows.h"

#include <span>
#include <utility>

#include "ir/range_analysis.h"

namespace hone::graph {
namespace {

using ir::BinaryOp;
using ir::Expr;
using ir::ExprKind;
using Shift = std::optional<int64_t>;

/// How one Stage reads rows of images.
class StageRows {
 public:
  /// `tensor_rows`: rows of an image by tensor, 0: it is the same for all images. `rows`: of the
  /// Stage.
  StageRows(const ir::Stage& stage, const std::vector<int64_t>& tensor_rows, int64_t rows)
      : tensor_rows_(tensor_rows), rows_(rows), range_(FirstImage(stage, rows), nullptr) {}

  /// By how much the value of `e` grows from a point to the same point of the next image; empty:
  /// it cannot be told, or a load leaves the image.
  Shift Of(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kConst: return 0;
      case ExprKind::kVar: return e->id == 0 ? rows_ : 0;
      case ExprKind::kLoad: return OfLoad(*e);
      case ExprKind::kCast:
      case ExprKind::kUnary: return OfFixed(e->args);
      case ExprKind::kSelect: return OfSelect(*e);
      case ExprKind::kBinary: return OfBinary(*e);
    }
    return {};
  }

  /// Whether these indices of a tensor meet an image's own `rows` rows of it, the same elsewhere.
  bool KeepsRows(std::span<const Expr> indices, int64_t rows) {
    const ir::Interval inside{0, rows - 1};
    return Of(indices[0]) == rows && inside.Contains(range_.Of(indices[0])) &&
           OfFixed(indices.subspan(1)) == 0;
  }

 private:
  static std::vector<ir::Interval> FirstImage(const ir::Stage& stage, int64_t rows) {
    std::vector<ir::Interval> axes;
    for (int axis = 0; axis < stage.num_axes(); ++axis) axes.push_back({0, stage.Extent(axis) - 1});
    if (!axes.empty()) axes[0].hi = rows - 1;
    return axes;
  }

  /// 0 where all of these stay the same.
  Shift OfFixed(std::span<const Expr> all) {
    for (const Expr& e : all) {
      if (Of(e) != 0) return {};
    }
    return 0;
  }

  Shift OfLoad(const ir::ExprNode& load) {
    const int64_t rows = tensor_rows_[static_cast<size_t>(load.id)];
    if (rows == 0) return OfFixed(load.args);
    return KeepsRows(load.args, rows) ? Shift(0) : Shift();
  }

  /// The branch that is taken sees the condition hold: padding guards what it reads.
  Shift OfSelect(const ir::ExprNode& select) {
    if (Of(select.args[0]) != 0) return {};
    Shift shift[2];
    for (const size_t branch : {0, 1}) {
      const size_t mark = range_.Mark();
      range_.Assume(select.args[0], branch == 0);
      shift[branch] = Of(select.args[branch + 1]);
      range_.Forget(mark);
    }
    return shift[0] == shift[1] ? shift[0] : Shift();
  }

  Shift OfBinary(const ir::ExprNode& node) {
    const Shift a = Of(node.args[0]);
    const Shift b = Of(node.args[1]);
    if (!a || !b) return {};
    if (*a == 0 && *b == 0) return 0;
    if (!ir::IsInteger(node.args[0]->dtype)) return {};
    const std::optional<int64_t> factor = ir::AsInt(node.args[1]);
    switch (node.binary()) {
      case BinaryOp::kAdd: return *a + *b;
      case BinaryOp::kSub: return *a - *b;
      case BinaryOp::kMul:
        if (factor) return *a * *factor;
        if (const auto left = ir::AsInt(node.args[0])) return *left * *b;
        return {};
      case BinaryOp::kDiv:
        return factor && *factor > 0 && *a % *factor == 0 ? Shift(*a / *factor) : Shift();
      case BinaryOp::kMod: return factor && *factor > 0 && *a % *factor == 0 ? Shift(0) : Shift();
      case BinaryOp::kMin:
      case BinaryOp::kMax: return *a == *b ? a : Shift();
      default: return ir::IsComparison(node.binary()) && *a == *b ? Shift(0) : Shift();
    }
  }

  const std::vector<int64_t>& tensor_rows_;
  const int64_t rows_;
  ir::RangeAnalysis range_;
};

bool ReadsAny(const ir::Stage& stage, const std::vector<int64_t>& rows) {
  bool reads = false;
  for (const Expr& body : stage.body) {
    ir::Visit(body, [&](const ir::ExprNode& node) {
      reads |= node.kind == ExprKind::kLoad && rows[static_cast<size_t>(node.id)] != 0;
    });
  }
  return reads;
}

/// Rows of an image where `extent` holds them all; 0: it does not.
int64_t RowsOf(const std::vector<int64_t>& extents, int64_t images) {
  return !extents.empty() && extents[0] % images == 0 ? extents[0] / images : 0;
}

}  // namespace

std::optional<ir::Workload> FirstImageOf(const ir::Workload& workload,
                                         const std::vector<bool>& batched, int64_t images) {
  ir::Workload one = workload;
  std::vector<int64_t> rows(workload.tensors.size(), 0);
  for (size_t t = 0; t < rows.size(); ++t) {
    if (!batched[t]) continue;
    rows[t] = RowsOf(workload.tensors[t].shape, images);
    if (rows[t] == 0) return {};
  }
  for (size_t s = 0; s < workload.stages.size(); ++s) {
    const ir::Stage& stage = workload.stages[s];
    if (!ReadsAny(stage, rows)) continue;
    const int64_t stage_rows = RowsOf(stage.spatial, images);
    if (stage_rows == 0 || stage.scan >= 0) return {};
    StageRows reads(stage, rows, stage_rows);
    for (const Expr& body : stage.body) {
      if (reads.Of(body) != 0) return {};
    }
    one.stages[s].spatial[0] = stage_rows;
    for (const int result : stage.results) {
      const auto t = static_cast<size_t>(result);
      rows[t] = RowsOf(workload.tensors[t].shape, images);
      if (rows[t] == 0 || (!stage.store.empty() && !reads.KeepsRows(stage.store, rows[t]))) {
        return {};
      }
    }
  }
  for (size_t t = 0; t < rows.size(); ++t) {
    if (rows[t] != 0) one.tensors[t].shape[0] = rows[t];
  }
  return one;
}

}  // namespace hone::graph
