#include <functional>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// GroupNorm: x normalised over the positions and the channels of each of `groups` equal parts of
// its channels, times `scale`, plus `bias` (a value per channel each).
namespace hone::graph::ops {
namespace {

using ir::BinaryOp;
using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::UnaryOp;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

/// The shape as [n, channels, positions…] in either layout.
struct Form {
  size_t axis = 1;  ///< of the channels
  int64_t channels = 1, groups = 1, of_group = 1;
  int64_t elements = 1;  ///< of one group
};

absl::StatusOr<Form> FormOf(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  const TensorType& x = call.inputs[0].type;
  if (!ir::IsFloat(x.dtype) || x.shape.size() < 3)
    return Invalid(fmt::format("it takes floats of rank 3 or more, not {}", ToText(x)));
  Form form;
  if (call.String("layout", "nchw") == "nhwc") form.axis = x.shape.size() - 1;
  form.channels = x.shape[form.axis];
  form.groups = call.Int("groups", 0);
  if (form.groups < 1 || form.channels % form.groups != 0)
    return Invalid(
        fmt::format("{} channels do not split into {} groups", form.channels, form.groups));
  form.of_group = form.channels / form.groups;
  form.elements = form.of_group;
  for (size_t d = 1; d < x.shape.size(); ++d) {
    if (d != form.axis) form.elements *= x.shape[d];
  }
  return form;
}

absl::StatusOr<Types> InferGroupNorm(const OpCall& call) {
  HONE_ASSIGN_OR_RETURN(const Form form, FormOf(call));
  const TensorType& x = call.inputs[0].type;
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    if (!call.inputs[i].present) continue;
    if (call.inputs[i].type.shape != Shape{form.channels} || call.inputs[i].type.dtype != x.dtype) {
      return Invalid(fmt::format("{} must have {} values, not {}", i == 1 ? "scale" : "bias",
                                 form.channels, ToText(call.inputs[i].type)));
    }
  }
  return Types{x};
}

/// The sum of `value` (over axes [n, c], then taps of the positions) for each image and channel.
/// With channels last it is summed along the rows of an image first: rows can be shared out, the
/// channels of one sum may be too few for that.
int ChannelSums(WorkloadBuilder& builder, const Shape& shape, size_t axis,
                const std::function<Expr(const Exprs& point)>& value) {
  const size_t rank = shape.size();
  const auto tap = [](size_t k) { return ir::Var(static_cast<int>(k)); };
  Exprs point(rank);
  if (axis + 1 < rank) {
    for (size_t d = 0; d < rank; ++d) point[d] = tap(d);
    return builder.AddReduce({shape[0], shape[1]}, Shape(shape.begin() + 2, shape.end()),
                             Combiner::kSum, value(point));
  }
  point[0] = tap(0);
  if (rank == 3) {
    point[1] = tap(2);
    point[2] = tap(1);
    return builder.AddReduce({shape[0], shape[2]}, {shape[1]}, Combiner::kSum, value(point));
  }
  point[1] = tap(1);
  point[rank - 1] = tap(2);
  for (size_t d = 2; d + 1 < rank; ++d) point[d] = tap(d + 1);
  const int rows =
      builder.AddReduce({shape[0], shape[1], shape[rank - 1]},
                        Shape(shape.begin() + 2, shape.end() - 1), Combiner::kSum, value(point));
  return builder.AddReduce({shape[0], shape[rank - 1]}, {shape[1]}, Combiner::kSum,
                           builder.At(rows, {tap(0), tap(2), tap(1)}));
}

absl::StatusOr<Tensors> ExpressGroupNorm(const OpCall& call, WorkloadBuilder& builder,
                                         const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Form form, FormOf(call));
  const TensorType& x = call.inputs[0].type;
  const DType type = AccumulatorType(x.dtype);
  const Expr count = ir::Const(type, static_cast<double>(form.elements));
  const Shape of_channels = {x.shape[0], form.channels};
  const Expr image = ir::Var(0), channel = ir::Var(1);
  // The mean over its group, for each channel of each image, of what was summed by channel.
  const auto mean = [&](int sums) {
    if (form.of_group > 1) {
      sums = builder.AddReduce({x.shape[0], form.groups}, {form.of_group}, Combiner::kSum,
                               builder.At(sums, {image, channel * form.of_group + ir::Var(2)}));
    }
    const Expr group = form.of_group > 1 ? ir::FloorDiv(channel, form.of_group) : channel;
    return ir::Binary(BinaryOp::kDiv, builder.At(sums, {image, group}), count);
  };
  const auto read = [&](const Exprs& point) {
    return ir::Cast(type, builder.At(tensors[0], point));
  };
  const int means =
      builder.AddMap(of_channels, mean(ChannelSums(builder, x.shape, form.axis, read)));
  const auto centred = [&](const Exprs& point) {
    return read(point) - builder.At(means, {point[0], point[form.axis]});
  };
  const int squares = ChannelSums(builder, x.shape, form.axis, [&](const Exprs& point) {
    return centred(point) * centred(point);
  });
  const Expr epsilon = ir::Const(type, call.Float("epsilon", 1e-5));
  Expr factor = ir::Unary(UnaryOp::kRsqrt, mean(squares) + epsilon);
  const auto given = [&](size_t i) { return call.inputs.size() > i && call.inputs[i].present; };
  if (given(1)) factor = factor * ir::Cast(type, ReadAt(call, builder, tensors, 1, {channel}));
  const int factors = builder.AddMap(of_channels, factor);
  const Exprs point = Axes(x.shape.size());
  Expr result = centred(point) * builder.At(factors, {point[0], point[form.axis]});
  if (given(2))
    result = result + ir::Cast(type, ReadAt(call, builder, tensors, 2, {point[form.axis]}));
  return Tensors{builder.AddMap(x.shape, ir::Cast(x.dtype, result))};
}

constexpr OpDefinition kOps[] = {{"GroupNorm", InferGroupNorm, ExpressGroupNorm}};

}  // namespace

std::span<const OpDefinition> GroupNormOps() { return kOps; }

}  // namespace hone::graph::ops
