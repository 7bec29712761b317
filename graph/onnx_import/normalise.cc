#include <algorithm>
#include <numeric>

#include "fmt/format.h"

#include "graph/onnx_import/handler.h"

// Softmax and the normalisations.
namespace hone::graph::onnx_import {
namespace {

using ir::BinaryOp;
using Shape = std::vector<int64_t>;

void SoftmaxOver(NodeImport& n, ValueId x, int64_t axis, int64_t log) {
  n.SetOutput(0, n.Emit("Softmax", {x}, {{"axis", axis}, {"log", log}}));
}

template <int64_t kLog>
void Softmax(NodeImport& n) {
  const ValueId x = n.Input(0);
  SoftmaxOver(n, x, n.Axis(n.Int("axis", -1), n.RankOf(x)), kLog);
}

/// Before opset 13 the axes from `axis` on are one.
template <int64_t kLog>
void FlattenedSoftmax(NodeImport& n) {
  const ValueId x = n.Input(0);
  const size_t rank = n.RankOf(x);
  const auto axis = static_cast<size_t>(n.Axis(n.Int("axis", 1), rank));
  if (!n.ok()) return;
  if (axis + 1 == rank) return SoftmaxOver(n, x, static_cast<int64_t>(axis), kLog);
  const Shape shape = n.ShapeOf(x);
  const auto split = shape.begin() + static_cast<ptrdiff_t>(axis);
  const int64_t rows = TensorType{.shape = Shape(shape.begin(), split)}.NumElements();
  const int64_t columns = TensorType{.shape = Shape(split, shape.end())}.NumElements();
  const ValueId flat = n.Reshape(x, {rows, columns});
  const ValueId y = n.Emit("Softmax", {flat}, {{"axis", int64_t{1}}, {"log", kLog}});
  n.SetOutput(0, n.Reshape(y, shape));
}

/// A value per channel, so that it broadcasts over [n, c, spatial…].
ValueId PerChannel(NodeImport& n, ValueId v, size_t rank) {
  if (!n.CheckRank(v, 1, 1, "scale and bias")) return kNoValue;
  Shape shape(std::max<size_t>(rank, 2) - 1, 1);
  shape[0] = n.ShapeOf(v)[0];
  return n.Reshape(v, std::move(shape));
}

ValueId Mean(NodeImport& n, ValueId v, const Shape& axes, int64_t keepdims) {
  return n.Emit("Reduce", {v},
                {{"fn", std::string("mean")}, {"axes", axes}, {"keepdims", keepdims}});
}

/// With the batch's own statistics; gives the running ones too. Before opset 14 also the batch's
/// own, as ONNX Runtime saves them: the variance as the reciprocal of the deviation.
void TrainingBatchNormalization(NodeImport& n, double epsilon, double momentum) {
  const ValueId x = n.Input(0);
  const size_t rank = n.RankOf(x);
  if (!n.CheckRank(x, 2, 6, "the input")) return;
  Shape axes(rank - 1);
  std::iota(axes.begin(), axes.end(), 1);
  axes[0] = 0;
  const ValueId scale = PerChannel(n, n.Input(1), rank);
  const ValueId bias = PerChannel(n, n.Input(2), rank);
  n.SetOutput(0, n.Emit("Normalise", {x, scale, bias},
                        {{"axes", axes}, {"epsilon", epsilon}, {"kind", std::string("batch")}}));
  const ValueId centred = n.Sub(x, Mean(n, x, axes, 1));
  const auto running = [&](size_t input, ValueId own) {
    return n.Add(n.Binary(BinaryOp::kMul, n.Input(input), momentum),
                 n.Binary(BinaryOp::kMul, own, 1 - momentum));
  };
  const ValueId mean = Mean(n, x, axes, 0);
  const ValueId variance = Mean(n, n.Mul(centred, centred), axes, 0);
  if (n.Wants(1)) n.SetOutput(1, running(3, mean));
  if (n.Wants(2)) n.SetOutput(2, running(4, variance));
  if (n.Wants(3)) n.SetOutput(3, mean);
  if (n.Wants(4)) {
    const ValueId deviation =
        n.Unary(ir::UnaryOp::kSqrt, n.Binary(BinaryOp::kAdd, variance, epsilon));
    n.SetOutput(4, n.Binary(BinaryOp::kDiv, 1.0, deviation));
  }
}

/// Whether statistics come from the batch: by attribute since opset 14 (and before opset 7, where
/// training is refused), else in whoever gives any of them.
bool TrainsBatchNormalization(NodeImport& n) {
  if (n.opset() >= 14) return n.Int("training_mode", 0) != 0;
  if (n.opset() < 7) return false;
  for (size_t i = 1; i < n.num_outputs(); ++i) {
    if (n.Wants(i)) return true;
  }
  return false;
}

void BatchNormalization(NodeImport& n) {
  const double momentum = n.Float("momentum", 0.9F);
  const double epsilon = n.Float("epsilon", 1e-5F);
  const bool training = TrainsBatchNormalization(n);
  if (n.opset() < 9 && n.Int("spatial", 1) != 1)
    return n.Unsupported("statistics per position (spatial = 0) are not supported");
  if (n.opset() < 7) {
    if (n.Int("is_test", 0) == 0)
      return n.Unsupported(
          "training mode (is_test is not 1) is not supported; export the model for inference");
  }
  if (training) return TrainingBatchNormalization(n, epsilon, momentum);
  for (size_t i = 1; i < n.num_outputs(); ++i) {
    if (n.Wants(i)) return n.Invalid(fmt::format("output {} exists in training mode only", i));
  }
  const ValueId x = n.Input(0);
  n.SetOutput(0, n.Emit("BatchNorm", {x, n.Input(1), n.Input(2), n.Input(3), n.Input(4)},
                        {{"epsilon", epsilon}, {"layout", std::string("nchw")}}));
}

Shape AxesFrom(int64_t first, size_t rank) {
  Shape axes(rank - static_cast<size_t>(first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

void LayerNormalization(NodeImport& n) {
  const ValueId x = n.Input(0);
  const size_t rank = n.RankOf(x);
  const int64_t axis = n.Axis(n.Int("axis", -1), rank);
  const double epsilon = n.Float("epsilon", 1e-5F);
  n.Int("stash_type", 1);  // statistics are held in f32 at least
  if (!n.ok()) return;
  const Shape axes = AxesFrom(axis, rank);
  std::vector<ValueId> inputs = {x, n.Input(1)};
  if (n.Has(2)) inputs.push_back(n.Input(2));
  n.SetOutput(0, n.Emit("Normalise", inputs,
                        {{"axes", axes}, {"epsilon", epsilon}, {"kind", std::string("layer")}}));
  if (!n.Wants(1) && !n.Wants(2)) return;
  // The statistics, for whoever wants them.
  const ValueId mean = Mean(n, x, axes, 1);
  const ValueId centred = n.Sub(x, mean);
  const ValueId variance = Mean(n, n.Mul(centred, centred), axes, 1);
  const ValueId deviation =
      n.Unary(ir::UnaryOp::kSqrt, n.Binary(BinaryOp::kAdd, variance, epsilon));
  if (n.Wants(1)) n.SetOutput(1, n.Cast(mean, ir::DType::kF32));
  if (n.Wants(2)) n.SetOutput(2, n.Cast(n.Binary(BinaryOp::kDiv, 1.0, deviation), ir::DType::kF32));
}

void RmsNormalization(NodeImport& n) {
  const ValueId x = n.Input(0);
  const size_t rank = n.RankOf(x);
  const int64_t axis = n.Axis(n.Int("axis", -1), rank);
  const double epsilon = n.Float("epsilon", 1e-5F);
  n.Int("stash_type", 1);
  if (!n.ok()) return;
  n.SetOutput(
      0,
      n.Emit("Normalise", {x, n.Input(1)},
             {{"axes", AxesFrom(axis, rank)}, {"epsilon", epsilon}, {"kind", std::string("rms")}}));
}

void InstanceNormalization(NodeImport& n) {
  const ValueId x = n.Input(0);
  if (!n.CheckRank(x, 3, 6, "the input")) return;
  const size_t rank = n.RankOf(x);
  const ValueId scale = PerChannel(n, n.Input(1), rank);
  const ValueId bias = PerChannel(n, n.Input(2), rank);
  n.SetOutput(0, n.Emit("Normalise", {x, scale, bias},
                        {{"axes", AxesFrom(2, rank)},
                         {"epsilon", n.Float("epsilon", 1e-5F)},
                         {"kind", std::string("instance")}}));
}

void GroupNormalization(NodeImport& n) {
  const ValueId x = n.Input(0);
  const int64_t groups = n.Int("num_groups", 0);
  const double epsilon = n.Float("epsilon", 1e-5F);
  n.Int("stash_type", 1);
  if (!n.CheckRank(x, 3, 6, "the input") || !n.CheckRank(n.Input(1), 1, 1, "scale") ||
      !n.CheckRank(n.Input(2), 1, 1, "bias"))
    return;
  const int64_t channels = n.ShapeOf(x)[1];
  if (groups < 1 || channels % groups != 0)
    return n.Invalid(fmt::format("{} channels do not split into {} groups", channels, groups));
  // Scale and bias are per group before opset 21, per channel since.
  const auto per_channel = [&](ValueId v) {
    const int64_t count = n.ShapeOf(v)[0];
    if (count != (n.opset() < 21 ? groups : channels))
      n.Invalid(fmt::format("scale or bias has {} values for {} groups of {} channels", count,
                            groups, channels));
    if (n.opset() >= 21) return v;
    const ValueId spread = n.Expand(n.Reshape(v, {groups, 1}), {groups, channels / groups});
    return n.Reshape(spread, {channels});
  };
  n.SetOutput(0,
              n.Emit("GroupNorm", {x, per_channel(n.Input(1)), per_channel(n.Input(2))},
                     {{"groups", groups}, {"epsilon", epsilon}, {"layout", std::string("nchw")}}));
}

void MeanVarianceNormalization(NodeImport& n) {
  const ValueId x = n.Input(0);
  const Shape axes = n.Axes(n.Ints("axes", {0, 2, 3}), n.RankOf(x));
  n.SetOutput(0, n.Emit("Normalise", {x},
                        {{"axes", axes}, {"epsilon", 1e-9}, {"kind", std::string("layer")}}));
}

void LpNormalization(NodeImport& n) {
  const ValueId x = n.Input(0);
  const int64_t axis = n.Axis(n.Int("axis", -1), n.RankOf(x));
  const int64_t p = n.Int("p", 2);
  if (p != 1 && p != 2) return n.Invalid(fmt::format("p is {}, not 1 or 2", p));
  const ValueId norm = n.Emit(
      "Reduce", {x},
      {{"fn", std::string(p == 1 ? "l1" : "l2")}, {"axes", Shape{axis}}, {"keepdims", int64_t{1}}});
  // A row of zeros stays zero.
  const ValueId divisor =
      n.Select(n.Binary(BinaryOp::kEq, norm, 0.0), n.Scalar(n.DTypeOf(x), 1), norm);
  n.SetOutput(0, n.Div(x, divisor));
}

void Lrn(NodeImport& n) {
  const ValueId x = n.Input(0);
  n.SetOutput(0, n.Emit("LocalResponseNorm", {x},
                        {{"size", n.Int("size", 0)},
                         {"alpha", n.Float("alpha", 1e-4F)},
                         {"beta", n.Float("beta", 0.75)},
                         {"bias", n.Float("bias", 1)}}));
}

constexpr Handler kHandlers[] = {
    {"Softmax", 1, 1, 1, 1, FlattenedSoftmax<0>},
    {"Softmax", 13, 1, 1, 1, Softmax<0>},
    {"LogSoftmax", 1, 1, 1, 1, FlattenedSoftmax<1>},
    {"LogSoftmax", 13, 1, 1, 1, Softmax<1>},
    {"BatchNormalization", 1, 5, 5, 5, BatchNormalization},
    {"LayerNormalization", 17, 2, 3, 3, LayerNormalization},
    {"RMSNormalization", 23, 2, 2, 1, RmsNormalization},
    {"InstanceNormalization", 6, 3, 3, 1, InstanceNormalization},
    {"GroupNormalization", 18, 3, 3, 1, GroupNormalization},
    {"MeanVarianceNormalization", 9, 1, 1, 1, MeanVarianceNormalization},
    {"LpNormalization", 1, 1, 1, 1, LpNormalization},
    {"LRN", 1, 1, 1, 1, Lrn},
};

}  // namespace

std::span<const Handler> NormaliseHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
