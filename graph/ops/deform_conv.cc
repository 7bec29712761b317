#include <algorithm>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// DeformConv (inputs x, w, offset, bias?, mask?) and Col2Im: windows that are not plain ones.
namespace hone::graph::ops {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using ir::UnaryOp;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

bool Has(const OpCall& call, size_t i) { return i < call.inputs.size() && call.inputs[i].present; }

struct Deformed {
  Shape output;  ///< n, oc, oh, ow
  int64_t kernel[2];
  int64_t stride[2];
  int64_t dilation[2];
  int64_t pad[2];
  int64_t group = 1;
  int64_t offset_group = 1;
};

absl::StatusOr<Deformed> DeformedOf(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 3));
  const Shape& x = call.inputs[0].type.shape;
  const Shape& w = call.inputs[1].type.shape;
  const Shape& offset = call.inputs[2].type.shape;
  const Shape strides = call.Ints("strides");
  const Shape dilations = call.Ints("dilations");
  const Shape pads = call.Ints("pads");
  if (x.size() != 4 || w.size() != 4 || offset.size() != 4 || strides.size() != 2 ||
      dilations.size() != 2 || pads.size() != 4) {
    return Invalid("only two spatial axes are supported");
  }
  Deformed d{.output = {x[0], w[0]},
             .group = call.Int("group", 1),
             .offset_group = call.Int("offset_group", 1)};
  int64_t channels = 0;
  if (d.group < 1 || d.offset_group < 1 || __builtin_mul_overflow(w[1], d.group, &channels) ||
      x[1] != channels || w[0] % d.group != 0 || x[1] % d.offset_group != 0) {
    return Invalid(fmt::format(
        "group {} and offset_group {} do not fit the input {} and the weights {}", d.group,
        d.offset_group, ToText(call.inputs[0].type), ToText(call.inputs[1].type)));
  }
  for (size_t i = 0; i < 2; ++i) {
    d.kernel[i] = w[2 + i];
    d.stride[i] = strides[i];
    d.dilation[i] = dilations[i];
    d.pad[i] = pads[i];
    if (strides[i] < 1 || dilations[i] < 1)
      return Invalid("strides and dilations must be at least 1");
    const __int128 room = static_cast<__int128>(x[2 + i]) + pads[i] + pads[2 + i] -
                          static_cast<__int128>(w[2 + i] - 1) * dilations[i] - 1;
    if (room < 0) return Invalid("the window does not fit the padded input");
    d.output.push_back(static_cast<int64_t>(room / strides[i]) + 1);
  }
  int64_t taps = 0;
  constexpr int64_t kMaxTaps = int64_t{1} << 40;
  if (__builtin_mul_overflow(d.offset_group, w[2] * w[3], &taps) || taps > kMaxTaps)
    return Invalid(fmt::format("{} offset groups of {} x {} kernel elements are too many",
                               d.offset_group, w[2], w[3]));
  const Shape wanted = {x[0], 2 * taps, d.output[2], d.output[3]};
  if (offset != wanted)
    return Invalid(fmt::format("offsets must be [{}], not {}", fmt::join(wanted, ","),
                               ToText(call.inputs[2].type)));
  if (Has(call, 3) && call.inputs[3].type.shape != Shape{w[0]})
    return Invalid(fmt::format("the bias must be [{}], not {}", w[0], ToText(call.inputs[3].type)));
  if (Has(call, 4) && call.inputs[4].type.shape != Shape{x[0], taps, d.output[2], d.output[3]})
    return Invalid("the mask has the wrong shape");
  return d;
}

absl::StatusOr<Types> InferDeformConv(const OpCall& call) {
  HONE_ASSIGN_OR_RETURN(Deformed d, DeformedOf(call));
  const DType dtype = call.inputs[0].type.dtype;
  if (!ir::IsFloat(dtype)) return Invalid(fmt::format("it takes floats, not {}", ToString(dtype)));
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    if (Has(call, i) && call.inputs[i].type.dtype != dtype)
      return Invalid("its inputs have different types");
  }
  return Types{{dtype, std::move(d.output)}};
}

