#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/op.h"
#include "graph/passes/matcher.h"
#include "graph/passes/passes.h"
#include "graph/passes/quantised.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

using ir::DType;
using Shape = std::vector<int64_t>;

/// A product of two dequantised operands: `weights` are known and symmetric, with one scale or one
/// per column of the result.
struct IntegerProduct {
  Dequantised data, weights;
  bool padded = false;  ///< with zero points, and so the operator itself must know a zero point
  int64_t more_channels = 0;  ///< of zeros, so that four divide them
};

/// A matrix product of two dequantised operands that are both computed.
struct ActivationProduct {
  Dequantised a, b;
};

/// A known scalar, the second operand in the arithmetic of a Q or DQ: it becomes a tensor along the
/// channels, so that equal layers are equal Workloads.
struct SpreadScalar {
  bool divides = false;  ///< x / s, to become x · (1 / s)
};

struct Plan {
  std::map<NodeId, IntegerProduct> products;
  std::map<NodeId, ActivationProduct> of_activations;
  /// What depthwise convolutions read: there are no terms to multiply four at a time, but bytes are
  /// a quarter of what is read, and f32 holds their sums of products exactly.
  std::map<NodeId, Dequantised> depthwise;
  std::map<NodeId, SpreadScalar> scalars;

  int size() const { return static_cast<int>(products.size() + of_activations.size()); }
};

/// Whole tensors that are multiplied four bytes at a time, and sums that i32 holds.
constexpr int64_t kBytesAtATime = 4;
constexpr int64_t kMostTerms = std::numeric_limits<int32_t>::max() / (255 * 128);
/// Rows below which copying the other operand into panels takes longer than multiplying.
constexpr int64_t kFewestRows = 8;

class QuantisedFinder {
 public:
  explicit QuantisedFinder(const Graph& graph)
      : graph_(graph), matcher_(graph), quantised_(graph, matcher_) {}

  Plan Run() {
    Plan plan;
    for (const Node& node : graph_.nodes) {
      if (node.op != "MatMul" && node.op != "Conv") continue;
      if (auto product = ProductOf(node)) plan.products[matcher_.IdOf(node)] = *product;
      if (auto product = OfActivations(node)) plan.of_activations[matcher_.IdOf(node)] = *product;
      if (auto data = OfDepthwise(node)) plan.depthwise[matcher_.IdOf(node)] = *data;
    }
    if (plan.size() == 0) return plan;
    for (const Node& node : graph_.nodes) FindScalars(node, &plan);
    return plan;
  }

 private:
  const TensorType& TypeOf(ValueId id) const { return graph_.values[id].type; }

  static bool IsZero(const ConstantPtr& zero) {
    if (zero == nullptr) return true;
    const std::vector<int64_t> values = zero->AsInt64s();
    return std::ranges::all_of(values, [](int64_t v) { return v == 0; });
  }

  std::optional<IntegerProduct> ProductOf(const Node& node) const {
    const auto data = quantised_.DequantisedAt(node.inputs[0]);
    const auto weights = quantised_.DequantisedAt(node.inputs[1]);
    if (!data || !weights || quantised_.Known(data->bytes) != nullptr ||
        quantised_.Known(weights->bytes) == nullptr)
      return std::nullopt;
    if (TypeOf(data->scale).NumElements() != 1 || !IsZero(weights->zero)) return std::nullopt;
    if (data->zero != nullptr && data->zero->type.NumElements() != 1) return std::nullopt;
    const OpCall call = MakeCall(graph_, node);
    const Shape& w = TypeOf(weights->bytes).shape;
    const Shape& scale = TypeOf(weights->scale).shape;
    IntegerProduct product{*data, *weights};
    int64_t terms = 1, columns = 0;
    size_t column = 0;  // of the weights' dimensions
    if (node.op == "MatMul") {
      if (w.size() != 2 || call.Int("transpose_a", 0) != 0) return std::nullopt;
      column = call.Int("transpose_b", 0) != 0 ? 0 : 1;
      terms = w[1 - column];
      if (terms % kBytesAtATime != 0) return std::nullopt;
    } else {
      if (call.String("layout", "nchw") != "nchw") return std::nullopt;
      product.more_channels = (kBytesAtATime - w[1] % kBytesAtATime) % kBytesAtATime;
      if (product.more_channels > 0 && call.Int("group", 1) != 1) return std::nullopt;
      for (size_t d = 1; d < w.size(); ++d) terms *= w[d];
      const Shape pads = call.Ints("pads");
      product.padded = std::ranges::any_of(pads, [](int64_t p) { return p != 0; });
    }
    columns = w[column];
    const bool per_column = scale.size() == w.size() && scale[column] == columns &&
                            TypeOf(weights->scale).NumElements() == columns;
    if (!per_column && TypeOf(weights->scale).NumElements() != 1) return std::nullopt;
    if (terms > kMostTerms) return std::nullopt;
    return product;
  }

