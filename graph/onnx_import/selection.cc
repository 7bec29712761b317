#include <numeric>

#include "fmt/format.h"

#include "graph/onnx_import/handler.h"

// Choosing and placing elements: TopK, Scatter*, OneHot, Hardmax, Trilu, Compress, MaxUnpool.
namespace hone::graph::onnx_import {
namespace {

using ir::BinaryOp;
using ir::DType;
using Shape = std::vector<int64_t>;

constexpr int64_t kMaxCount = int64_t{1} << 20;

void TopKOf(NodeImport& n, int64_t k) {
  const ValueId x = n.Input(0);
  const bool options = n.opset() >= 11;
  Attributes attributes{{"axis", n.Axis(n.Int("axis", -1), n.RankOf(x))},
                        {"k", k},
                        {"largest", options ? int64_t{n.Int("largest", 1) != 0} : 1},
                        {"sorted", options ? int64_t{n.Int("sorted", 1) != 0} : 1}};
  const std::vector<ValueId> made = n.EmitMany("TopK", {x}, std::move(attributes), 2);
  for (size_t i = 0; i < 2; ++i) {
    if (n.Wants(i)) n.SetOutput(i, made[i]);
  }
}

void TopKWithAttribute(NodeImport& n) { TopKOf(n, n.Int("k", 0)); }

void TopK(NodeImport& n) {
  const Shape k = n.KnownInts(1, "the number of results");
  if (!n.ok()) return;
  if (k.size() != 1)
    return n.Invalid(fmt::format("k must be one number, not {} of them", k.size()));
  TopKOf(n, k[0]);
}

std::string Reduction(NodeImport& n) {
  if (n.opset() < 16) return "none";
  return n.Choice("reduction", "none", {"none", "add", "mul", "max", "min"});
}

/// Where there are no updates, what they are written into stays as it is.
bool ScattersNothing(NodeImport& n) { return n.TypeOf(n.Input(2)).NumElements() == 0; }

void ScatterElements(NodeImport& n) {
  const ValueId x = n.Input(0);
  if (ScattersNothing(n)) return n.SetOutput(0, x);
  const int64_t axis = n.Axis(n.Int("axis", 0), n.RankOf(x));
  n.SetOutput(0, n.Emit("ScatterElements", {x, n.Input(1), n.Input(2)},
                        {{"axis", axis}, {"reduction", Reduction(n)}}));
}

void ScatterNd(NodeImport& n) {
  const ValueId x = n.Input(0);
  if (ScattersNothing(n)) return n.SetOutput(0, x);
  n.SetOutput(0, n.Emit("ScatterND", {x, n.Input(1), n.Input(2)}, {{"reduction", Reduction(n)}}));
}

/// 0, 1, … along `axis` of a shape of ones.
ValueId Iota(NodeImport& n, int64_t count, int64_t axis, size_t rank) {
  Shape shape(rank, 1);
  shape[static_cast<size_t>(axis)] = count;
  Shape values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return n.Constant(MakeInt64s(std::move(shape), values));
}

void OneHot(NodeImport& n) {
  ValueId indices = n.Input(0);
  const double depth = n.KnownScalar(1, "the depth");
  const ValueId values = n.Input(2);
  if (!n.ok()) return;
  if (!(depth >= 1 && depth <= static_cast<double>(kMaxCount)))
    return n.Invalid(fmt::format("depth {} is out of range", depth));
  if (n.ShapeOf(values) != Shape{2})
    return n.Invalid("values must be [off, on], not " + ToText(n.TypeOf(values)));
  const auto count = static_cast<int64_t>(depth);
  const size_t rank = n.RankOf(indices) + 1;
  const int64_t axis = n.Axis(n.Int("axis", -1), rank);
  if (!n.ok()) return;
  Shape shape = n.ShapeOf(indices);
  shape.insert(shape.begin() + axis, 1);
  indices = n.Reshape(n.Cast(indices, DType::kI64), shape);
  const ValueId negative = n.Binary(BinaryOp::kLt, indices, 0.0);
  indices =
      n.Select(negative, n.Binary(BinaryOp::kAdd, indices, static_cast<double>(count)), indices);
  const ValueId hot = n.Binary(BinaryOp::kEq, indices, Iota(n, count, axis, rank));
  const auto pick = [&](int64_t i) {
    return n.Reshape(
        n.Emit("Slice", {values}, {{"starts", Shape{i}}, {"steps", Shape{1}}, {"sizes", Shape{1}}}),
        {});
  };
  n.SetOutput(0, n.Select(hot, pick(1), pick(0)));
}

/// One at the first maximum along the axis, zero elsewhere.
ValueId HardmaxOver(NodeImport& n, ValueId x, int64_t axis) {
  const ValueId index = n.Emit("ArgReduce", {x},
                               {{"fn", std::string("max")},
                                {"axis", axis},
                                {"keepdims", int64_t{1}},
                                {"select_last", int64_t{0}}});
  const Shape shape = n.ShapeOf(x);
  if (!n.ok()) return kNoValue;
  const int64_t count = shape[static_cast<size_t>(axis)];
  if (count > kMaxCount)
    n.Unsupported(fmt::format("an axis of {} elements is too long; at most {} are supported", count,
                              kMaxCount));
  if (!n.ok()) return kNoValue;
  return n.Cast(n.Binary(BinaryOp::kEq, index, Iota(n, count, axis, shape.size())), n.DTypeOf(x));
}

void Hardmax(NodeImport& n) {
  const ValueId x = n.Input(0);
  n.SetOutput(0, HardmaxOver(n, x, n.Axis(n.Int("axis", -1), n.RankOf(x))));
}

/// Before opset 13 the axes from `axis` on are one.
void FlattenedHardmax(NodeImport& n) {
  const ValueId x = n.Input(0);
  const auto axis = static_cast<ptrdiff_t>(n.Axis(n.Int("axis", 1), n.RankOf(x)));
  if (!n.ok()) return;
  const Shape shape = n.ShapeOf(x);
  const int64_t rows =
      TensorType{.shape = Shape(shape.begin(), shape.begin() + axis)}.NumElements();
  const int64_t columns =
      TensorType{.shape = Shape(shape.begin() + axis, shape.end())}.NumElements();
  n.SetOutput(0, n.Reshape(HardmaxOver(n, n.Reshape(x, {rows, columns}), 1), shape));
}

void Trilu(NodeImport& n) {
  const ValueId x = n.Input(0);
  int64_t k = 0;
  if (n.Has(1)) {
    const Shape known = n.KnownInts(1, "the diagonal");
    if (n.ok() && known.size() != 1)
      n.Invalid(fmt::format("k must be one number, not {} of them", known.size()));
    if (n.ok()) k = known[0];
  }
  n.SetOutput(0, n.Emit("Trilu", {x}, {{"upper", int64_t{n.Int("upper", 1) != 0}}, {"k", k}}));
}

void Compress(NodeImport& n) {
  ValueId x = n.Input(0);
  const std::vector<double> condition =
      n.KnownFloats(1, "the condition, which decides the number of results,");
  if (!n.ok()) return;
  int64_t axis = 0;
  if (n.HasAttribute("axis")) {
    axis = n.Axis(n.Int("axis", 0), n.RankOf(x));
  } else {
    x = n.Reshape(x, {n.TypeOf(x).NumElements()});
  }
  if (!n.ok()) return;
  const int64_t extent = n.ShapeOf(x)[static_cast<size_t>(axis)];
  Shape kept;
  for (size_t i = 0; i < condition.size() && static_cast<int64_t>(i) < extent; ++i) {
    if (condition[i] != 0) kept.push_back(static_cast<int64_t>(i));
  }
  n.SetOutput(0, n.Emit("Gather", {x, n.Int64s(kept)}, {{"axis", axis}}));
}

/// Flat positions in a tensor of shape `from` as flat positions in the larger `to`.
ValueId Relocated(NodeImport& n, ValueId positions, const Shape& from, const Shape& to) {
  if (from == to) return positions;
  ValueId rest = positions;
  ValueId result = kNoValue;
  double stride = 1;
  for (size_t d = from.size(); d-- > 0;) {
    const ValueId index = n.Binary(BinaryOp::kMod, rest, static_cast<double>(from[d]));
    rest = n.Binary(BinaryOp::kDiv, rest, static_cast<double>(from[d]));
    const ValueId part = n.Binary(BinaryOp::kMul, index, stride);
    result = result == kNoValue ? part : n.Add(result, part);
    stride *= static_cast<double>(to[d]);
  }
  return result;
}

/// Puts each element at its flat position in a tensor of zeros. The positions count in the shape
/// that the pooling had, even when a larger output is asked for.
void MaxUnpool(NodeImport& n) {
  const ValueId x = n.Input(0);
  const ValueId indices = n.Input(1);
  const Shape kernel = n.Ints("kernel_shape");
  if (!n.CheckRank(x, 3, 5, "the input")) return;
  const Shape from = n.ShapeOf(x);
  const size_t count = from.size() - 2;
  const Shape strides = n.Ints("strides", Shape(count, 1));
  const Shape pads = n.Ints("pads", Shape(2 * count, 0));
  if (kernel.size() != count || strides.size() != count || pads.size() != 2 * count) {
    return n.Invalid("kernel_shape, strides or pads do not fit the input's rank");
  }
  Shape shape = from;
  for (size_t i = 0; i < count; ++i) {
    const double extent = static_cast<double>(from[2 + i] - 1) * static_cast<double>(strides[i]) +
                          static_cast<double>(kernel[i]) - static_cast<double>(pads[i]) -
                          static_cast<double>(pads[count + i]);
    if (!(extent >= 1 && extent < 1e9))
      return n.Invalid(fmt::format("output extent {} is out of range", extent));
    shape[2 + i] = static_cast<int64_t>(extent);
  }
  Shape result = shape;
  if (n.Has(2)) result = n.KnownInts(2, "the output's shape");
  if (!n.ok()) return;
  const int64_t size = TensorType{.shape = result}.NumElements();
  if (result.size() != shape.size() || size < 1 || size > (int64_t{1} << 40))
    return n.Invalid(
        fmt::format("output shape [{}] does not fit the input", fmt::join(result, ",")));
  const int64_t given = n.TypeOf(x).NumElements();
  const ValueId zeros = n.Expand(n.Scalar(n.DTypeOf(x), 0), {size});
  const ValueId flat = n.Emit(
      "ScatterElements",
      {zeros, n.Reshape(Relocated(n, indices, shape, result), {given}), n.Reshape(x, {given})},
      {{"axis", int64_t{0}}, {"reduction", std::string("none")}});
  n.SetOutput(0, n.Reshape(flat, result));
}

void TensorScatter(NodeImport& n) {
  const ValueId cache = n.Input(0);
  const std::string mode = n.Choice("mode", "linear", {"linear", "circular"});
  n.SetOutput(0, n.Emit("TensorScatter", {cache, n.Input(1), n.OptionalInput(2)},
                        {{"axis", n.Axis(n.Int("axis", -2), n.RankOf(cache))},
                         {"circular", int64_t{mode == "circular"}}}));
}

constexpr std::string_view kDataDependent =
    "the number of its results depends on data, but Hone compiles for fixed shapes";

constexpr Handler kHandlers[] = {
    {"TopK", 1, 1, 1, 2, TopKWithAttribute},
    {"TopK", 10, 2, 2, 2, TopK},
    {"Scatter", 9, 3, 3, 1, ScatterElements},
    {"ScatterElements", 11, 3, 3, 1, ScatterElements},
    {"ScatterND", 11, 3, 3, 1, ScatterNd},
    {"OneHot", 9, 3, 3, 1, OneHot},
    {"Hardmax", 1, 1, 1, 1, FlattenedHardmax},
    {"Hardmax", 13, 1, 1, 1, Hardmax},
    {"Trilu", 14, 1, 2, 1, Trilu},
    {"Compress", 9, 2, 2, 1, Compress},
    {"MaxUnpool", 9, 2, 3, 1, MaxUnpool},
    {"TensorScatter", 24, 2, 3, 1, TensorScatter},
    {"Unique", 11, 1, 1, 4, nullptr, kDataDependent},
    {"NonMaxSuppression", 10, 2, 5, 1, nullptr, kDataDependent},
};

}  // namespace

std::span<const Handler> SelectionHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
