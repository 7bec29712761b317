#include <algorithm>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// Transpose, Reshape, Expand, Tile: the same elements elsewhere.
namespace hone::graph::ops {
namespace {

using ir::Expr;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

absl::StatusOr<Types> InferTranspose(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  const TensorType& x = call.inputs[0].type;
  const Shape perm = call.Ints("perm");
  std::vector<bool> seen(x.shape.size());
  Shape shape;
  for (int64_t axis : perm) {
    if (axis < 0 || axis >= static_cast<int64_t>(seen.size()) || seen[static_cast<size_t>(axis)])
      break;
    seen[static_cast<size_t>(axis)] = true;
    shape.push_back(x.shape[static_cast<size_t>(axis)]);
  }
  if (shape.size() != x.shape.size() || perm.size() != shape.size()) {
    return Invalid(fmt::format("perm [{}] is no permutation of {} axes", fmt::join(perm, ","),
                               x.shape.size()));
  }
  return Types{{x.dtype, std::move(shape)}};
}

absl::StatusOr<Tensors> ExpressTranspose(const OpCall& call, WorkloadBuilder& builder,
                                         const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Types types, InferTranspose(call));
  const Shape perm = call.Ints("perm");
  Exprs indices(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    indices[static_cast<size_t>(perm[i])] = ir::Var(static_cast<int>(i));
  return Tensors{
      builder.AddMap(types[0].shape, ReadAt(call, builder, tensors, 0, std::move(indices)))};
}

absl::StatusOr<Types> InferReshape(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  const TensorType& x = call.inputs[0].type;
  TensorType result{x.dtype, call.Ints("shape")};
  for (int64_t extent : result.shape) {
    if (extent < 0)
      return Invalid(fmt::format("negative extent in shape [{}]", fmt::join(result.shape, ",")));
  }
  if (result.NumElements() != x.NumElements()) {
    return Invalid(fmt::format("{} elements do not fit shape [{}]", x.NumElements(),
                               fmt::join(result.shape, ",")));
  }
  return Types{std::move(result)};
}

/// Indices into `from` of the element at `point` of `to`, both row-major. Runs of axes whose
/// products agree are handled by themselves, so that an axis that stays keeps its plain index.
Exprs ReshapedIndices(const Shape& from, const Shape& to, const Exprs& point) {
  Exprs indices;
  size_t i = 0;
  size_t j = 0;
  while (i < from.size()) {
    if (from[i] == 1) {
      indices.push_back(ir::Int(0));
      ++i;
      continue;
    }
    const size_t first = i;
    int64_t in = from[i++];
    int64_t out = 1;
    Expr flat = ir::Int(0);
    while (in != out) {
      if (out < in) {
        flat = flat * to[j] + (to[j] == 1 ? ir::Int(0) : point[j]);
        out *= to[j++];
      } else {
        in *= from[i++];
      }
    }
    int64_t stride = in;
    for (size_t k = first; k < i; ++k) {
      stride /= from[k];
      const Expr quotient = ir::FloorDiv(flat, stride);
      indices.push_back(k == first ? quotient : ir::FloorMod(quotient, from[k]));
    }
  }
  return indices;
}

absl::StatusOr<Tensors> ExpressReshape(const OpCall& call, WorkloadBuilder& builder,
                                       const Tensors& tensors) {
  const Shape shape = call.Ints("shape");
  Exprs indices = ReshapedIndices(call.inputs[0].type.shape, shape, Axes(shape.size()));
  return Tensors{builder.AddMap(shape, ReadAt(call, builder, tensors, 0, std::move(indices)))};
}

absl::StatusOr<Types> InferExpand(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  const TensorType& x = call.inputs[0].type;
  const Shape shape = call.Ints("shape");
  HONE_ASSIGN_OR_RETURN(const Shape broadcast, BroadcastShapes(x.shape, shape));
  if (broadcast != shape) {
    return Invalid(fmt::format("shape [{}] does not expand to [{}]", fmt::join(x.shape, ","),
                               fmt::join(shape, ",")));
  }
  return Types{{x.dtype, shape}};
}

absl::StatusOr<Tensors> ExpressExpand(const OpCall& call, WorkloadBuilder& builder,
                                      const Tensors& tensors) {
  const Shape shape = call.Ints("shape");
  return Tensors{
      builder.AddMap(shape, ReadBroadcast(call, builder, tensors, 0, Axes(shape.size())))};
}

absl::StatusOr<Types> InferTile(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  TensorType result = call.inputs[0].type;
  const Shape repeats = call.Ints("repeats");
  if (repeats.size() != result.shape.size()) {
    return Invalid(fmt::format("{} repeats are given for an input of rank {}", repeats.size(),
                               result.shape.size()));
  }
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0 || __builtin_mul_overflow(result.shape[i], repeats[i], &result.shape[i])) {
      return Invalid(
          fmt::format("repeats [{}] are negative or too large", fmt::join(repeats, ",")));
    }
  }
  return Types{std::move(result)};
}

absl::StatusOr<Tensors> ExpressTile(const OpCall& call, WorkloadBuilder& builder,
                                    const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Types types, InferTile(call));
  const Shape& from = call.inputs[0].type.shape;
  Exprs indices = Axes(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    if (types[0].shape[i] != from[i]) indices[i] = ir::FloorMod(indices[i], from[i]);
  }
  return Tensors{
      builder.AddMap(types[0].shape, ReadAt(call, builder, tensors, 0, std::move(indices)))};
}

constexpr OpDefinition kOps[] = {
    {"Transpose", InferTranspose, ExpressTranspose},
    {"Reshape", InferReshape, ExpressReshape},
    {"Expand", InferExpand, ExpressExpand},
    {"Tile", InferTile, ExpressTile},
};

}  // namespace

std::span<const OpDefinition> ShapeOps() { return kOps; }

}  // namespace hone::graph::ops
