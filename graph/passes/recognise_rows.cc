#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

using Shape = std::vector<int64_t>;

/// A reduction with kept dimensions over the trailing axes.
struct Rows {
  ValueId source = kNoValue;
  Shape axes;
};

/// x normalised without scale and bias, as found.
struct Normal {
  ValueId source = kNoValue;
  Shape axes;
  double epsilon = 0;
  std::string kind;
};

class RowRecogniser {
 public:
  explicit RowRecogniser(Graph& graph)
      : rewriter_(graph), graph_(graph), readers_(graph.values.size()) {
    for (const Node& node : rewriter_.old_nodes()) {
      for (ValueId input : node.inputs) {
        if (input != kNoValue) ++readers_[input];
      }
    }
    for (ValueId output : graph.outputs) ++readers_[output];
  }

  absl::StatusOr<int> Run() {
    int changes = 0;
    for (const Node& old : rewriter_.old_nodes()) {
      const Node node = rewriter_.Mapped(old);
      HONE_ASSIGN_OR_RETURN(bool found, Softmax(node));
      if (!found) {
        HONE_ASSIGN_OR_RETURN(found, ZeroedSoftmax(node, old));
      }
      if (!found) {
        HONE_ASSIGN_OR_RETURN(found, Normalise(node));
      }
      if (!found) {
        HONE_ASSIGN_OR_RETURN(found, FoldedNormalise(node));
      }
      if (!found) {
        HONE_ASSIGN_OR_RETURN(found, ScaleOrBias(node, old));
      }
      if (found) {
        ++changes;
      } else {
        rewriter_.Keep(old);
      }
    }
    HONE_RETURN_IF_ERROR(rewriter_.Finish());
    return changes;
  }

 private:
  const TensorType& TypeOf(ValueId id) const { return rewriter_.TypeOf(id); }

