#include <numeric>

#include "fmt/format.h"

#include "graph/onnx_import/handler.h"

// Reshaping and reordering: Reshape, Flatten, Squeeze, Unsqueeze, Transpose, Expand, Tile, Concat,
// depth and space.
namespace hone::graph::onnx_import {
namespace {

using Shape = std::vector<int64_t>;

/// Product of extents, saturating; of nothing 1.
int64_t Product(const Shape& shape, size_t begin, size_t end) {
  return TensorType{.shape = Shape(shape.begin() + static_cast<ptrdiff_t>(begin),
                                   shape.begin() + static_cast<ptrdiff_t>(end))}
      .NumElements();
}

void Reshape(NodeImport& n) {
  const ValueId x = n.Input(0);
  Shape shape = n.KnownInts(1, "the shape");
  const bool zero_is_zero = n.Int("allowzero", 0) != 0;
  if (!n.ok()) return;
  const Shape from = n.ShapeOf(x);
  int64_t others = 1;
  ptrdiff_t open = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !zero_is_zero) {
      if (i >= from.size())
        return n.Invalid(fmt::format(
            "element {} of the shape is 0, which copies an extent that the input lacks", i));
      shape[i] = from[i];
    }
    if (shape[i] == -1 && open < 0) {
      open = static_cast<ptrdiff_t>(i);
    } else if (shape[i] < 0 || __builtin_mul_overflow(others, shape[i], &others)) {
      return n.Invalid(fmt::format(
          "shape [{}] has more than one -1, another negative extent, or too many elements",
          fmt::join(shape, ",")));
    }
  }
  if (open >= 0) {
    const int64_t count = n.TypeOf(x).NumElements();
    if (others == 0 || count % others != 0) {
      return n.Invalid(
          fmt::format("{} elements do not fit shape [{}]", count, fmt::join(shape, ",")));
    }
    shape[static_cast<size_t>(open)] = count / others;
  }
  n.SetOutput(0, n.Reshape(x, std::move(shape)));
}

void Flatten(NodeImport& n) {
  const ValueId x = n.Input(0);
  const Shape shape = n.ShapeOf(x);
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = n.Int("axis", 1);
  if (axis < -rank || axis > rank)
    return n.Invalid(fmt::format("axis {} is outside [{}, {}]", axis, -rank, rank));
  if (axis < 0) axis += rank;
  const auto a = static_cast<size_t>(axis);
  n.SetOutput(0, n.Reshape(x, {Product(shape, 0, a), Product(shape, a, shape.size())}));
}

void SqueezeAxes(NodeImport& n, const Shape& axes) {
  const ValueId x = n.Input(0);
  if (!n.ok()) return;
  const Shape from = n.ShapeOf(x);
  std::vector<bool> gone(from.size());
  for (size_t i = 0; i < from.size(); ++i) gone[i] = axes.empty() && from[i] == 1;
  for (int64_t axis : n.Axes(axes, from.size())) {
    if (from[static_cast<size_t>(axis)] != 1) {
      return n.Invalid(fmt::format("axis {} has extent {} and cannot be squeezed", axis,
                                   from[static_cast<size_t>(axis)]));
    }
    gone[static_cast<size_t>(axis)] = true;
  }
  Shape shape;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!gone[i]) shape.push_back(from[i]);
  }
  n.SetOutput(0, n.Reshape(x, std::move(shape)));
}

void SqueezeWithAttribute(NodeImport& n) { SqueezeAxes(n, n.Ints("axes")); }
void Squeeze(NodeImport& n) { SqueezeAxes(n, n.Has(1) ? n.KnownInts(1, "the axes") : Shape()); }

void UnsqueezeAxes(NodeImport& n, const Shape& axes) {
  const ValueId x = n.Input(0);
  if (!n.ok()) return;
  const Shape from = n.ShapeOf(x);
  const size_t rank = from.size() + axes.size();
  std::vector<bool> made(rank);
  for (int64_t axis : n.Axes(axes, rank)) made[static_cast<size_t>(axis)] = true;
  if (!n.ok()) return;
  Shape shape;
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i) shape.push_back(made[i] ? 1 : from[next++]);
  n.SetOutput(0, n.Reshape(x, std::move(shape)));
}

void UnsqueezeWithAttribute(NodeImport& n) { UnsqueezeAxes(n, n.Ints("axes")); }
void Unsqueeze(NodeImport& n) { UnsqueezeAxes(n, n.KnownInts(1, "the axes")); }

void Transpose(NodeImport& n) {
  const ValueId x = n.Input(0);
  Shape reversed(n.RankOf(x));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  n.SetOutput(0, n.Transpose(x, n.Ints("perm", reversed)));
}

/// The broadcast of two shapes; extents that do not agree are left for Expand to refuse.
Shape Broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t right = i < b.size() ? b[b.size() - 1 - i] : 1;
    result[result.size() - 1 - i] = left == 1 ? right : left;
  }
  return result;
}