  std::optional<ActivationProduct> OfActivations(const Node& node) const {
    if (node.op != "MatMul") return std::nullopt;
    const auto a = quantised_.DequantisedAt(node.inputs[0]);
    const auto b = quantised_.DequantisedAt(node.inputs[1]);
    if (!a || !b) return std::nullopt;
    for (const Dequantised* d : {&*a, &*b}) {
      if (quantised_.Known(d->bytes) != nullptr || TypeOf(d->scale).NumElements() != 1 ||
          (d->zero != nullptr && d->zero->type.NumElements() != 1))
        return std::nullopt;
    }
    const Shape& result = TypeOf(node.outputs[0]).shape;
    if (result.size() < 2 || result[result.size() - 2] < kFewestRows) return std::nullopt;
    const Shape& left = TypeOf(node.inputs[0]).shape;
    const bool turned = MakeCall(graph_, node).Int("transpose_a", 0) != 0;
    if (left[left.size() - (turned ? 2 : 1)] > kMostTerms / 2) return std::nullopt;
    return ActivationProduct{*a, *b};
  }

  std::optional<Dequantised> OfDepthwise(const Node& node) const {
    const auto data = quantised_.DequantisedAt(node.inputs[0]);
    if (node.op != "Conv" || !data || TypeOf(data->scale).NumElements() != 1) return std::nullopt;
    if (data->zero != nullptr && data->zero->type.NumElements() != 1) return std::nullopt;
    const OpCall call = MakeCall(graph_, node);
    const int64_t channels = TypeOf(node.inputs[0]).shape[1];
    const bool depthwise = channels > 1 && call.Int("group", 1) == channels;
    if (!depthwise || call.String("layout", "nchw") != "nchw") return std::nullopt;
    return data;
  }

  /// Scalars of quantising (round(x / s) + z) and dequantising ((q - z) · s).
  void FindScalars(const Node& node, Plan* plan) const {
    if (node.op != "Binary" || TypeOf(node.outputs[0]).shape.size() < 2) return;
    const std::string fn = MakeCall(graph_, node).String("fn", "");
    const ValueId left = node.inputs[0];
    const ValueId right = node.inputs[1];
    if (TypeOf(right).NumElements() != 1 || quantised_.Known(right) == nullptr ||
        quantised_.Known(left) != nullptr)
      return;
    const NodeId id = matcher_.IdOf(node);
    if (fn == "mul" && quantised_.DequantisedAt(node.outputs[0])) plan->scalars[id] = {};
    if (fn == "sub" && IsOfDequantising(node)) plan->scalars[id] = {};
    if (fn == "add" && matcher_.ProducerOf(left, "Unary", "round") != nullptr)
      plan->scalars[id] = {};
    const Node* reader = matcher_.OnlyReader(node.outputs[0]);
    const bool rounds =
        reader != nullptr && matcher_.ProducerOf(reader->outputs[0], "Unary", "round") != nullptr;
    if (fn == "div" && rounds && TypeOf(right).dtype == DType::kF32)
      plan->scalars[id] = {/*divides=*/true};
  }

  bool IsOfDequantising(const Node& difference) const {
    const Node* cast = matcher_.OnlyReader(difference.outputs[0]);
    if (cast == nullptr || cast->op != "Cast") return false;
    const Node* product = matcher_.OnlyReader(cast->outputs[0]);
    return product != nullptr && !IsZero(quantised_.Known(difference.inputs[1])) &&
           quantised_.DequantisedAt(product->outputs[0]).has_value();
  }

  const Graph& graph_;
  const Matcher matcher_;
  const QuantisedMatcher quantised_;
};

class QuantisedRewriter {
 public:
  QuantisedRewriter(Graph& graph, Plan plan)
      : plan_(std::move(plan)), rewriter_(graph), graph_(graph) {}

