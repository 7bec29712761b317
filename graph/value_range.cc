#include "graph/value_range.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace hone::graph {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::UnaryOp;
using ir::ValueRange;

/// Closed bounds, which compose more easily than half-open ones.
struct Bounds {
  double low = 0;
  double high = 0;
  bool not_negative() const { return low >= 0; }
  bool not_positive() const { return high <= 0; }
};

Bounds BoundsOf(const ValueRange& range, DType dtype) {
  return {range.low, ir::IsFloat(dtype) ? range.high : range.high - 1};
}

/// As a range of the dtype. What is too wide to be drawn from usefully keeps its sign only.
ValueRange RangeOf(Bounds b, DType dtype) {
  if (ir::IsBool(dtype)) return {0, 2};
  if (!(b.low <= b.high)) return DefaultRange(dtype);
  if (ir::IsInteger(dtype)) {
    constexpr double kMax = 9e15;
    if (std::max(std::abs(b.low), std::abs(b.high)) > kMax) return DefaultRange(dtype);
    return {std::floor(b.low), std::floor(b.high) + 1};
  }
  constexpr double kMax = 1e4;
  if (std::max(std::abs(b.low), std::abs(b.high)) > kMax) {
    return {b.not_negative() ? 0.0 : -1.0, b.not_positive() ? 0.0 : 1.0};
  }
  return {b.low, b.high > b.low ? b.high : b.low + 1e-3};
}