void Expand(NodeImport& n) {
  const ValueId x = n.Input(0);
  const Shape shape = n.KnownInts(1, "the shape");
  if (!n.ok()) return;
  const Shape result = Broadcast(n.ShapeOf(x), shape);
  if (Broadcast(shape, n.ShapeOf(x)) != result) {
    return n.Invalid(fmt::format("shape [{}] does not broadcast with [{}]",
                                 fmt::join(n.ShapeOf(x), ","), fmt::join(shape, ",")));
  }
  n.SetOutput(0, n.Expand(x, result));
}

void Tile(NodeImport& n) {
  const ValueId x = n.Input(0);
  n.SetOutput(0, n.Emit("Tile", {x}, {{"repeats", n.KnownInts(1, "the repeats")}}));
}

void Concat(NodeImport& n) {
  const ValueId first = n.Input(0);
  if (!n.HasAttribute("axis")) return n.Invalid("attribute 'axis' is missing");
  const int64_t axis = n.Axis(n.Int("axis", 0), n.RankOf(first));
  std::vector<ValueId> parts;
  for (size_t i = 0; i < n.num_inputs(); ++i) {
    const ValueId part = n.Input(i);
    if (!n.ok()) return;
    if (n.RankOf(part) != n.RankOf(first) || n.DTypeOf(part) != n.DTypeOf(first)) {
      return n.Invalid(
          fmt::format("input {} is {}, but input 0 is {}; types and shapes must be equal", i,
                      ToText(n.TypeOf(part)), ToText(n.TypeOf(first))));
    }
    if (n.TypeOf(part).NumElements() > 0) parts.push_back(part);
  }
  if (parts.empty()) parts = n.inputs();  // their extents add up all the same
  n.SetOutput(0, parts.size() == 1 ? parts[0] : n.Emit("Concat", parts, {{"axis", axis}}));
}

void DepthToSpace(NodeImport& n) {
  const ValueId x = n.Input(0);
  const int64_t block = n.Int("blocksize", 0);
  const std::string mode = n.Choice("mode", "DCR", {"DCR", "CRD"});
  if (!n.CheckRank(x, 4, 4, "the input")) return;
  const Shape s = n.ShapeOf(x);
  // The square is no product of attributes: it would wrap, to zero among others.
  if (block < 1 || block > s[1] / block || s[1] % (block * block) != 0)
    return n.Invalid(
        fmt::format("{} channels cannot be divided by blocksize {} squared", s[1], block));
  const int64_t depth = s[1] / (block * block);
  const bool dcr = mode == "DCR";
  const ValueId blocks = n.Reshape(x, dcr ? Shape{s[0], block, block, depth, s[2], s[3]}
                                          : Shape{s[0], depth, block, block, s[2], s[3]});
  const ValueId moved =
      n.Transpose(blocks, dcr ? Shape{0, 3, 4, 1, 5, 2} : Shape{0, 1, 4, 2, 5, 3});
  n.SetOutput(0, n.Reshape(moved, {s[0], depth, s[2] * block, s[3] * block}));
}

void SpaceToDepth(NodeImport& n) {
  const ValueId x = n.Input(0);
  const int64_t block = n.Int("blocksize", 0);
  const std::string mode = n.opset() >= 28 ? n.Choice("mode", "DCR", {"DCR", "CRD"}) : "DCR";
  if (!n.CheckRank(x, 4, 4, "the input")) return;
  const Shape s = n.ShapeOf(x);
  int64_t channels = s[1];
  const bool overflows = __builtin_mul_overflow(channels, block, &channels) ||
                         __builtin_mul_overflow(channels, block, &channels);
  if (block < 1 || overflows || s[2] % block != 0 || s[3] % block != 0) {
    return n.Invalid(fmt::format("blocksize {} does not divide {} x {}", block, s[2], s[3]));
  }
  const ValueId blocks = n.Reshape(x, {s[0], s[1], s[2] / block, block, s[3] / block, block});
  const ValueId moved =
      n.Transpose(blocks, mode == "DCR" ? Shape{0, 3, 5, 1, 2, 4} : Shape{0, 1, 3, 5, 2, 4});
  n.SetOutput(0, n.Reshape(moved, {s[0], channels, s[2] / block, s[3] / block}));
}

constexpr Handler kHandlers[] = {
    {"Reshape", 5, 2, 2, 1, Reshape},
    {"Flatten", 1, 1, 1, 1, Flatten},
    {"Squeeze", 1, 1, 1, 1, SqueezeWithAttribute},
    {"Squeeze", 13, 1, 2, 1, Squeeze},
    {"Unsqueeze", 1, 1, 1, 1, UnsqueezeWithAttribute},
    {"Unsqueeze", 13, 2, 2, 1, Unsqueeze},
    {"Transpose", 1, 1, 1, 1, Transpose},
    {"Expand", 8, 2, 2, 1, Expand},
    {"Tile", 6, 2, 2, 1, Tile},
    {"Concat", 4, 1, kAnyNumber, 1, Concat},
    {"DepthToSpace", 1, 1, 1, 1, DepthToSpace},
    {"SpaceToDepth", 1, 1, 1, 1, SpaceToDepth},
};

}  // namespace

std::span<const Handler> ShapeHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