  absl::StatusOr<int> Run() {
    for (size_t n = 0; n < rewriter_.old_nodes().size(); ++n) {
      const Node node = rewriter_.Mapped(rewriter_.old_nodes()[n]);
      const auto id = static_cast<NodeId>(n);
      if (const auto product = plan_.products.find(id); product != plan_.products.end())
        HONE_RETURN_IF_ERROR(MultiplyBytes(node, product->second));
      else if (const auto pair = plan_.of_activations.find(id); pair != plan_.of_activations.end())
        HONE_RETURN_IF_ERROR(MultiplyActivations(node, pair->second));
      else if (const auto data = plan_.depthwise.find(id); data != plan_.depthwise.end())
        HONE_RETURN_IF_ERROR(ConvolveBytes(node, data->second));
      else if (const auto scalar = plan_.scalars.find(id); scalar != plan_.scalars.end())
        HONE_RETURN_IF_ERROR(Spread(node, scalar->second));
      else
        rewriter_.Keep(rewriter_.old_nodes()[n]);
    }
    HONE_RETURN_IF_ERROR(rewriter_.Finish());
    return plan_.size();
  }

 private:
  const TensorType& TypeOf(ValueId id) const { return graph_.values[id].type; }

  absl::StatusOr<ValueId> Binary(const Node& at, const char* fn, ValueId a, ValueId b) {
    return rewriter_.Add("Binary", at.origin, {a, b}, {{"fn", std::string(fn)}});
  }
  absl::StatusOr<ValueId> Shaped(const Node& at, const char* op, ValueId x, Shape shape) {
    if (TypeOf(x).shape == shape) return x;
    return rewriter_.Add(op, at.origin, {x}, {{"shape", std::move(shape)}});
  }

  /// What broadcasts along the channels of a result of this shape.
  static Shape AlongChannels(const Shape& result) {
    const size_t channel = result.size() >= 4 ? 1 : result.size() - 1;
    Shape shape(result.size() - channel, 1);
    shape[0] = result[channel];
    return shape;
  }

  /// Σ (x - zx) · w = Σ x · w - Σ zx · w: the second sum is a constant.
  absl::Status MultiplyBytes(const Node& node, const IntegerProduct& p) {
    const bool conv = node.op == "Conv";
    const std::string op = conv ? "ConvInteger" : "MatMulInteger";
    HONE_ASSIGN_OR_RETURN(ValueId x, Widened(node, p.data.bytes, p.more_channels));
    HONE_ASSIGN_OR_RETURN(const ValueId w, Widened(node, p.weights.bytes, p.more_channels));
    double zero_point = p.data.zero == nullptr ? 0 : p.data.zero->DoubleAt(0);
    if (TypeOf(x).dtype == DType::kI8) {
      HONE_ASSIGN_OR_RETURN(x, Unsigned(node, x));
      zero_point += 128;
    }
    ValueId zero = kNoValue;
    if (zero_point != 0)
      zero = rewriter_.AddConstant(MakeConstant(TypeOf(x).dtype, {}, {zero_point}));
    const bool pads = p.padded && zero != kNoValue;
    std::vector<ValueId> inputs = {x, w};
    if (pads) inputs.push_back(zero);
    HONE_ASSIGN_OR_RETURN(ValueId sum, rewriter_.Add(op, node.origin, inputs, node.attributes));
    const Shape result = TypeOf(sum).shape;
    const int64_t columns = conv ? result[1] : result.back();
    Shape along(conv ? result.size() - 1 : 1, 1);
    along[0] = columns;
    if (zero != kNoValue && !pads) {
      HONE_ASSIGN_OR_RETURN(const ValueId shift, ZeroPointSum(node, zero, w, along));
      HONE_ASSIGN_OR_RETURN(sum, Binary(node, "sub", sum, shift));
    }
    HONE_ASSIGN_OR_RETURN(ValueId factor, Binary(node, "mul", rewriter_.Mapped(p.data.scale),
                                                 rewriter_.Mapped(p.weights.scale)));
    HONE_ASSIGN_OR_RETURN(
        factor, Shaped(node, TypeOf(factor).NumElements() == columns ? "Reshape" : "Expand", factor,
                       along));
    HONE_ASSIGN_OR_RETURN(ValueId y,
                          rewriter_.Add("Cast", node.origin, {sum}, {{"to", std::string("f32")}}));
    HONE_ASSIGN_OR_RETURN(y, Binary(node, "mul", y, factor));
    if (conv && node.inputs.size() > 2 && node.inputs[2] != kNoValue) {
      HONE_ASSIGN_OR_RETURN(const ValueId bias, Shaped(node, "Reshape", node.inputs[2], along));
      HONE_ASSIGN_OR_RETURN(y, Binary(node, "add", y, bias));
    }
    rewriter_.Replace(node.outputs[0], y);
    return absl::OkStatus();
  }

