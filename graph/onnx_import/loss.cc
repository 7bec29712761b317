#include "fmt/format.h"

#include "graph/onnx_import/handler.h"

// The losses of training, which evaluation graphs carry too.
namespace hone::graph::onnx_import {
namespace {

using ir::BinaryOp;
using ir::DType;
using Shape = std::vector<int64_t>;

struct Reduced {
  std::string how;
  bool ignores = false;
  double ignored = 0;
};

Reduced ReadReduction(NodeImport& n) {
  Reduced reduced{.how = n.Choice("reduction", "mean", {"none", "sum", "mean"})};
  reduced.ignores = n.HasAttribute("ignore_index");
  reduced.ignored = static_cast<double>(n.Int("ignore_index", 0));
  return reduced;
}

ValueId SumAll(NodeImport& n, ValueId x) {
  Shape axes;
  for (size_t i = 0; i < n.RankOf(x); ++i) axes.push_back(static_cast<int64_t>(i));
  return n.Emit("Reduce", {x},
                {{"fn", std::string("sum")}, {"axes", axes}, {"keepdims", int64_t{0}}});
}

/// loss = -log_probability[n, target[n, d…], d…] · weight[target], where ignored targets weigh
/// nothing.
ValueId NegativeLogLikelihood(NodeImport& n, ValueId log_probability, ValueId target,
                              ValueId weight, const Reduced& reduced) {
  if (!n.CheckRank(log_probability, 2, 6, "the scores")) return kNoValue;
  const DType dtype = n.DTypeOf(log_probability);
  const Shape shape = n.ShapeOf(target);
  target = n.Cast(target, DType::kI64);
  ValueId ignored = kNoValue;
  if (reduced.ignores) {
    ignored = n.Binary(BinaryOp::kEq, target, reduced.ignored);
    target = n.Select(ignored, n.Scalar(DType::kI64, 0), target);
  }
  Shape column = shape;
  if (column.empty()) n.Invalid("the target must have rank 1 or more");
  if (!n.ok()) return kNoValue;
  column.insert(column.begin() + 1, 1);
  const ValueId picked = n.Emit("GatherElements", {log_probability, n.Reshape(target, column)},
                                {{"axis", int64_t{1}}});
  ValueId loss = n.Unary(ir::UnaryOp::kNeg, n.Reshape(picked, shape));
  ValueId weights = kNoValue;
  if (weight != kNoValue) weights = n.Emit("Gather", {weight, target}, {{"axis", int64_t{0}}});
  if (ignored != kNoValue) {
    weights =
        n.Select(ignored, n.Scalar(dtype, 0), weights == kNoValue ? n.Scalar(dtype, 1) : weights);
  }
  if (weights != kNoValue) loss = n.Mul(loss, weights);
  if (reduced.how == "none") return loss;
  const ValueId sum = SumAll(n, loss);
  if (reduced.how == "sum") return sum;
  if (weights != kNoValue) return n.Div(sum, SumAll(n, weights));
  return n.Binary(BinaryOp::kDiv, sum, static_cast<double>(n.TypeOf(loss).NumElements()));
}

void NegativeLogLikelihoodLoss(NodeImport& n) {
  const ValueId x = n.Input(0);
  const Reduced reduced = ReadReduction(n);
  n.SetOutput(0, NegativeLogLikelihood(n, x, n.Input(1), n.OptionalInput(2), reduced));
}

void SoftmaxCrossEntropyLoss(NodeImport& n) {
  const ValueId x = n.Input(0);
  const Reduced reduced = ReadReduction(n);
  const ValueId log_probability =
      n.Emit("Softmax", {x}, {{"axis", int64_t{1}}, {"log", int64_t{1}}});
  n.SetOutput(0,
              NegativeLogLikelihood(n, log_probability, n.Input(1), n.OptionalInput(2), reduced));
  if (n.Wants(1)) n.SetOutput(1, log_probability);
}

constexpr Handler kHandlers[] = {
    {"NegativeLogLikelihoodLoss", 12, 2, 3, 1, NegativeLogLikelihoodLoss},
    {"SoftmaxCrossEntropyLoss", 12, 2, 3, 2, SoftmaxCrossEntropyLoss},
};

}  // namespace

std::span<const Handler> LossHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
