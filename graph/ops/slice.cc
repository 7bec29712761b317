#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// Slice and Pad.
namespace hone::graph::ops {
namespace {

using ir::Expr;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

absl::StatusOr<Types> InferSlice(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  const TensorType& x = call.inputs[0].type;
  const Shape starts = call.Ints("starts");
  const Shape steps = call.Ints("steps");
  const Shape sizes = call.Ints("sizes");
  const size_t rank = x.shape.size();
  if (starts.size() != rank || steps.size() != rank || sizes.size() != rank) {
    return Invalid(fmt::format("starts, steps and sizes must have {} values each", rank));
  }
  for (size_t i = 0; i < rank; ++i) {
    const __int128 last = starts[i] + static_cast<__int128>(sizes[i] - 1) * steps[i];
    if (sizes[i] < 0 || (sizes[i] > 0 && (starts[i] < 0 || starts[i] >= x.shape[i] || last < 0 ||
                                          last >= x.shape[i]))) {
      return Invalid(fmt::format("slice start={} step={} size={} goes beyond axis {} of extent {}",
                                 starts[i], steps[i], sizes[i], i, x.shape[i]));
    }
  }
  return Types{{x.dtype, sizes}};
}

absl::StatusOr<Tensors> ExpressSlice(const OpCall& call, WorkloadBuilder& builder,
                                     const Tensors& tensors) {
  const Shape starts = call.Ints("starts");
  const Shape steps = call.Ints("steps");
  const Shape sizes = call.Ints("sizes");
  Exprs indices = Axes(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) indices[i] = indices[i] * steps[i] + starts[i];
  return Tensors{builder.AddMap(sizes, ReadAt(call, builder, tensors, 0, std::move(indices)))};
}

absl::StatusOr<Types> InferPad(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  TensorType result = call.inputs[0].type;
  const Shape begin = call.Ints("begin");
  const Shape end = call.Ints("end");
  const std::string mode = call.String("mode", "constant");
  if (begin.size() != result.shape.size() || end.size() != result.shape.size()) {
    return Invalid(fmt::format("{} pads are given for an input of rank {}",
                               begin.size() + end.size(), result.shape.size()));
  }
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    return Invalid(fmt::format("unknown mode '{}'", mode));
  }
  for (size_t i = 0; i < begin.size(); ++i) {
    const int64_t extent = result.shape[i];
    int64_t& padded = result.shape[i];
    if (__builtin_add_overflow(padded, begin[i], &padded) ||
        __builtin_add_overflow(padded, end[i], &padded)) {
      return Invalid(fmt::format("pads {} and {} overflow", begin[i], end[i]));
    }
    if (padded < 0 || (mode != "constant" && extent == 0 && padded > 0)) {
      return Invalid(fmt::format("pads {} and {} do not fit extent {}", begin[i], end[i], extent));
    }
  }
  if (call.inputs.size() > 1 && call.inputs[1].present &&
      (call.inputs[1].type.dtype != result.dtype || call.inputs[1].type.NumElements() != 1)) {
    return Invalid("the padding value must be one element of the input's type, not " +
                   ToText(call.inputs[1].type));
  }
  return Types{std::move(result)};
}

/// Where position `i` (counted from the input's first element) is read, for the modes other than
/// constant.
Expr ExtendedIndex(const std::string& mode, const Expr& i, int64_t extent) {
  if (extent == 1) return ir::Int(0);
  if (mode == "edge") return ir::Min(ir::Max(i, ir::Int(0)), ir::Int(extent - 1));
  if (mode == "wrap") return ir::FloorMod(i, extent);
  // A mirror of period 2(n-1); the last clamp never acts, it only shows that the index is inside.
  const int64_t period = 2 * (extent - 1);
  const Expr folded = ir::FloorMod(i, period);
  return ir::Min(ir::Min(folded, ir::Int(period) - folded), ir::Int(extent - 1));
}

absl::StatusOr<Tensors> ExpressPad(const OpCall& call, WorkloadBuilder& builder,
                                   const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Types types, InferPad(call));
  const TensorType& x = call.inputs[0].type;
  const Shape begin = call.Ints("begin");
  const Shape end = call.Ints("end");
  const std::string mode = call.String("mode", "constant");
  Exprs indices = Axes(begin.size());
  Expr inside;
  for (size_t i = 0; i < begin.size(); ++i) {
    if (begin[i] == 0 && end[i] == 0) continue;
    indices[i] = indices[i] - begin[i];
    if (begin[i] <= 0 && end[i] <= 0) continue;
    if (mode != "constant") {
      indices[i] = ExtendedIndex(mode, indices[i], x.shape[i]);
    } else {
      const Expr in_range = ir::InRange(indices[i], x.shape[i]);
      inside = inside == nullptr ? in_range : ir::And(inside, in_range);
    }
  }
  Expr body = ReadAt(call, builder, tensors, 0, std::move(indices));
  if (inside != nullptr) {
    Expr fill = ir::Const(x.dtype, 0);
    if (call.inputs.size() > 1 && call.inputs[1].present) {
      fill = ReadAt(call, builder, tensors, 1, Exprs(call.inputs[1].type.shape.size(), ir::Int(0)));
    }
    body = ir::Select(inside, std::move(body), std::move(fill));
  }
  return Tensors{builder.AddMap(types[0].shape, std::move(body))};
}

constexpr OpDefinition kOps[] = {
    {"Slice", InferSlice, ExpressSlice},
    {"Pad", InferPad, ExpressPad},
};

}  // namespace

std::span<const OpDefinition> SliceOps() { return kOps; }

}  // namespace hone::graph::ops
