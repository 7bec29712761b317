#include <algorithm>
#include <cstdint>
#include <numeric>

#include "fmt/format.h"

#include "graph/onnx_import/handler.h"

// Slice, Split, Pad.
namespace hone::graph::onnx_import {
namespace {

using Shape = std::vector<int64_t>;

/// A slice of all axes, whole where nothing else is said.
struct Box {
  Shape starts;
  Shape steps;
  Shape sizes;
};

Box WholeBox(const Shape& shape) { return {Shape(shape.size(), 0), Shape(shape.size(), 1), shape}; }

ValueId EmitSlice(NodeImport& n, ValueId x, const Box& box) {
  if (box.sizes == n.ShapeOf(x) &&
      std::all_of(box.steps.begin(), box.steps.end(), [](int64_t s) { return s == 1; }))
    return x;
  return n.Emit("Slice", {x}, {{"starts", box.starts}, {"steps", box.steps}, {"sizes", box.sizes}});
}

/// The axis of `box` that [start, end) with `step` leaves, with NumPy's clamping.
void SetAxis(Box& box, size_t axis, int64_t extent, int64_t start, int64_t end, int64_t step) {
  if (extent == 0) step = 1;
  const auto clamp = [&](int64_t at, int64_t low, int64_t high) {
    return at < 0 ? std::max(at < -extent ? low : at + extent, low) : std::min(at, high);
  };
  // Backwards a start before the first element is the first, an end there is behind it.
  const int64_t high = step > 0 ? extent : extent - 1;
  const int64_t first = clamp(start, 0, high);
  // As in onnxruntime, the largest numbers mean "all there is" in both directions.
  const bool open = end == INT64_MAX || end == INT32_MAX;
  const int64_t last = open && step < 0 ? -1 : clamp(end, step > 0 ? 0 : -1, high);
  const int64_t distance = step > 0 ? last - first : first - last;
  const uint64_t stride =
      step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  const int64_t size =
      distance <= 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride) + 1;
  box.starts[axis] = size == 0 ? 0 : first;
  box.steps[axis] = size <= 1 ? 1 : step;
  box.sizes[axis] = size;
}

void SliceBy(NodeImport& n, const Shape& starts, const Shape& ends, Shape axes, Shape steps) {
  const ValueId x = n.Input(0);
  if (!n.ok()) return;
  const Shape shape = n.ShapeOf(x);
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    return n.Invalid(
        fmt::format("starts, ends, axes and steps must have equal lengths, not {}, {}, {} and {}",
                    starts.size(), ends.size(), axes.size(), steps.size()));
  }
  axes = n.Axes(std::move(axes), shape.size());
  if (!n.ok()) return;
  Box box = WholeBox(shape);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0) return n.Invalid("a step must not be zero");
    const auto axis = static_cast<size_t>(axes[i]);
    SetAxis(box, axis, shape[axis], starts[i], ends[i], steps[i]);
  }
  n.SetOutput(0, EmitSlice(n, x, box));
}

void SliceWithAttributes(NodeImport& n) {
  const Shape starts = n.Ints("starts");
  const Shape ends = n.Ints("ends");
  SliceBy(n, starts, ends, n.Ints("axes"), {});
}

void Slice(NodeImport& n) {
  const Shape starts = n.KnownInts(1, "the starts");
  const Shape ends = n.KnownInts(2, "the ends");
  const Shape axes = n.Has(3) ? n.KnownInts(3, "the axes") : Shape();
  SliceBy(n, starts, ends, axes, n.Has(4) ? n.KnownInts(4, "the steps") : Shape());
}

void SplitInto(NodeImport& n, size_t axis, const Shape& sizes) {
  const ValueId x = n.Input(0);
  const Shape shape = n.ShapeOf(x);
  int64_t total = 0;
  for (int64_t size : sizes) {
    if (size < 0 || __builtin_add_overflow(total, size, &total))
      return n.Invalid(fmt::format("a size in split [{}] is out of range", fmt::join(sizes, ",")));
  }
  if (sizes.size() != n.num_outputs() || total != shape[axis]) {
    return n.Invalid(fmt::format("split [{}] does not divide axis {} of extent {} into {} outputs",
                                 fmt::join(sizes, ","), axis, shape[axis], n.num_outputs()));
  }
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Box box = WholeBox(shape);
    box.starts[axis] = sizes[i] == 0 ? 0 : start;
    box.sizes[axis] = sizes[i];
    start += sizes[i];
    if (n.Wants(i)) n.SetOutput(i, EmitSlice(n, x, box));
  }
}

/// Equal parts; the last may be smaller (opset 18).
Shape EqualParts(NodeImport& n, int64_t extent, int64_t parts) {
  if (parts < 1 || parts != static_cast<int64_t>(n.num_outputs()) ||
      (n.opset() < 18 && extent % parts != 0)) {
    n.Invalid(fmt::format("extent {} does not split into {} equal parts for {} outputs", extent,
                          parts, n.num_outputs()));
    return {};
  }
  const int64_t part = (extent + parts - 1) / parts;
  Shape sizes(static_cast<size_t>(parts), part);
  sizes.back() = extent - part * (parts - 1);
  return sizes;
}

