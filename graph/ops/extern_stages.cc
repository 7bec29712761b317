#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// What extern_ops.cc leaves to routines of the runtime, as loop nests: for devices that the
// routines do not run on. Each result looks for what belongs to it, so that all are independent.
namespace hone::graph::ops {
namespace {

using ir::BinaryOp;
using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

absl::StatusOr<Types> InferAs(std::string_view op, const OpCall& call) {
  return FindOp(op)->infer(call);
}

absl::StatusOr<Types> InferTopK(const OpCall& call) { return InferAs("TopK", call); }
absl::StatusOr<Types> InferScatterElements(const OpCall& call) {
  return InferAs("ScatterElements", call);
}
absl::StatusOr<Types> InferScatterNd(const OpCall& call) { return InferAs("ScatterND", call); }

/// a > b, where NaN is the greatest.
Expr IsGreater(const Expr& a, const Expr& b) {
  const Expr more = ir::Binary(BinaryOp::kGt, a, b);
  if (!ir::IsFloat(a->dtype)) return more;
  const Expr first = ir::Unary(ir::UnaryOp::kIsNan, a), second = ir::Unary(ir::UnaryOp::kIsNan, b);
  return ir::Binary(BinaryOp::kOr, more, ir::And(first, ir::Unary(ir::UnaryOp::kNot, second)));
}

/// An element's place is how many precede it; that of equal ones follows from their indices. Result
/// k is the element whose place that is.
absl::StatusOr<Tensors> ExpressTopK(const OpCall& call, WorkloadBuilder& builder,
                                    const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Types types, InferTopK(call));
  const Shape& x = call.inputs[0].type.shape;
  HONE_ASSIGN_OR_RETURN(const int64_t axis, ResolveAxis(call.Int("axis", -1), x.size()));
  const int64_t n = x[static_cast<size_t>(axis)];
  const auto along = [&](const Expr& index) {
    Exprs at = Axes(x.size());
    at[static_cast<size_t>(axis)] = index;
    return at;
  };
  const Expr j = ir::Var(static_cast<int>(x.size())), own = ir::Var(static_cast<int>(axis));
  const Expr other = builder.At(tensors[0], along(j)), mine = builder.At(tensors[0], along(own));
  const bool largest = call.Int("largest", 1) != 0;
  const Expr before = largest ? IsGreater(other, mine) : IsGreater(mine, other);
  const Expr after = largest ? IsGreater(mine, other) : IsGreater(other, mine);
  const Expr tie = ir::And(ir::Unary(ir::UnaryOp::kNot, after), ir::Lt(j, own));
  const int place =
      builder.AddReduce(x, {n}, Combiner::kSum,
                        ir::Select(ir::Binary(BinaryOp::kOr, before, tie),
                                   ir::ConstInt(DType::kI32, 1), ir::ConstInt(DType::kI32, 0)));
  const Expr here =
      ir::Binary(BinaryOp::kEq, builder.At(place, along(j)), ir::Cast(DType::kI32, own));
  const DType dtype = call.inputs[0].type.dtype;
  const int values = builder.AddReduce(types[0].shape, {n}, Combiner::kMax,
                                       ir::Select(here, other, Lowest(dtype)));
  const int indices =
      builder.AddReduce(types[0].shape, {n}, Combiner::kSum, ir::Select(here, j, ir::Int(0)));
  return Tensors{values, indices};
}

/// An index of the second input, negative ones counted from the end.
Expr IndexAt(const WorkloadBuilder& builder, int indices, Exprs at, int64_t extent) {
  const Expr given = ir::Cast(DType::kI64, builder.At(indices, std::move(at)));
  return ir::Select(ir::Lt(given, ir::Int(0)), given + extent, given);
}

/// Which updates an element gets: those of the points of some reduce axes for which a condition
/// holds.
struct Updates {
  Shape reduce;   ///< behind the spatial axes
  Expr match;     ///< over spatial and reduce axes
  Exprs at;       ///< of the update, likewise
  Shape extents;  ///< of the dimensions of `at` that reduce axes number
};

Expr Combined(const std::string& reduction, const Expr& old, const Expr& update) {
  if (reduction == "add") return old + update;
  if (reduction == "mul") return old * update;
  return ir::Binary(reduction == "max" ? BinaryOp::kMax : BinaryOp::kMin, old, update);
}

/// Element by element: data, combined with all updates that it gets.
absl::StatusOr<Tensors> Reduced(const OpCall& call, WorkloadBuilder& builder,
                                const Tensors& tensors, const Updates& updates) {
  const TensorType& data = call.inputs[0].type;
  const std::string reduction = call.String("reduction", "none");
  const Combiner combiner = reduction == "add"   ? Combiner::kSum
                            : reduction == "mul" ? Combiner::kProduct
                            : reduction == "max" ? Combiner::kMax
                                                 : Combiner::kMin;
  const Expr none = reduction == "add"   ? ir::Const(data.dtype, 0)
                    : reduction == "mul" ? ir::Const(data.dtype, 1)
                    : reduction == "max" ? Lowest(data.dtype)
                                         : Highest(data.dtype);
  const int all =
      builder.AddReduce(data.shape, updates.reduce, combiner,
                        ir::Select(updates.match, builder.At(tensors[2], updates.at), none));
  const Exprs point = Axes(data.shape.size());
  return Tensors{builder.AddMap(
      data.shape, Combined(reduction, builder.At(tensors[0], point), builder.At(all, point)))};
}

/// The number of a point of the reduce axes, the first of which is Var(first).
Expr NumberOf(const Shape& reduce, int first) {
  Expr number = ir::Int(0);
  for (size_t r = 0; r < reduce.size(); ++r)
    number = number * reduce[r] + ir::Var(first + static_cast<int>(r));
  return number;
}

/// The last update that an element gets, as its number; -1: none.
int LastUpdate(WorkloadBuilder& builder, const Shape& spatial, const Updates& updates) {
  const Expr number = NumberOf(updates.reduce, static_cast<int>(spatial.size()));
  return builder.AddReduce(spatial, updates.reduce, Combiner::kMax,
                           ir::Select(updates.match, number, ir::Int(-1)));
}

/// The numbers of the axes for the number of a point, which is clamped to what there is.
Exprs PointOf(const Expr& number, const Shape& reduce) {
  int64_t inside = 1;
  for (const int64_t extent : reduce) inside *= extent;
  const Expr known = ir::Min(ir::Max(number, ir::Int(0)), ir::Int(inside - 1));
  Exprs point;
  for (const int64_t extent : reduce) {
    inside /= extent;
    point.push_back(ir::FloorMod(ir::FloorDiv(known, inside), extent));
  }
  return point;
}

absl::StatusOr<Tensors> ExpressScatterElements(const OpCall& call, WorkloadBuilder& builder,
                                               const Tensors& tensors) {
  const Shape& data = call.inputs[0].type.shape;
  const Shape& given = call.inputs[1].type.shape;
  HONE_ASSIGN_OR_RETURN(const int64_t axis, ResolveAxis(call.Int("axis", 0), data.size()));
  const auto a = static_cast<size_t>(axis);
  const Exprs point = Axes(data.size());
  Expr inside = ir::ConstInt(DType::kBool, 1);
  for (size_t d = 0; d < data.size(); ++d) {
    if (d != a && given[d] < data[d]) inside = ir::And(inside, ir::Lt(point[d], ir::Int(given[d])));
  }
  Updates updates{.reduce = {given[a]}};
  updates.at = point;
  updates.at[a] = ir::Var(static_cast<int>(data.size()));
  updates.match = ir::Select(
      inside,
      ir::Binary(BinaryOp::kEq, IndexAt(builder, tensors[1], updates.at, data[a]), point[a]),
      ir::ConstInt(DType::kBool, 0));
  if (call.String("reduction", "none") != "none") return Reduced(call, builder, tensors, updates);
  const int last = LastUpdate(builder, data, updates);
  const Expr number = builder.At(last, point);
  Exprs at = point;
  at[a] = PointOf(number, updates.reduce)[0];
  const Expr found = ir::And(inside, ir::Ge(number, ir::Int(0)));
  return Tensors{builder.AddMap(
      data, ir::Select(found, builder.At(tensors[2], at), builder.At(tensors[0], point)))};
}

absl::StatusOr<Tensors> ExpressScatterNd(const OpCall& call, WorkloadBuilder& builder,
                                         const Tensors& tensors) {
  const Shape& data = call.inputs[0].type.shape;
  const Shape& given = call.inputs[1].type.shape;
  const auto depth = static_cast<size_t>(given.back());
  const bool reduces = call.String("reduction", "none") != "none";
  // A whole slice has the same updates, so one search serves it.
  const Shape spatial = reduces ? data : Shape(data.begin(), data.begin() + given.back());
  const Exprs point = Axes(data.size());
  Updates updates{.reduce = Shape(given.begin(), given.end() - 1)};
  if (updates.reduce.empty()) updates.reduce = {1};
  for (size_t q = 0; q + 1 < given.size(); ++q)
    updates.at.push_back(ir::Var(static_cast<int>(spatial.size() + q)));
  updates.match = ir::ConstInt(DType::kBool, 1);
  for (size_t d = 0; d < depth; ++d) {
    Exprs at = updates.at;
    at.push_back(ir::Int(static_cast<int64_t>(d)));
    const Expr index = IndexAt(builder, tensors[1], std::move(at), data[d]);
    updates.match = ir::And(updates.match, ir::Binary(BinaryOp::kEq, index, point[d]));
  }
  const auto behind = point.begin() + given.back();
  if (reduces) {
    updates.at.insert(updates.at.end(), behind, point.end());
    return Reduced(call, builder, tensors, updates);
  }
  const int last = LastUpdate(builder, spatial, updates);
  const Expr number = builder.At(last, Exprs(point.begin(), behind));
  Exprs at = PointOf(number, updates.reduce);
  if (given.size() == 1) at.clear();
  at.insert(at.end(), behind, point.end());
  return Tensors{builder.AddMap(
      data, ir::Select(ir::Ge(number, ir::Int(0)), builder.At(tensors[2], std::move(at)),
                       builder.At(tensors[0], point)))};
}

constexpr OpDefinition kOps[] = {
    {"TopKStages", InferTopK, ExpressTopK},
    {"ScatterElementsStages", InferScatterElements, ExpressScatterElements},
    {"ScatterNDStages", InferScatterNd, ExpressScatterNd},
};

}  // namespace

std::span<const OpDefinition> ExternStageOps() { return kOps; }

}  // namespace hone::graph::ops