  /// Signed bytes 128 further up: machines multiply unsigned by signed ones at once, and what
  /// makes the bytes moves them.
  absl::StatusOr<ValueId> Unsigned(const Node& at, ValueId x) {
    const ValueId half = rewriter_.AddConstant(MakeConstant(DType::kI8, {}, {-128.0}));
    HONE_ASSIGN_OR_RETURN(const ValueId moved, Binary(at, "xor", x, half));
    return rewriter_.Add("Cast", at.origin, {moved}, {{"to", std::string("u8")}});
  }

  /// Zero points become tensors along rows and columns, so that equal layers are equal Workloads.
  absl::Status MultiplyActivations(const Node& node, const ActivationProduct& p) {
    const OpCall call = MakeCall(graph_, node);
    const Shape result = TypeOf(node.outputs[0]).shape;
    std::vector<ValueId> inputs, zeros;
    for (const bool first : {true, false}) {
      const Dequantised& d = first ? p.a : p.b;
      ValueId bytes = rewriter_.Mapped(d.bytes);
      const double zero = d.zero == nullptr ? 0 : d.zero->DoubleAt(0);
      const bool turned = call.Int(first ? "transpose_a" : "transpose_b", 0) != 0;
      const size_t inner = TypeOf(bytes).shape.size() - (first != turned ? 1 : 2);
      HONE_ASSIGN_OR_RETURN(bytes, FilledUp(node, bytes, inner, zero));
      inputs.push_back(bytes);
      const int64_t count = result[result.size() - (first ? 2 : 1)];
      const DType dtype = TypeOf(bytes).dtype;
      const std::vector<double> values(static_cast<size_t>(count), zero);
      zeros.push_back(zero == 0 ? kNoValue
                                : rewriter_.AddConstant(MakeConstant(dtype, {count}, values)));
    }
    inputs.insert(inputs.end(), zeros.begin(), zeros.end());
    HONE_ASSIGN_OR_RETURN(const ValueId sum,
                          rewriter_.Add("MatMulInteger", node.origin, inputs, node.attributes));
    HONE_ASSIGN_OR_RETURN(ValueId factor, Binary(node, "mul", rewriter_.Mapped(p.a.scale),
                                                 rewriter_.Mapped(p.b.scale)));
    HONE_ASSIGN_OR_RETURN(factor, Shaped(node, "Reshape", factor, {1}));
    HONE_ASSIGN_OR_RETURN(factor, Shaped(node, "Expand", factor, {result.back()}));
    HONE_ASSIGN_OR_RETURN(ValueId y,
                          rewriter_.Add("Cast", node.origin, {sum}, {{"to", std::string("f32")}}));
    HONE_ASSIGN_OR_RETURN(y, Binary(node, "mul", y, factor));
    rewriter_.Replace(node.outputs[0], y);
    return absl::OkStatus();
  }

  /// The value with its zero point behind, so that bytes at a time divide the dimension: what is
  /// added multiplies to nothing.
  absl::StatusOr<ValueId> FilledUp(const Node& at, ValueId x, size_t dim, double zero) {
    const int64_t more = (kBytesAtATime - TypeOf(x).shape[dim] % kBytesAtATime) % kBytesAtATime;
    if (more == 0) return x;
    const Shape none(TypeOf(x).shape.size(), 0);
    Shape end = none;
    end[dim] = more;
    const ValueId value = rewriter_.AddConstant(MakeConstant(TypeOf(x).dtype, {}, {zero}));
    return rewriter_.Add("Pad", at.origin, {x, value},
                         {{"begin", none}, {"end", end}, {"mode", std::string("constant")}});
  }

  /// Σ scale · (x - zx) · w = scale · Σ (x - zx) · w
  absl::Status ConvolveBytes(const Node& node, const Dequantised& data) {
    const ValueId bytes = rewriter_.Mapped(data.bytes);
    HONE_ASSIGN_OR_RETURN(
        ValueId x, rewriter_.Add("Cast", node.origin, {bytes}, {{"to", std::string("f32")}}));
    if (data.zero != nullptr) {
      const ValueId scalar =
          rewriter_.AddConstant(MakeConstant(DType::kF32, {}, {data.zero->DoubleAt(0)}));
      HONE_ASSIGN_OR_RETURN(const ValueId zero,
                            Shaped(node, "Expand", scalar, AlongChannels(TypeOf(x).shape)));
      HONE_ASSIGN_OR_RETURN(x, Binary(node, "sub", x, zero));
    }
    HONE_ASSIGN_OR_RETURN(ValueId y,
                          rewriter_.Add("Conv", node.origin, {x, node.inputs[1]}, node.attributes));
    const Shape along = AlongChannels(TypeOf(y).shape);
    HONE_ASSIGN_OR_RETURN(const ValueId scalar,
                          Shaped(node, "Reshape", rewriter_.Mapped(data.scale), {1}));
    HONE_ASSIGN_OR_RETURN(const ValueId scale, Shaped(node, "Expand", scalar, along));
    HONE_ASSIGN_OR_RETURN(y, Binary(node, "mul", y, scale));
    if (node.inputs.size() > 2 && node.inputs[2] != kNoValue) {
      HONE_ASSIGN_OR_RETURN(const ValueId bias, Shaped(node, "Reshape", node.inputs[2], along));
      HONE_ASSIGN_OR_RETURN(y, Binary(node, "add", y, bias));
    }
    rewriter_.Replace(node.outputs[0], y);
    return absl::OkStatus();
  }