/// Pixels read between their neighbours: [n, ic, kh, kw, oh, ow].
int AddSamples(const OpCall& call, WorkloadBuilder& builder, const Tensors& tensors,
               const Deformed& d, DType type) {
  const Shape& x = call.inputs[0].type.shape;
  const Expr n = ir::Var(0), c = ir::Var(1);
  const Expr tap[] = {ir::Var(2), ir::Var(3)};
  const Expr out[] = {ir::Var(4), ir::Var(5)};
  const Expr flat_tap =
      (ir::FloorDiv(c, x[1] / d.offset_group) * d.kernel[0] + tap[0]) * d.kernel[1] + tap[1];
  Expr low[2];
  Expr fraction[2];
  for (size_t i = 0; i < 2; ++i) {
    const Expr moved =
        ir::Cast(type, ReadAt(call, builder, tensors, 2,
                              {n, flat_tap * 2 + static_cast<int64_t>(i), out[0], out[1]}));
    const Expr place =
        ir::Cast(type, out[i] * d.stride[i] + tap[i] * d.dilation[i] - d.pad[i]) + moved;
    const Expr floor = ir::Unary(UnaryOp::kFloor, place);
    low[i] = ir::Cast(DType::kI64, floor);
    fraction[i] = place - floor;
  }
  const Expr one = ir::Const(type, 1);
  const auto limited = [](const Expr& e, int64_t extent) {
    return ir::Max(ir::Min(e, ir::Int(extent - 1)), ir::Int(0));
  };
  Expr sum;
  for (int64_t corner = 0; corner < 4; ++corner) {
    const Expr row = low[0] + corner / 2;
    const Expr column = low[1] + corner % 2;
    const Expr weight = (corner / 2 != 0 ? fraction[0] : one - fraction[0]) *
                        (corner % 2 != 0 ? fraction[1] : one - fraction[1]);
    const Expr pixel =
        ir::Cast(type, builder.At(tensors[0], {n, c, limited(row, x[2]), limited(column, x[3])}));
    const Expr inside = ir::And(ir::InRange(row, x[2]), ir::InRange(column, x[3]));
    const Expr term = ir::Select(inside, pixel, ir::Const(type, 0)) * weight;
    sum = sum == nullptr ? term : sum + term;
  }
  if (Has(call, 4))
    sum = sum * ir::Cast(type, ReadAt(call, builder, tensors, 4, {n, flat_tap, out[0], out[1]}));
  return builder.AddMap({x[0], x[1], d.kernel[0], d.kernel[1], d.output[2], d.output[3]}, sum);
}

absl::StatusOr<Tensors> ExpressDeformConv(const OpCall& call, WorkloadBuilder& builder,
                                          const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Deformed d, DeformedOf(call));
  const DType dtype = call.inputs[0].type.dtype;
  const DType type = AccumulatorType(dtype);
  const int samples = AddSamples(call, builder, tensors, d, type);
  const int64_t group_in = call.inputs[1].type.shape[1];
  const Expr n = ir::Var(0), oc = ir::Var(1), oh = ir::Var(2), ow = ir::Var(3);
  const Expr ic = ir::Var(4), kh = ir::Var(5), kw = ir::Var(6);
  const Expr channel = d.group == 1 ? ic : ir::FloorDiv(oc, d.output[1] / d.group) * group_in + ic;
  int y = builder.AddReduce(d.output, {group_in, d.kernel[0], d.kernel[1]}, ir::Combiner::kSum,
                            builder.At(samples, {n, channel, kh, kw, oh, ow}) *
                                ir::Cast(type, builder.At(tensors[1], {oc, ic, kh, kw})));
  const Exprs point = Axes(4);
  Expr result = builder.At(y, point);
  if (Has(call, 3)) result = result + ir::Cast(type, ReadAt(call, builder, tensors, 3, {oc}));
  return Tensors{builder.AddMap(d.output, ir::Cast(dtype, result))};
}

struct Columns {
  Shape output;  ///< n, c, image…
  Shape block, strides, dilations, pads;
  Shape counts;  ///< window positions per axis
};