  std::optional<Rows> ReductionOf(ValueId id, const char* fn) const {
    // The dimensions may also be lost and come back by a reshape.
    const Node* reshaped = rewriter_.ProducerOf(id, "Reshape");
    const Node* node =
        rewriter_.ProducerOf(reshaped != nullptr ? reshaped->inputs[0] : id, "Reduce", fn);
    if (node == nullptr) return std::nullopt;
    const OpCall call = MakeCall(graph_, *node);
    const ValueId source = node->inputs[0];
    const int64_t rank = static_cast<int64_t>(TypeOf(source).shape.size());
    Shape axes = call.Ints("axes");
    for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
    std::sort(axes.begin(), axes.end());
    Shape kept = TypeOf(source).shape;
    for (int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
    if (TypeOf(id).shape != kept) return std::nullopt;
    return Rows{source, axes};
  }

  // exp(x - max(x)) / sum(exp(x - max(x))), with or without the maximum, over one axis.
  absl::StatusOr<bool> Softmax(const Node& node) {
    if (node.op != "Binary" || MakeCall(graph_, node).String("fn", "") != "div") return false;
    const std::optional<Rows> sum = ReductionOf(node.inputs[1], "sum");
    if (!sum || sum->source != node.inputs[0] || sum->axes.size() != 1) return false;
    const Node* power = rewriter_.ProducerOf(sum->source, "Unary", "exp");
    if (power == nullptr) return false;
    ValueId x = power->inputs[0];
    if (const Node* shifted = rewriter_.ProducerOf(x, "Binary", "sub")) {
      const std::optional<Rows> top = ReductionOf(shifted->inputs[1], "max");
      if (top && top->source == shifted->inputs[0] && top->axes == sum->axes)
        x = shifted->inputs[0];
    }
    if (TypeOf(x) != TypeOf(node.outputs[0])) return false;
    HONE_ASSIGN_OR_RETURN(ValueId softmax,
                          rewriter_.Add("Softmax", node.origin, {x}, {{"axis", sum->axes[0]}}));
    rewriter_.Replace(node.outputs[0], softmax);
    return true;
  }

  // p = softmax(x), isnan(p) ? 0 : p: PyTorch's exporter writes attention with a mask so.
  absl::StatusOr<bool> ZeroedSoftmax(const Node& node, const Node& old) {
    constexpr int kTest = 0, kZero = 1, kValue = 2;
    if (node.op != "Select") return false;
    const Node* test = rewriter_.ProducerOf(node.inputs[kTest], "Unary", "isnan");
    const Node* softmax = rewriter_.ProducerOf(node.inputs[kValue], "Softmax");
    if (test == nullptr || softmax == nullptr || test->inputs[0] != node.inputs[kValue] ||
        MakeCall(graph_, *softmax).Int("log", 0) != 0 ||
        rewriter_.Uniform(node.inputs[kZero]) != 0.0 || readers_[old.inputs[kValue]] != 2 ||
        TypeOf(node.inputs[kValue]) != TypeOf(node.outputs[0]))
      return false;
    Node zeroed = *softmax;
    zeroed.outputs.clear();
    zeroed.attributes["zero_nan"] = int64_t{1};
    HONE_ASSIGN_OR_RETURN(const ValueId result, rewriter_.Add(std::move(zeroed)));
    rewriter_.Replace(node.outputs[0], result);
    return true;
  }

  // The value under a square: x·x or pow(x, 2).
  ValueId SquareOf(ValueId id) const {
    if (const Node* product = rewriter_.ProducerOf(id, "Binary", "mul")) {
      return product->inputs[0] == product->inputs[1] ? product->inputs[0] : kNoValue;
    }
    const Node* power = rewriter_.ProducerOf(id, "Binary", "pow");
    return power != nullptr && rewriter_.Uniform(power->inputs[1]) == 2.0 ? power->inputs[0]
                                                                          : kNoValue;
  }

  // `root` is √(mean(d²) + epsilon): gives d's reduction and the epsilon.
  struct Deviation {
    ValueId squared = kNoValue;
    Shape axes;
    double epsilon = 0;
  };
  std::optional<Deviation> DeviationOf(ValueId variance) const {
    const Node* sum = rewriter_.ProducerOf(variance, "Binary", "add");
    if (sum == nullptr) return std::nullopt;
    for (size_t k = 0; k < 2; ++k) {
      const std::optional<double> epsilon = rewriter_.Uniform(sum->inputs[1 - k]);
      const std::optional<Rows> mean = ReductionOf(sum->inputs[k], "mean");
      if (!epsilon || !mean) continue;
      const ValueId squared = SquareOf(mean->source);
      if (squared != kNoValue) return Deviation{squared, mean->axes, *epsilon};
    }
    return std::nullopt;
  }

  // d / √(…), d · (1/√(…)) in the forms that SimplifyArithmetic leaves.
  std::optional<Normal> NormalOf(const Node& node) const {
    if (node.op != "Binary") return std::nullopt;
    const std::string fn = MakeCall(graph_, node).String("fn", "");
    if (fn != "div" && fn != "mul") return std::nullopt;
    for (size_t k = 0; k < (fn == "mul" ? 2U : 1U); ++k) {
      const Node* root =
          rewriter_.ProducerOf(node.inputs[1 - k], "Unary", fn == "div" ? "sqrt" : "rsqrt");
      if (root == nullptr) continue;
      const std::optional<Deviation> deviation = DeviationOf(root->inputs[0]);
      if (!deviation) continue;
      const ValueId numerator = node.inputs[k];
      Normal normal{numerator, deviation->axes, deviation->epsilon, "rms"};
      if (deviation->squared != numerator) continue;
      if (const Node* centred = rewriter_.ProducerOf(numerator, "Binary", "sub")) {
        const std::optional<Rows> mean = ReductionOf(centred->inputs[1], "mean");
        if (mean && mean->source == centred->inputs[0] && mean->axes == deviation->axes) {
          normal.source = centred->inputs[0];
          normal.kind = "layer";
        }
      }
      return normal;
    }
    return std::nullopt;
  }

  absl::StatusOr<bool> Normalise(const Node& node) {
    const std::optional<Normal> normal = NormalOf(node);
    if (!normal || TypeOf(normal->source) != TypeOf(node.outputs[0])) return false;
    HONE_ASSIGN_OR_RETURN(ValueId result, rewriter_.Add("Normalise", node.origin, {normal->source},
                                                        {{"axes", normal->axes},
                                                         {"epsilon", normal->epsilon},
                                                         {"kind", normal->kind}}));
    rewriter_.Replace(node.outputs[0], result);
    return true;
  }

  // What multiplies x: 1/√(mean((x - m)²) + epsilon), times a scale.
  struct Factor {
    ValueId centred = kNoValue;
    Deviation deviation;
    ValueId scale = kNoValue;
  };
  std::optional<Factor> FactorOf(ValueId id) const {
    const Node* product = rewriter_.ProducerOf(id, "Binary", "mul");
    for (size_t k = 0; k < 2; ++k) {
      const ValueId root_id = product == nullptr ? id : product->inputs[k];
      const ValueId scale = product == nullptr ? kNoValue : product->inputs[1 - k];
      const Node* root = rewriter_.ProducerOf(root_id, "Unary", "rsqrt");
      if (root == nullptr) continue;
      if (scale != kNoValue && graph_.values[scale].constant == nullptr) continue;
      if (const std::optional<Deviation> deviation = DeviationOf(root->inputs[0]))
        return Factor{deviation->squared, *deviation, scale};
    }
    return std::nullopt;
  }

  // x · f + (b - m · f), where m is the mean and f as above: how TensorFlow writes a layer norm.
  absl::StatusOr<bool> FoldedNormalise(const Node& node) {
    if (node.op != "Binary" || MakeCall(graph_, node).String("fn", "") != "add") return false;
    for (size_t k = 0; k < 2; ++k) {
      const Node* scaled = rewriter_.ProducerOf(node.inputs[k], "Binary", "mul");
      const Node* shift = rewriter_.ProducerOf(node.inputs[1 - k], "Binary", "sub");
      if (scaled == nullptr || shift == nullptr) continue;
      const Node* moved = rewriter_.ProducerOf(shift->inputs[1], "Binary", "mul");
      const ValueId bias = shift->inputs[0];
      if (moved == nullptr || graph_.values[bias].constant == nullptr) continue;
      for (size_t j = 0; j < 4; ++j) {
        const ValueId x = scaled->inputs[j % 2];
        const ValueId f = scaled->inputs[1 - j % 2];
        const ValueId m = moved->inputs[j / 2];
        if (moved->inputs[1 - j / 2] != f || TypeOf(x) != TypeOf(node.outputs[0])) continue;
        const std::optional<Factor> factor = FactorOf(f);
        const std::optional<Rows> mean = ReductionOf(m, "mean");
        const Node* centred =
            factor ? rewriter_.ProducerOf(factor->centred, "Binary", "sub") : nullptr;
        if (!mean || centred == nullptr || mean->source != x || centred->inputs[0] != x ||
            centred->inputs[1] != m || mean->axes != factor->deviation.axes)
          continue;
        HONE_ASSIGN_OR_RETURN(ValueId result,
                              rewriter_.Add("Normalise", node.origin, {x, factor->scale, bias},
                                            {{"axes", mean->axes},
                                             {"epsilon", factor->deviation.epsilon},
                                             {"kind", std::string("layer")}}));
        rewriter_.Replace(node.outputs[0], result);
        return true;
      }
    }
    return false;
  }

  // Normalise(x) · s and Normalise(x, s) + b, where nobody else reads the value before.
  absl::StatusOr<bool> ScaleOrBias(const Node& node, const Node& old) {
    if (node.op != "Binary") return false;
    const std::string fn = MakeCall(graph_, node).String("fn", "");
    if (fn != "mul" && fn != "add") return false;
    for (size_t k = 0; k < 2; ++k) {
      const Node* inner = rewriter_.ProducerOf(node.inputs[k], "Normalise");
      const ValueId operand = node.inputs[1 - k];
      if (inner == nullptr || readers_[old.inputs[k]] != 1 ||
          graph_.values[operand].constant == nullptr)
        continue;
      if (TypeOf(node.inputs[k]) != TypeOf(node.outputs[0]) ||
          inner->inputs.size() > (fn == "mul" ? 1U : 2U))
        continue;
      Node whole = *inner;
      whole.outputs.clear();
      if (fn == "add") whole.inputs.resize(2, kNoValue);
      whole.inputs.push_back(operand);
      HONE_ASSIGN_OR_RETURN(ValueId result, rewriter_.Add(std::move(whole)));
      rewriter_.Replace(node.outputs[0], result);
      return true;
    }
    return false;
  }

  Rewriter rewriter_;
  Graph& graph_;
  std::vector<int> readers_;
};

}  // namespace

absl::StatusOr<int> RecogniseRows(Graph& graph, const PassContext&) {
  return RowRecogniser(graph).Run();
}

}  // namespace hone::graph