  /// The value with so many channels of zeros after its own.
  absl::StatusOr<ValueId> Widened(const Node& at, ValueId old, int64_t more_channels) {
    const ValueId x = rewriter_.Mapped(old);
    if (more_channels == 0) return x;
    if (const ConstantPtr& known = graph_.values[x].constant) {
      TensorType type = known->type;
      type.shape[1] += more_channels;
      std::vector<std::byte> bytes(static_cast<size_t>(type.Bytes()));
      const size_t outer = static_cast<size_t>(type.shape[0]);
      const size_t own = known->bytes.size() / outer;
      for (size_t o = 0; o < outer; ++o)
        std::ranges::copy(known->bytes.subspan(o * own, own),
                          bytes.begin() + static_cast<ptrdiff_t>(o * bytes.size() / outer));
      return rewriter_.AddConstant(MakeConstant(std::move(type), std::move(bytes)));
    }
    const Shape none(TypeOf(x).shape.size(), 0);
    Shape end = none;
    end[1] = more_channels;
    return rewriter_.Add("Pad", at.origin, {x},
                         {{"begin", none}, {"end", end}, {"mode", std::string("constant")}});
  }

  /// Σ zx · w per column, by the operator itself on one row or window of zero points.
  absl::StatusOr<ValueId> ZeroPointSum(const Node& node, ValueId zero, ValueId w,
                                       const Shape& along) {
    const Shape weights = TypeOf(w).shape;
    Attributes attributes = node.attributes;
    Shape shape;
    if (node.op == "Conv") {
      shape = weights;
      shape[0] = 1;
      shape[1] *= MakeCall(graph_, node).Int("group", 1);
      attributes["pads"] = Shape(2 * (weights.size() - 2), 0);
      attributes["dilations"] = Shape(weights.size() - 2, 1);
    } else {
      shape = {1, weights[MakeCall(graph_, node).Int("transpose_b", 0) != 0 ? 1 : 0]};
    }
    HONE_ASSIGN_OR_RETURN(const ValueId zeros, Shaped(node, "Expand", zero, shape));
    HONE_ASSIGN_OR_RETURN(const ValueId sum,
                          rewriter_.Add(node.op + "Integer", node.origin, {zeros, w}, attributes));
    return Shaped(node, "Reshape", sum, along);
  }

  absl::Status Spread(const Node& node, const SpreadScalar& scalar) {
    std::vector<ValueId> inputs = node.inputs;
    ValueId& operand = inputs[1];
    Attributes attributes = node.attributes;
    if (scalar.divides) {
      const ValueId one = rewriter_.AddConstant(MakeConstant(DType::kF32, {}, {1.0}));
      HONE_ASSIGN_OR_RETURN(operand, Binary(node, "div", one, operand));
      attributes["fn"] = std::string("mul");
    }
    HONE_ASSIGN_OR_RETURN(
        operand, Shaped(node, "Expand", operand, AlongChannels(TypeOf(node.outputs[0]).shape)));
    HONE_ASSIGN_OR_RETURN(const ValueId value,
                          rewriter_.Add(node.op, node.origin, inputs, attributes));
    rewriter_.Replace(node.outputs[0], value);
    return absl::OkStatus();
  }

  const Plan plan_;
  Rewriter rewriter_;
  Graph& graph_;
};

}  // namespace

absl::StatusOr<int> RecogniseQuantised(Graph& graph, const PassContext&) {
  Plan plan = QuantisedFinder(graph).Run();
  if (plan.size() == 0) return 0;
  return QuantisedRewriter(graph, std::move(plan)).Run();
}

}  // namespace hone::graph