void SplitBy(NodeImport& n, Shape sizes) {
  const ValueId x = n.Input(0);
  const int64_t axis = n.Axis(n.Int("axis", 0), n.RankOf(x));
  if (!n.ok()) return;
  const auto outputs = static_cast<int64_t>(n.num_outputs());
  const int64_t parts = n.opset() >= 18 ? n.Int("num_outputs", outputs) : outputs;
  if (sizes.empty()) sizes = EqualParts(n, n.ShapeOf(x)[static_cast<size_t>(axis)], parts);
  if (n.ok()) SplitInto(n, static_cast<size_t>(axis), sizes);
}

void SplitWithAttribute(NodeImport& n) { SplitBy(n, n.Ints("split")); }
void Split(NodeImport& n) { SplitBy(n, n.Has(1) ? n.KnownInts(1, "the sizes") : Shape()); }

/// A tensor without elements becomes what it is padded with.
void PadNothing(NodeImport& n, const Shape& begin, const Shape& end, ValueId value) {
  constexpr int64_t kMaxExtent = int64_t{1} << 44;
  const ValueId x = n.Input(0);
  Shape shape;
  for (int64_t extent : n.ShapeOf(x)) {
    const size_t i = shape.size();
    shape.push_back(extent + begin[i] + end[i]);
    if (shape[i] < 0 || shape[i] > kMaxExtent)
      return n.Invalid(
          fmt::format("pads {} and {} do not fit extent {}", begin[i], end[i], extent));
  }
  const ValueId filling = value == kNoValue ? n.Scalar(n.DTypeOf(x), 0) : value;
  n.SetOutput(0, n.Expand(filling, shape));
}

void PadBy(NodeImport& n, const Shape& pads, const Shape& axes, ValueId value) {
  const ValueId x = n.Input(0);
  if (!n.ok()) return;
  const size_t rank = n.RankOf(x);
  if (pads.size() != 2 * axes.size())
    return n.Invalid(fmt::format("pads must have {} values, two for each axis, not {}",
                                 2 * axes.size(), pads.size()));
  Shape begin(rank, 0);
  Shape end(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    begin[static_cast<size_t>(axes[i])] = pads[i];
    end[static_cast<size_t>(axes[i])] = pads[axes.size() + i];
    if (std::max(std::abs(pads[i] / 2), std::abs(pads[axes.size() + i] / 2)) > (int64_t{1} << 40)) {
      return n.Invalid(fmt::format("pads [{}] overflow", fmt::join(pads, ",")));
    }
  }
  Attributes attributes{
      {"begin", begin},
      {"end", end},
      {"mode", n.Choice("mode", "constant", {"constant", "reflect", "edge", "wrap"})}};
  const auto is_zero = [](int64_t pad) { return pad == 0; };
  if (std::ranges::all_of(begin, is_zero) && std::ranges::all_of(end, is_zero)) {
    return n.SetOutput(0, x);
  }
  if (n.TypeOf(x).NumElements() == 0 && n.String("mode", "constant") == "constant")
    return PadNothing(n, begin, end, value);
  std::vector<ValueId> inputs = {x};
  if (value != kNoValue) inputs.push_back(value);
  n.SetOutput(0, n.Emit("Pad", inputs, std::move(attributes)));
}

Shape AllAxes(size_t rank) {
  Shape axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

void PadWithAttributes(NodeImport& n) {
  const ValueId x = n.Input(0);
  const double value = n.Float("value", 0);
  const ValueId fill = value == 0 ? kNoValue : n.Scalar(n.DTypeOf(x), value);
  PadBy(n, n.Ints("pads"), AllAxes(n.RankOf(x)), fill);
}

void Pad(NodeImport& n) {
  const ValueId x = n.Input(0);
  const size_t rank = n.RankOf(x);
  const Shape pads = n.KnownInts(1, "the pads");
  const Shape axes = n.Has(3) ? n.Axes(n.KnownInts(3, "the axes"), rank) : AllAxes(rank);
  const ValueId value = n.OptionalInput(2);
  PadBy(n, pads, axes, value == kNoValue ? kNoValue : n.Reshape(value, {}));
}

constexpr Handler kHandlers[] = {
    {"Slice", 1, 1, 1, 1, SliceWithAttributes},
    {"Slice", 10, 3, 5, 1, Slice},
    {"Split", 2, 1, 1, kAnyNumber, SplitWithAttribute},
    {"Split", 13, 1, 2, kAnyNumber, Split},
    {"Pad", 2, 1, 1, 1, PadWithAttributes},
    {"Pad", 11, 2, 4, 1, Pad},
};

}  // namespace

std::span<const Handler> SliceHandlers() { return kHandlers; }

}  // namespace hone::graph::onnx_import
