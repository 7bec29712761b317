#include <cmath>
#include <cstring>

#include "fmt/format.h"

#include "graph/onnx_import/handler.h"

// Constants and what follows from types alone: Constant, ConstantOfShape, Shape, Size, Range,
// EyeLike, Dropout.
namespace hone::graph::onnx_import {
namespace {

using ir::BinaryOp;
using ir::DType;
using Shape = std::vector<int64_t>;

constexpr int64_t kMaxFolded = int64_t{1} << 16;

void Constant(NodeImport& n) {
  if (n.HasAttribute("value")) return n.SetOutput(0, n.Constant(n.Tensor("value")));
  if (n.HasAttribute("value_int"))
    return n.SetOutput(0, n.Constant(MakeInt64s({}, {n.Int("value_int", 0)})));
  if (n.HasAttribute("value_ints")) return n.SetOutput(0, n.Int64s(n.Ints("value_ints")));
  if (n.HasAttribute("value_float"))
    return n.SetOutput(0, n.Scalar(DType::kF32, n.Float("value_float", 0)));
  if (n.HasAttribute("value_floats")) {
    const std::vector<double> values = n.Floats("value_floats");
    return n.SetOutput(
        0, n.Constant(MakeConstant(DType::kF32, {static_cast<int64_t>(values.size())}, values)));
  }
  if (const auto* sparse = n.RawAttribute("sparse_value");
      sparse != nullptr && sparse->has_sparse_tensor()) {
    return n.SetOutput(0, n.SparseConstant(sparse->sparse_tensor()));
  }
  n.Unsupported("only constants of numbers are supported; this one has strings or no value");
}

/// A tensor of one repeated value: materialised when small, expanded from a scalar otherwise.
ValueId Filled(NodeImport& n, ValueId scalar, const Shape& shape) {
  return n.Expand(n.Reshape(scalar, {}), shape);
}

void ConstantOfShape(NodeImport& n) {
  const Shape shape = n.KnownInts(0, "the shape");
  ConstantPtr value =
      n.HasAttribute("value") ? n.Tensor("value") : MakeConstant(DType::kF32, {}, {0.0});
  if (!n.ok()) return;
  if (value->type.NumElements() != 1)
    return n.Invalid("attribute 'value' must have one element, not " + ToText(value->type));
  n.SetOutput(0, Filled(n, n.Constant(std::move(value)), shape));
}

void ShapeOfInput(NodeImport& n) {
  const ValueId x = n.Input(0);
  const Shape shape = n.ShapeOf(x);
  const auto rank = static_cast<int64_t>(shape.size());
  const auto clamp = [rank](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const int64_t start = clamp(n.Int("start", 0));
  const int64_t end = std::max(start, clamp(n.Int("end", rank)));
  n.SetOutput(0, n.Int64s(Shape(shape.begin() + start, shape.begin() + end)));
}

void Size(NodeImport& n) {
  const ValueId x = n.Input(0);
  n.SetOutput(0, n.Constant(MakeInt64s({}, {n.TypeOf(x).NumElements()})));
}

/// start + i * delta for integers, in the same way for floats.
void Range(NodeImport& n) {
  n.Int("stash_type", 1);  // values are computed in f64 and rounded once
  const ValueId start = n.Input(0);
  if (!n.ok()) return;
  const DType dtype = n.DTypeOf(start);
  for (size_t i = 0; i < 3; ++i) {
    if (n.TypeOf(n.Input(i)).NumElements() != 1 || n.DTypeOf(n.Input(i)) != dtype)
      return n.Invalid("start, limit and delta must be scalars of one type");
  }
  const double from = n.KnownScalar(0, "the start");
  const double limit = n.KnownScalar(1, "the limit");
  const double delta = n.KnownScalar(2, "the delta");
  if (!n.ok()) return;
  const double steps = std::ceil((limit - from) / delta);
  if (delta == 0 || !std::isfinite(steps))
    return n.Invalid(
        fmt::format("start {}, limit {} and delta {} make no range", from, limit, delta));
  const double count = std::max(0.0, steps);
  if (count > static_cast<double>(kMaxFolded * 64))
    return n.Invalid(
        fmt::format("the range has {} values; at most {} are supported", count, kMaxFolded * 64));
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = from + static_cast<double>(i) * delta;
  n.SetOutput(0, n.Constant(MakeConstant(dtype, {static_cast<int64_t>(values.size())}, values)));
}

void EyeLike(NodeImport& n) {
  const ValueId x = n.Input(0);
  const DType dtype = n.ElementType("dtype", n.DTypeOf(x));
  const int64_t k = n.Int("k", 0);
  if (!n.CheckRank(x, 2, 2, "the input")) return;
  const Shape shape = n.ShapeOf(x);
  if (n.TypeOf(x).NumElements() > kMaxFolded * 64)
    return n.Unsupported(
        fmt::format("the matrix {} is too large; at most {} elements are supported",
                    ToText(n.TypeOf(x)), kMaxFolded * 64));
  std::vector<double> values(static_cast<size_t>(n.TypeOf(x).NumElements()));
  for (int64_t i = 0; !values.empty() && i < shape[0]; ++i) {
    if (k >= -i && k < shape[1] - i) values[static_cast<size_t>(i * shape[1] + i + k)] = 1;
  }
  n.SetOutput(0, n.Constant(MakeConstant(dtype, shape, values)));
}

/// In inference the input itself and a mask of trues.
void PassThrough(NodeImport& n, DType mask) {
  const ValueId x = n.Input(0);
  n.SetOutput(0, x);
  if (n.Wants(1)) n.SetOutput(1, Filled(n, n.Scalar(mask, 1), n.ShapeOf(x)));
}

void DropoutWithAttribute(NodeImport& n) {
  n.Float("ratio", 0.5);
  if (n.opset() < 7 && n.Int("is_test", 0) == 0)
    return n.Unsupported(
        "training mode (is_test is not 1) is not supported; export the model for inference");
  PassThrough(n, n.opset() < 10 ? n.DTypeOf(n.Input(0)) : DType::kBool);
}

void Dropout(NodeImport& n) {
  n.Int("seed", 0);
  const bool training = n.Has(2) && n.KnownScalar(2, "training_mode") != 0;
  if (training && (!n.Has(1) || n.KnownScalar(1, "the ratio") != 0)) {
    return n.Unsupported(
        "training mode is not supported, as its results are random; export the model for "
        "inference");
  }
  PassThrough(n, DType::kBool);
}

void NonZero(NodeImport& n) {
  const ConstantPtr x = n.Known(n.Input(0));
  if (!n.ok()) return;
  if (x == nullptr) {
    return n.FailUnknown(n.Input(0), "its input, which decides the number of results,");
  }
  if (x->type.NumElements() > kMaxFolded * 64)
    return n.Unsupported(fmt::format("the input {} is too large; at most {} elements are supported",
                                     ToText(x->type), kMaxFolded * 64));
  Shape shape = x->type.shape;
  if (shape.empty()) shape = {1};
  std::vector<Shape> rows(shape.size());
  const std::vector<double> values = x->AsDoubles();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) continue;
    auto rest = static_cast<int64_t>(i);
    for (size_t d = shape.size(); d-- > 0;) {
      rows[d].push_back(rest % shape[d]);
      rest /= shape[d];
    }
  }
  Shape flat;
  for (const Shape& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  n.SetOutput(
      0, n.Constant(MakeInt64s(
             {static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size())}, flat)));
}

constexpr Handler kHandlers[] = {
    {"Constant", 1, 0, 0, 1, Constant},
    {"ConstantOfShape", 9, 1, 1, 1, ConstantOfShape},
    {"Shape", 1, 1, 1, 1, ShapeOfInput},
    {"Size", 1, 1, 1, 1, Size},
    {"Range", 11, 3, 3, 1, Range},
    {"EyeLike", 9, 1, 1, 1, EyeLike},
    {"Dropout", 1, 1, 1, 2, DropoutWithAttribute},
    {"Dropout", 12, 1, 3, 2, Dropout},
    {"NonZero", 9, 1, 1, 1, NonZero},
};

}  // namespace

std::span<const Handler> ConstantHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