Bounds Union(const Bounds& a, const Bounds& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Bounds Corners(std::initializer_list<double> values) {
  return {std::min(values), std::max(values)};
}

/// The sign of a product or quotient, with values of order one.
Bounds SignOf(const Bounds& a, const Bounds& b) {
  const bool positive =
      (a.not_negative() && b.not_negative()) || (a.not_positive() && b.not_positive());
  const bool negative =
      (a.not_negative() && b.not_positive()) || (a.not_positive() && b.not_negative());
  return {positive ? 0.0 : -1.0, negative ? 0.0 : 1.0};
}

Bounds OfUnary(UnaryOp fn, const Bounds& x) {
  const double magnitude = std::max(std::abs(x.low), std::abs(x.high));
  switch (fn) {
    case UnaryOp::kNeg: return {-x.high, -x.low};
    case UnaryOp::kAbs:
      return {x.not_negative() ? x.low : x.not_positive() ? -x.high : 0, magnitude};
    case UnaryOp::kSqrt: return {std::sqrt(std::max(x.low, 0.0)), std::sqrt(std::max(x.high, 0.0))};
    case UnaryOp::kExp: return {std::exp(std::min(x.low, 4.0)), std::exp(std::min(x.high, 4.0))};
    case UnaryOp::kRsqrt: return {0, 1};
    case UnaryOp::kSigmoid: return {0, 1};
    case UnaryOp::kTanh:
    case UnaryOp::kErf:
    case UnaryOp::kSign: return {x.not_negative() ? 0.0 : -1.0, x.not_positive() ? 0.0 : 1.0};
    case UnaryOp::kFloor:
    case UnaryOp::kTrunc:
    case UnaryOp::kCeil:
    case UnaryOp::kRound: return {std::floor(x.low), std::ceil(x.high)};
    case UnaryOp::kCosh: return {1, 2};
    default: return {-1, 1};
  }
}

Bounds OfBinary(BinaryOp fn, const Bounds& a, const Bounds& b, bool square) {
  switch (fn) {
    case BinaryOp::kAdd: return {a.low + b.low, a.high + b.high};
    case BinaryOp::kSub: return {a.low - b.high, a.high - b.low};
    case BinaryOp::kMul: {
      if (square) return {0, std::max(a.low * a.low, a.high * a.high)};
      return Corners({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
    }
    case BinaryOp::kMin: return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case BinaryOp::kMax: return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case BinaryOp::kMod: {
      if (b.low > 0) return {0, b.high};
      return b;
    }
    case BinaryOp::kDiv:
    case BinaryOp::kTruncDiv: {
      if (b.low > 0 || b.high < 0)
        return Corners({a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high});
      return SignOf(a, b);
    }
    case BinaryOp::kPow: {
      const bool even = b.low == b.high && std::fmod(b.low, 2) == 0;
      if (a.not_negative() || even)
        return {0, std::max(1.0, std::pow(std::max(std::abs(a.low), std::abs(a.high)),
                                          std::min(b.high, 4.0)))};
      return {-1, 1};
    }
    default: return Union(a, b);
  }
}

std::optional<Bounds> OfReduce(const std::string& fn, const Bounds& x) {
  if (fn == "mean" || fn == "max" || fn == "min" || fn == "sum") return x;
  if (fn == "prod") return SignOf(x, x);
  if (fn == "l1" || fn == "l2" || fn == "sum_square")
    return Bounds{0, std::max(std::abs(x.low), std::abs(x.high))};
  return std::nullopt;
}

Bounds OfActivation(const OpCall& call, const std::string& fn, const Bounds& x) {
  if (fn == "hard_sigmoid") return {0, 1};
  if (fn == "silu" && call.Float("alpha", 1) < 0) return Union(x, {0, 0});
  // Below zero the others come back up to it.
  return x.not_negative() ? x : Bounds{-0.3, std::max(x.high, 0.0)};
}

bool MovesOnly(std::string_view op) {
  static constexpr std::string_view kOps[] = {
      "Transpose", "Reshape",         "Slice",    "Expand", "Tile",
      "Gather",    "GatherElements",  "GatherND", "Resize", "Pad",
      "Trilu",     "ReverseSequence", "Pool",     "Concat", "TopK"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

/// The bounds of output 0; nothing when only the dtype is known.
std::optional<Bounds> FirstOutput(const OpCall& call, const std::vector<Bounds>& in, bool square) {
  const std::string fn = call.String("fn", "");
  if (call.op == "Unary") return OfUnary(*ir::ParseUnaryOp(fn), in[0]);
  if (call.op == "Binary") return OfBinary(*ir::ParseBinaryOp(fn), in[0], in[1], square);
  if (call.op == "Activation") return OfActivation(call, fn, in[0]);
  if (call.op == "Select") return Union(in[1], in[2]);
  if (call.op == "Causal") return Union(in[0], in[1]);
  if (call.op == "Cast") return in[0];
  if (call.op == "Reduce") return OfReduce(fn, in[0]);
  if (call.op == "Softmax") return call.Int("log", 0) != 0 ? Bounds{-4, 0} : Bounds{0, 1};
  if (call.op == "ArgReduce") return std::nullopt;
  if (call.op == "MatMul" || call.op == "Conv" || call.op == "ConvTranspose")
    return SignOf(in[0], in[1]);
  if (!MovesOnly(call.op)) return std::nullopt;
  Bounds bounds = in[0];
  const bool pads = call.op == "Pad" || call.op == "Trilu";
  if (call.op == "Concat") {
    for (const Bounds& other : in) bounds = Union(bounds, other);
  }
  if (pads) bounds = Union(bounds, call.op == "Pad" && in.size() > 1 ? in[1] : Bounds{0, 0});
  return bounds;
}

/// Extent of the axis that ArgReduce and TopK give indices of.
double ExtentOfAxis(const OpCall& call, int64_t otherwise) {
  const auto rank = static_cast<int64_t>(call.inputs[0].type.shape.size());
  const int64_t axis = call.Int("axis", otherwise);
  const int64_t at = axis < 0 ? axis + rank : axis;
  return at >= 0 && at < rank
             ? static_cast<double>(call.inputs[0].type.shape[static_cast<size_t>(at)])
             : 1;
}

}  // namespace

ValueRange DefaultRange(DType dtype) {
  if (ir::IsBool(dtype)) return {0, 2};
  if (dtype == DType::kI8) return {-128, 128};
  if (dtype == DType::kU8) return {0, 256};
  if (ir::IsInteger(dtype)) return {0, 16};
  return {-1, 1};
}

ValueRange RangeOfConstant(const TensorData& data) {
  const int64_t count = data.type.NumElements();
  if (count < 1 || count > ir::kMaxImmediate) return DefaultRange(data.type.dtype);
  std::optional<Bounds> bounds;
  for (int64_t i = 0; i < count; ++i) {
    const double value = data.DoubleAt(i);
    if (!std::isfinite(value)) continue;  // masks: what they leave decides
    bounds = bounds ? Union(*bounds, {value, value}) : Bounds{value, value};
  }
  if (!bounds) return DefaultRange(data.type.dtype);
  return {bounds->low, ir::IsFloat(data.type.dtype) ? bounds->high : bounds->high + 1};
}

void SetRanges(Graph& graph, const Node& node) {
  const OpCall call = MakeCall(graph, node);
  std::vector<Bounds> bounds;
  for (ValueId id : node.inputs) {
    if (id == kNoValue) {
      bounds.emplace_back();
      continue;
    }
    const Value& value = graph.values[static_cast<size_t>(id)];
    const bool known = value.constant != nullptr;
    bounds.push_back(
        BoundsOf(known ? RangeOfConstant(*value.constant) : value.range, value.type.dtype));
  }
  const bool square = node.inputs.size() == 2 && node.inputs[0] == node.inputs[1];
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    Value& value = graph.values[static_cast<size_t>(node.outputs[i])];
    if (call.op == "ArgReduce" || (call.op == "TopK" && i == 1)) {
      value.range = {0, ExtentOfAxis(call, call.op == "TopK" ? -1 : 0)};
    } else if (call.op == "Pool" && i == 1) {
      value.range = {0, static_cast<double>(call.inputs[0].type.NumElements())};
    } else {
      const auto own = i == 0 && !bounds.empty() ? FirstOutput(call, bounds, square) : std::nullopt;
      // Quantised values use their bytes; the ranges of equal layers would be none of equal text.
      const bool byte = ir::IsInteger(value.type.dtype) && ir::SizeOf(value.type.dtype) == 1;
      value.range = own && !byte ? RangeOf(*own, value.type.dtype) : DefaultRange(value.type.dtype);
    }
  }
}

namespace {

/// The smallest extent that values of `start` index, through nodes that hand their first input on.
std::optional<double> IndexedExtent(const Graph& graph,
                                    const std::vector<std::vector<NodeId>>& readers,
                                    ValueId start) {
  std::optional<double> extent;
  const auto limit = [&](int64_t value) {
    extent = std::min(extent.value_or(static_cast<double>(value)), static_cast<double>(value));
  };
  std::set<ValueId> seen = {start};
  std::vector<ValueId> open = {start};
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    for (NodeId id : readers[static_cast<size_t>(value)]) {
      const Node& node = graph.nodes[static_cast<size_t>(id)];
      const OpCall call = MakeCall(graph, node);
      const bool indexes = node.inputs.size() > 1 && node.inputs[1] == value;
      const std::vector<int64_t>& data = call.inputs[0].type.shape;
      if (indexes &&
          (node.op == "Gather" || node.op == "GatherElements" || node.op == "ScatterElements")) {
        limit(static_cast<int64_t>(ExtentOfAxis(call, 0)));
      } else if (indexes && (node.op == "GatherND" || node.op == "ScatterND")) {
        for (int64_t length : data) limit(length);
      } else if ((node.op == "Cast" || MovesOnly(node.op)) && node.inputs[0] == value &&
                 node.op != "Pool") {
        for (ValueId output : node.outputs) {
          if (output != kNoValue && seen.insert(output).second) open.push_back(output);
        }
      }
    }
  }
  return extent;
}

}  // namespace

void InferRanges(Graph& graph, const std::vector<ValueId>& unstated) {
  const auto readers = graph.Readers();
  for (ValueId input : unstated) {
    Value& value = graph.values[static_cast<size_t>(input)];
    if (!ir::IsInteger(value.type.dtype)) continue;
    if (const auto extent = IndexedExtent(graph, readers, input)) value.range = {0, *extent};
  }
  for (const Node& node : graph.nodes) SetRanges(graph, node);
}

}  // namespace hone::graph
