#include <cmath>
#include <limits>
#include <numeric>

#include "fmt/format.h"

#include "graph/onnx_import/microsoft_layers.h"
#include "graph/onnx_import/quantise.h"

namespace hone::graph::onnx_import {
namespace {

using ir::BinaryOp;
using ir::DType;
using Shape = std::vector<int64_t>;

/// 0 up along the axis of a shape that is otherwise of ones.
ValueId Places(NodeImport& n, int64_t count, size_t axis) {
  if (!n.CheckTable(count, 1, "the places")) return kNoValue;
  Shape values(static_cast<size_t>(count)), shape(4, 1);
  std::iota(values.begin(), values.end(), 0);
  shape[axis] = count;
  return n.Constant(MakeInt64s(shape, values));
}

/// Where a mask lets queries see keys, broadcast to [batch, heads, queries, keys]: the number of
/// keys of each row of the batch, these and then each row's first, or a number above 0 for each
/// key, for all queries or one by one. kNoValue after an error.
ValueId Allowed(NodeImport& n, ValueId mask, int64_t batch, int64_t queries, int64_t keys) {
  const Shape shape = n.ShapeOf(mask);
  if (shape.size() == 1 && (shape[0] == batch || shape[0] == 2 * batch)) {
    const ValueId wide = n.Reshape(n.Cast(mask, DType::kI64), {shape[0] / batch, batch, 1, 1, 1});
    const auto bound = [&](int64_t part) {
      return n.Reshape(n.Emit("Gather", {wide, n.Int64s({part})}, {{"axis", int64_t{0}}}),
                       {batch, 1, 1, 1});
    };
    const ValueId below = n.Binary(BinaryOp::kLt, Places(n, keys, 3), bound(0));
    if (shape[0] == batch) return below;
    return n.Binary(BinaryOp::kAnd, below, n.Binary(BinaryOp::kGe, Places(n, keys, 3), bound(1)));
  }
  const ValueId seen = n.Binary(BinaryOp::kGt, mask, 0.0);
  if (shape == Shape{batch, keys}) return n.Reshape(seen, {batch, 1, 1, keys});
  if (shape == Shape{batch, queries, keys}) return n.Reshape(seen, {batch, 1, queries, keys});
  n.Unsupported(fmt::format("a mask {} is not supported", ToText(n.TypeOf(mask))));
  return kNoValue;
}

/// A share of the last axis as [batch, heads, places, features].
ValueId HeadsOf(NodeImport& n, ValueId qkv, int64_t part, int64_t heads) {
  const Shape s = n.ShapeOf(qkv);
  const int64_t width = s[2] / 3;
  const ValueId own = n.Emit("Slice", {qkv},
                             {{"starts", Shape{0, 0, part * width}},
                              {"steps", Shape{1, 1, 1}},
                              {"sizes", Shape{s[0], s[1], width}}});
  return n.Transpose(n.Reshape(own, {s[0], s[1], heads, width / heads}), {0, 2, 1, 3});
}

ValueId PartOfPast(NodeImport& n, int64_t part) {
  return n.Emit("Gather", {n.Input(8), n.Constant(MakeInt64s({}, {part}))}, {{"axis", int64_t{0}}});
}

ValueId Product(NodeImport& n, ValueId a, ValueId b, int64_t turned) {
  return n.Emit("MatMul", {a, b}, {{"transpose_a", int64_t{0}}, {"transpose_b", turned}});
}

}  // namespace

void QAttention(NodeImport& n) {
  const int64_t heads = n.Int("num_heads", 0);
  const bool causal = n.Int("unidirectional", 0) != 0;
  const double filter = n.Float("mask_filter_value", -10000);
  const double given_scale = n.Float("scale", 0);
  for (const char* name : {"do_rotary", "past_present_share_buffer"})
    if (n.Int(name, 0) != 0)
      return n.Unsupported(fmt::format("{} other than 0 is not supported", name));
  const ValueId x = n.Input(0), w = n.Input(1);
  if (!n.CheckRank(x, 3, 3, "the input") || !n.CheckRank(w, 2, 2, "the weights")) return;
  const ValueId sum = IntegerProduct(n, x, w, n.OptionalInput(6), n.OptionalInput(7));
  const auto flat = [&](ValueId v) { return n.Reshape(v, {n.TypeOf(v).NumElements()}); };
  const ValueId scale = n.Mul(flat(n.Input(3)), flat(n.Input(4)));
  const ValueId qkv = n.Add(n.Mul(n.Cast(sum, DType::kF32), scale), n.Input(2));
  if (!n.ok()) return;
  const Shape s = n.ShapeOf(qkv);
  if (s.size() != 3 || heads < 1 || s[2] % (3 * heads) != 0)
    return n.Invalid(fmt::format(
        "{} columns cannot be divided into queries, keys and values of {} heads", s.back(), heads));
  const ValueId q = HeadsOf(n, qkv, 0, heads);
  ValueId k = HeadsOf(n, qkv, 1, heads), v = HeadsOf(n, qkv, 2, heads);
  const Shape shape = n.ShapeOf(q);
  if (n.Has(8)) {
    if (!n.CheckRank(n.Input(8), 5, 5, "the past")) return;
    k = n.Emit("Concat", {PartOfPast(n, 0), k}, {{"axis", int64_t{2}}});
    v = n.Emit("Concat", {PartOfPast(n, 1), v}, {{"axis", int64_t{2}}});
  }
  if (!n.ok()) return;
  const int64_t keys = n.ShapeOf(k)[2];
  const double factor =
      given_scale != 0 ? given_scale : 1 / std::sqrt(static_cast<double>(shape[3]));
  ValueId scores = n.Binary(BinaryOp::kMul, Product(n, q, k, 1), factor);
  if (n.Has(5)) {
    const ValueId allowed = Allowed(n, n.Input(5), s[0], s[1], keys);
    scores =
        n.Add(scores, n.Select(allowed, n.Scalar(DType::kF32, 0), n.Scalar(DType::kF32, filter)));
  }
  if (causal) {
    const ValueId last =
        n.Binary(BinaryOp::kAdd, Places(n, s[1], 2), static_cast<double>(keys - s[1]));
    scores = n.Select(n.Binary(BinaryOp::kLe, Places(n, keys, 3), last), scores,
                      n.Scalar(DType::kF32, -std::numeric_limits<double>::infinity()));
  }
  const ValueId shares = n.Emit("Softmax", {scores}, {{"axis", int64_t{3}}, {"log", int64_t{0}}});
  const ValueId mixed = n.Transpose(Product(n, shares, v, 0), {0, 2, 1, 3});
  n.SetOutput(0, n.Reshape(mixed, {s[0], s[1], s[2] / 3}));
  if (!n.Wants(1) || !n.ok()) return;
  const Shape part = {1, s[0], heads, keys, shape[3]};
  n.SetOutput(1,
              n.Emit("Concat", {n.Reshape(k, part), n.Reshape(v, part)}, {{"axis", int64_t{0}}}));
}

}  // namespace hone::graph::onnx_import
