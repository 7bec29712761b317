#include <cmath>
#include <limits>
#include <numeric>

#include "fmt/format.h"

#include "graph/onnx_import/handler.h"

// Attention and RotaryEmbedding (opset 23), composed from MatMul, Softmax and element-wise
// operators.
namespace hone::graph::onnx_import {
namespace {

using ir::BinaryOp;
using ir::DType;
using Shape = std::vector<int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// [b, s, heads·d] or [b, heads, s, d] as the latter.
ValueId SplitHeads(NodeImport& n, ValueId x, int64_t heads) {
  if (!n.CheckRank(x, 3, 4, "queries, keys and values")) return kNoValue;
  const Shape s = n.ShapeOf(x);
  if (s.size() == 4) return x;
  if (heads < 1 || s[2] % heads != 0) {
    n.Invalid(fmt::format("{} features do not split into {} heads", s[2], heads));
    return kNoValue;
  }
  return n.Transpose(n.Reshape(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}

/// Every head `times` times in a row.
ValueId RepeatHeads(NodeImport& n, ValueId x, int64_t times) {
  const Shape s = n.ShapeOf(x);
  if (times == 1 || !n.ok()) return x;
  const ValueId spread =
      n.Expand(n.Reshape(x, {s[0], s[1], 1, s[2], s[3]}), {s[0], s[1], times, s[2], s[3]});
  return n.Reshape(spread, {s[0], s[1] * times, s[2], s[3]});
}

ValueId Iota(NodeImport& n, int64_t count, const Shape& shape) {
  if (!n.CheckTable(count, 1, "the positions")) return kNoValue;
  Shape values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return n.Constant(MakeInt64s(shape, values));
}

ValueId And(NodeImport& n, ValueId a, ValueId b) {
  if (a == kNoValue || b == kNoValue) return a == kNoValue ? b : a;
  return n.Binary(BinaryOp::kAnd, a, b);
}

/// What masks the scores [b, h, q, kv]: places that are allowed, a bias that is added, or both.
struct Mask {
  ValueId allowed = kNoValue;
  ValueId bias = kNoValue;
  bool may_empty_rows = false;  ///< a query may have no key at all
};

/// The mask filled up to `keys` columns with places that are not allowed.
ValueId WidenedMask(NodeImport& n, ValueId mask, int64_t keys) {
  const Shape shape = n.ShapeOf(mask);
  const int64_t missing = keys - shape.back();
  if (missing <= 0 || shape.back() == 1) return mask;
  Shape end(shape.size(), 0);
  end.back() = missing;
  const DType dtype = n.DTypeOf(mask);
  const ValueId fill = n.Scalar(dtype, ir::IsBool(dtype) ? 0 : -kInfinity);
  return n.Emit(
      "Pad", {mask, fill},
      {{"begin", Shape(shape.size(), 0)}, {"end", end}, {"mode", std::string("constant")}});
}

/// Where each query stands among the keys: [q, 1] or [b, 1, q, 1].
ValueId Positions(NodeImport& n, int64_t queries, int64_t past, ValueId lengths) {
  const ValueId own =
      n.Binary(BinaryOp::kAdd, Iota(n, queries, {queries, 1}), static_cast<double>(past));
  if (lengths == kNoValue) return own;
  return n.Binary(BinaryOp::kSub, n.Add(own, lengths), static_cast<double>(queries));
}

/// A sliding window (opset 25): keys from `left` before the query to `right` behind it; -1 leaves a
/// side open.
void ReadWindow(NodeImport& n, int64_t queries, int64_t keys, int64_t past, ValueId lengths,
                Mask& mask) {
  const int64_t left = n.opset() >= 25 ? n.Int("left_window_size", -1) : -1;
  const int64_t right = n.opset() >= 25 ? n.Int("right_window_size", -1) : -1;
  if (left < 0 && right < 0) return;
  const ValueId distance = n.Sub(Positions(n, queries, past, lengths), Iota(n, keys, {1, keys}));
  if (left >= 0)
    mask.allowed =
        And(n, mask.allowed, n.Binary(BinaryOp::kLe, distance, static_cast<double>(left)));
  if (right >= 0)
    mask.allowed =
        And(n, mask.allowed, n.Binary(BinaryOp::kGe, distance, static_cast<double>(-right)));
  mask.may_empty_rows = true;
}

/// `lengths`: number of keys that count, per batch row, or kNoValue; `past`: keys before the first
/// query.
Mask ReadMask(NodeImport& n, int64_t queries, int64_t keys, int64_t past, ValueId lengths) {
  Mask mask;
  if (n.Has(3)) {
    if (!n.CheckRank(n.Input(3), 1, 4, "the mask")) return mask;
    const ValueId given = WidenedMask(n, n.Input(3), keys);
    (ir::IsBool(n.DTypeOf(given)) ? mask.allowed : mask.bias) = given;
    mask.may_empty_rows = true;
  }
  if (n.Int("is_causal", 0) != 0) {
    ValueId last =
        n.Binary(BinaryOp::kAdd, Iota(n, queries, {queries, 1}), static_cast<double>(past));
    if (lengths != kNoValue)
      last = n.Binary(BinaryOp::kSub, n.Add(last, lengths), static_cast<double>(queries));
    mask.allowed = And(n, mask.allowed, n.Binary(BinaryOp::kLe, Iota(n, keys, {1, keys}), last));
  }
  ReadWindow(n, queries, keys, past, lengths, mask);
  if (lengths != kNoValue) {
    mask.allowed = And(n, mask.allowed, n.Binary(BinaryOp::kLt, Iota(n, keys, {1, keys}), lengths));
    mask.may_empty_rows = true;
  }
  return mask;
}

ValueId Masked(NodeImport& n, ValueId scores, const Mask& mask) {
  if (mask.bias != kNoValue) scores = n.Add(scores, mask.bias);
  if (mask.allowed == kNoValue) return scores;
  return n.Select(mask.allowed, scores, n.Scalar(n.DTypeOf(scores), -kInfinity));
}

/// Zeroes the rows in which nothing is allowed, which a softmax would make NaN.
ValueId WithoutEmptyRows(NodeImport& n, ValueId probabilities, const Mask& mask) {
  if (!mask.may_empty_rows) return probabilities;
  const auto reduced = [&](ValueId x, const char* fn) {
    const auto last = static_cast<int64_t>(n.RankOf(x)) - 1;
    return n.Emit("Reduce", {x},
                  {{"fn", std::string(fn)}, {"axes", Shape{last}}, {"keepdims", int64_t{1}}});
  };
  ValueId some = kNoValue;
  if (mask.bias == kNoValue) {
    some = reduced(mask.allowed, "any");
  } else {
    const ValueId zero = n.Scalar(n.DTypeOf(mask.bias), 0);
    const ValueId bias = mask.allowed == kNoValue ? mask.bias : Masked(n, zero, mask);
    some = n.Binary(BinaryOp::kGt, reduced(bias, "max"), -kInfinity);
  }
  const ConstantPtr known = n.Known(some);
  if (known != nullptr) {
    const std::vector<int64_t> rows = known->AsInt64s();
    if (std::find(rows.begin(), rows.end(), 0) == rows.end()) return probabilities;
  }
  return n.Select(some, probabilities, n.Scalar(n.DTypeOf(probabilities), 0));
}

ValueId Appended(NodeImport& n, size_t past, ValueId x) {
  return n.Has(past) ? n.Emit("Concat", {n.Input(past), x}, {{"axis", int64_t{2}}}) : x;
}

void Attention(NodeImport& n) {
  const ValueId input = n.Input(0);
  const int64_t q_heads = n.Int("q_num_heads", 0);
  const int64_t kv_heads = n.Int("kv_num_heads", 0);
  const bool flat = n.RankOf(input) == 3;
  ValueId q = SplitHeads(n, input, q_heads);
  const ValueId k = Appended(n, 4, SplitHeads(n, n.Input(1), kv_heads));
  const ValueId v = Appended(n, 5, SplitHeads(n, n.Input(2), kv_heads));
  const double softcap = n.Float("softcap", 0);
  const int64_t mode = n.Int("qk_matmul_output_mode", 0);
  const DType dtype = n.DTypeOf(q);
  const DType precision =
      n.HasAttribute("softmax_precision") ? n.ElementType("softmax_precision", dtype) : dtype;
  if (!n.ok()) return;
  const Shape qs = n.ShapeOf(q);
  const Shape ks = n.ShapeOf(k);
  if (ks[1] < 1 || qs[1] % ks[1] != 0 || n.Has(4) != n.Has(5) || mode < 0 || mode > 3) {
    return n.Invalid(
        fmt::format("{} query heads must be a multiple of {} key heads, qk_matmul_output_mode ({}) "
                    "must lie in 0 to 3, and past_key and past_value must be given together",
                    qs[1], ks[1], mode));
  }
  const int64_t times = qs[1] / ks[1];
  ValueId lengths = kNoValue;
  if (n.opset() >= 24 && n.Has(6))
    lengths = n.Reshape(n.Cast(n.Input(6), DType::kI64), {qs[0], 1, 1, 1});
  const Mask mask = ReadMask(n, qs[2], ks[2], n.Has(4) ? n.ShapeOf(n.Input(4))[2] : 0, lengths);

  const double scale =
      n.Float("scale", 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(qs[3], 1))));
  ValueId scores = n.Emit("MatMul", {q, RepeatHeads(n, k, times)},
                          {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{1}}});
  scores = n.Binary(BinaryOp::kMul, scores, scale);
  if (softcap > 0) {
    scores =
        n.Binary(BinaryOp::kMul,
                 n.Unary(ir::UnaryOp::kTanh, n.Binary(BinaryOp::kDiv, scores, softcap)), softcap);
  }
  const ValueId masked = Masked(n, scores, mask);
  if (!n.ok()) return;
  const auto last = static_cast<int64_t>(n.RankOf(masked)) - 1;
  ValueId probabilities =
      n.Emit("Softmax", {n.Cast(masked, precision)}, {{"axis", last}, {"log", int64_t{0}}});
  probabilities = n.Cast(WithoutEmptyRows(n, probabilities, mask), dtype);
  ValueId y = n.Emit("MatMul", {probabilities, RepeatHeads(n, v, times)},
                     {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{0}}});
  if (flat && n.ok()) {
    const Shape s = n.ShapeOf(y);
    y = n.Reshape(n.Transpose(y, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
  }
  n.SetOutput(0, y);
  if (n.Wants(1)) n.SetOutput(1, k);
  if (n.Wants(2)) n.SetOutput(2, v);
  if (n.Wants(3)) n.SetOutput(3, mode == 3 ? probabilities : mode == 2 ? masked : scores);
}

/// Part [start, start + count) of the last axis, every `step`-th element.
ValueId LastAxis(NodeImport& n, ValueId x, int64_t start, int64_t count, int64_t step) {
  Shape sizes = n.ShapeOf(x);
  if (!n.ok() || (start == 0 && sizes.back() == count)) return x;
  Shape starts(sizes.size(), 0);
  Shape steps(sizes.size(), 1);
  starts.back() = start;
  steps.back() = step;
  sizes.back() = count;
  return n.Emit("Slice", {x}, {{"starts", starts}, {"steps", steps}, {"sizes", sizes}});
}

/// Rotates pairs of features by angles whose cosines and sines are given per position.
void RotaryEmbedding(NodeImport& n) {
  ValueId x = n.Input(0);
  const bool interleaved = n.Int("interleaved", 0) != 0;
  const int64_t heads = n.Int("num_heads", 0);
  int64_t rotated = n.Int("rotary_embedding_dim", 0);
  const Shape original = n.ShapeOf(x);
  x = SplitHeads(n, x, heads);
  if (!n.ok()) return;
  const Shape s = n.ShapeOf(x);  // b, heads, positions, features
  if (rotated == 0) rotated = s[3];
  if (rotated < 2 || rotated % 2 != 0 || rotated > s[3])
    return n.Invalid(fmt::format(
        "rotary_embedding_dim {} must be even, and at most the head size {}", rotated, s[3]));
  const int64_t half = rotated / 2;
  const auto table = [&](size_t i) {
    ValueId cache = n.Input(i);
    if (n.Has(3)) cache = n.Emit("Gather", {cache, n.Input(3)}, {{"axis", int64_t{0}}});
    if (n.ok() && n.TypeOf(cache).NumElements() != s[0] * s[2] * half)
      n.Invalid(fmt::format("the cosine or sine cache {} does not fit the input {}",
                            ToText(n.TypeOf(cache)), ToText(n.TypeOf(x))));
    return n.Reshape(cache, {s[0], 1, s[2], half});
  };
  const ValueId cosine = table(1);
  const ValueId sine = table(2);
  const ValueId first = LastAxis(n, x, 0, half, interleaved ? 2 : 1);
  const ValueId second = LastAxis(n, x, interleaved ? 1 : half, half, interleaved ? 2 : 1);
  ValueId real = n.Sub(n.Mul(cosine, first), n.Mul(sine, second));
  ValueId imaginary = n.Add(n.Mul(sine, first), n.Mul(cosine, second));
  ValueId y = kNoValue;
  if (interleaved) {
    const Shape column = {s[0], s[1], s[2], half, 1};
    y = n.Emit("Concat", {n.Reshape(real, column), n.Reshape(imaginary, column)},
               {{"axis", int64_t{4}}});
    y = n.Reshape(y, {s[0], s[1], s[2], rotated});
  } else {
    y = n.Emit("Concat", {real, imaginary}, {{"axis", int64_t{3}}});
  }
  if (rotated < s[3])
    y = n.Emit("Concat", {y, LastAxis(n, x, rotated, s[3] - rotated, 1)}, {{"axis", int64_t{3}}});
  if (original.size() == 3) y = n.Reshape(n.Transpose(y, {0, 2, 1, 3}), original);
  n.SetOutput(0, y);
}

constexpr Handler kHandlers[] = {
    {"Attention", 23, 3, 7, 4, Attention},
    {"RotaryEmbedding", 23, 3, 4, 1, RotaryEmbedding},
};

}  // namespace

std::span<const Handler> AttentionHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