absl::StatusOr<Columns> ColumnsOf(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  const Shape& x = call.inputs[0].type.shape;
  const Shape image = call.Ints("image");
  Columns columns{.block = call.Ints("block"),
                  .strides = call.Ints("strides"),
                  .dilations = call.Ints("dilations"),
                  .pads = call.Ints("pads")};
  const size_t count = image.size();
  if (x.size() != 3 || count < 1 || count > 3 || columns.block.size() != count ||
      columns.strides.size() != count || columns.dilations.size() != count ||
      columns.pads.size() != 2 * count) {
    return Invalid(
        fmt::format("image_shape [{}], block_shape [{}], strides, dilations and pads must be for 1 "
                    "to 3 spatial axes, and the input of rank 3",
                    fmt::join(image, ","), fmt::join(columns.block, ",")));
  }
  int64_t taps = 1;
  int64_t positions = 1;
  constexpr int64_t kMax = int64_t{1} << 31;
  for (size_t i = 0; i < count; ++i) {
    const bool sane =
        image[i] >= 1 && image[i] < kMax && columns.block[i] >= 1 && columns.block[i] < kMax &&
        columns.strides[i] >= 1 && columns.strides[i] < kMax && columns.dilations[i] >= 1 &&
        columns.dilations[i] < kMax && columns.pads[i] >= 0 && columns.pads[i] < kMax &&
        columns.pads[count + i] >= 0 && columns.pads[count + i] < kMax;
    if (!sane) return Invalid("an extent, stride, dilation or padding out of range");
    const int64_t room = image[i] + columns.pads[i] + columns.pads[count + i] -
                         columns.dilations[i] * (columns.block[i] - 1) - 1;
    if (room < 0) return Invalid("a block does not fit the padded image");
    columns.counts.push_back(room / columns.strides[i] + 1);
    if (__builtin_mul_overflow(taps, columns.block[i], &taps) ||
        __builtin_mul_overflow(positions, columns.counts.back(), &positions)) {
      return Invalid("the blocks are too many");
    }
  }
  if (x[1] % taps != 0 || x[2] != positions) {
    return Invalid(fmt::format("the input {} does not hold blocks of {} elements at {} positions",
                               ToText(call.inputs[0].type), taps, positions));
  }
  columns.output = {x[0], x[1] / taps};
  columns.output.insert(columns.output.end(), image.begin(), image.end());
  return columns;
}

absl::StatusOr<Types> InferCol2Im(const OpCall& call) {
  HONE_ASSIGN_OR_RETURN(Columns columns, ColumnsOf(call));
  const DType dtype = call.inputs[0].type.dtype;
  if (ir::IsBool(dtype)) return Invalid("bool cannot be summed");
  return Types{{dtype, std::move(columns.output)}};
}

/// Every pixel sums the blocks that cover it: tap k of position (p + pad - dilation·k) / stride,
/// where that is one.
absl::StatusOr<Tensors> ExpressCol2Im(const OpCall& call, WorkloadBuilder& builder,
                                      const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Columns columns, ColumnsOf(call));
  const TensorType& x = call.inputs[0].type;
  const DType type = AccumulatorType(x.dtype);
  const int rank = static_cast<int>(columns.output.size());
  Expr row = ir::Var(1);
  Expr position = ir::Int(0);
  Expr covered;
  for (size_t i = 0; i < columns.block.size(); ++i) {
    const Expr k = ir::Var(rank + static_cast<int>(i));
    const Expr reach =
        ir::Var(2 + static_cast<int>(i)) + columns.pads[i] - k * columns.dilations[i];
    const Expr at = ir::FloorDiv(reach, columns.strides[i]);
    const Expr whole =
        ir::Binary(BinaryOp::kEq, ir::FloorMod(reach, columns.strides[i]), ir::Int(0));
    const Expr own = ir::And(ir::InRange(at, columns.counts[i]), whole);
    covered = covered == nullptr ? own : ir::And(covered, own);
    position = position * columns.counts[i] +
               ir::Max(ir::Min(at, ir::Int(columns.counts[i] - 1)), ir::Int(0));
    row = row * columns.block[i] + k;
  }
  const Expr term =
      ir::Select(covered, ir::Cast(type, builder.At(tensors[0], {ir::Var(0), row, position})),
                 ir::Const(type, 0));
  const int y = builder.AddReduce(columns.output, columns.block, ir::Combiner::kSum, term);
  if (type == x.dtype) return Tensors{y};
  return Tensors{builder.AddMap(columns.output,
                                ir::Cast(x.dtype, builder.At(y, Axes(columns.output.size()))))};
}

constexpr OpDefinition kOps[] = {
    {"DeformConv", InferDeformConv, ExpressDeformConv},
    {"Col2Im", InferCol2Im, ExpressCol2Im},
};

}  // namespace

std::span<const OpDefinition> DeformConvOps() { return kOps; }

}  // namespace hone::graph::ops
