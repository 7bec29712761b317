#include "graph/image_rows.h"

#include <span>
#include <utility>

#include "ir/index/range_analysis.h"

namespace hone::graph {
namespace {

using ir::BinaryOp;
using ir::Expr;
using ir::ExprKind;
using Shift = std::optional<int64_t>;

/// Where a tensor or a Stage has images: `rows` of one on an axis; -1: it has none.
struct Rows {
  int axis = -1;
  int64_t rows = 0;
};

/// How one Stage reads rows of images.
class StageRows {
 public:
  /// `tensors`: by tensor. `own`: of the Stage.
  StageRows(const ir::Stage& stage, const std::vector<Rows>& tensors, Rows own)
      : tensors_(tensors), own_(own), range_(InFirstImage(stage, own), nullptr) {}

  /// By how much the value of `e` grows from a point to the same point of the next image; empty:
  /// it cannot be told, or a load leaves the image.
  Shift Of(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kConst: return 0;
      case ExprKind::kVar: return e->id == own_.axis ? own_.rows : 0;
      case ExprKind::kLoad: return OfLoad(*e);
      case ExprKind::kCast:
      case ExprKind::kUnary: return OfFixed(e->args);
      case ExprKind::kSelect: return OfSelect(*e);
      case ExprKind::kBinary: return OfBinary(*e);
    }
    return {};
  }

  /// Whether these indices of a tensor meet an image's own rows of it, the same elsewhere.
  bool KeepsRows(std::span<const Expr> indices, Rows of) {
    const ir::Interval inside{0, of.rows - 1};
    for (size_t d = 0; d < indices.size(); ++d) {
      const bool along = static_cast<int>(d) == of.axis;
      if (Of(indices[d]) != (along ? of.rows : 0)) return false;
      if (along && !inside.Contains(range_.Of(indices[d]))) return false;
    }
    return true;
  }

 private:
  static std::vector<ir::Interval> InFirstImage(const ir::Stage& stage, Rows own) {
    std::vector<ir::Interval> axes;
    for (int axis = 0; axis < stage.num_axes(); ++axis) {
      axes.push_back({0, (axis == own.axis ? own.rows : stage.Extent(axis)) - 1});
    }
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
    const Rows& rows = tensors_[static_cast<size_t>(load.id)];
    if (rows.axis < 0) return OfFixed(load.args);
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

  const std::vector<Rows>& tensors_;
  const Rows own_;
  ir::RangeAnalysis range_;
};

bool ReadsAny(const ir::Stage& stage, const std::vector<Rows>& tensors) {
  bool reads = false;
  for (const Expr& body : stage.body) {
    ir::Visit(body, [&](const ir::ExprNode& node) {
      reads |= node.kind == ExprKind::kLoad && tensors[static_cast<size_t>(node.id)].axis >= 0;
    });
  }
  return reads;
}

/// The images along an axis whose extent they divide; else none.
Rows RowsOf(const std::vector<int64_t>& extents, int axis, int64_t images) {
  if (axis < 0 || axis >= static_cast<int>(extents.size())) return {};
  const int64_t extent = extents[static_cast<size_t>(axis)];
  return extent % images == 0 ? Rows{axis, extent / images} : Rows{};
}

/// Shows for one Stage that its images lie along `own`, and where its results have them.
bool Show(const ir::Workload& workload, const ir::Stage& stage, Rows own, int64_t images,
          std::vector<Rows>* tensors) {
  StageRows reads(stage, *tensors, own);
  for (const Expr& body : stage.body) {
    if (reads.Of(body) != 0) return false;
  }
  for (const int result : stage.results) {
    const auto t = static_cast<size_t>(result);
    const std::vector<int64_t>& shape = workload.tensors[t].shape;
    Rows found = stage.store.empty() ? RowsOf(shape, own.axis, images) : Rows{};
    for (int d = 0; d < static_cast<int>(stage.store.size()) && found.axis < 0; ++d) {
      const Rows along = RowsOf(shape, d, images);
      if (along.axis >= 0 && reads.KeepsRows(stage.store, along)) found = along;
    }
    if (found.axis < 0) return false;
    (*tensors)[t] = found;
  }
  return true;
}

}  // namespace

std::optional<FirstImage> FirstImageOf(const ir::Workload& workload, std::vector<int> axes,
                                       int64_t images) {
  FirstImage one{workload, std::move(axes)};
  std::vector<Rows> rows(workload.tensors.size());
  for (size_t t = 0; t < rows.size(); ++t) {
    if (one.axes[t] < 0) continue;
    rows[t] = RowsOf(workload.tensors[t].shape, one.axes[t], images);
    if (rows[t].axis < 0) return {};
  }
  for (size_t s = 0; s < workload.stages.size(); ++s) {
    const ir::Stage& stage = workload.stages[s];
    if (!ReadsAny(stage, rows)) continue;
    if (stage.scan >= 0) return {};
    Rows own;
    for (int axis = 0; axis < stage.num_spatial() && own.axis < 0; ++axis) {
      const Rows along = RowsOf(stage.spatial, axis, images);
      if (along.axis >= 0 && Show(workload, stage, along, images, &rows)) own = along;
    }
    if (own.axis < 0) return {};
    one.workload.stages[s].spatial[static_cast<size_t>(own.axis)] = own.rows;
  }
  for (size_t t = 0; t < rows.size(); ++t) {
    one.axes[t] = rows[t].axis;
    if (rows[t].axis < 0) continue;
    one.workload.tensors[t].shape[static_cast<size_t>(rows[t].axis)] = rows[t].rows;
  }
  return one;
}

}  // namespace hone::graph
