#include <optional>
#include <string>

#include "graph/passes/matcher.h"
#include "graph/passes/passes.h"
#include "graph/passes/recognised.h"

namespace hone::graph {
namespace {

/// min(max(x, low), high), whichever stands outside.
struct Clamp {
  ValueId x = kNoValue;
  double low = 0;
  double high = 0;
};

/// A result to replace: of hard-sigmoid with these parameters, or of hard-swish.
struct Result {
  NodeId root = -1;
  Attributes attributes;
};

class HardSigmoidFinder {
 public:
  explicit HardSigmoidFinder(const Graph& graph) : graph_(graph), matcher_(graph) {}

  RecognisedActivations Run() {
    for (const Node& node : graph_.nodes) {
      const std::optional<Clamp> clamp = ClampOf(node);
      if (!clamp || clamp->low != 0 || clamp->high <= 0) continue;
      // The hard swish where there is one, else the line of what it is a line of in the end.
      Result best;
      ValueId of = kNoValue;
      for (ValueId x : matcher_.Bases(clamp->x)) {
        const Result result = ResultOf(node, *clamp, x);
        if (result.root < 0) continue;
        best = result;
        of = x;
        if (best.attributes.size() == 1) break;
      }
      if (of != kNoValue) found_[best.root] = {of, best.attributes};
    }
    return std::move(found_);
  }

 private:
  std::optional<Clamp> ClampOf(const Node& node) const {
    if (node.op != "Binary") return std::nullopt;
    for (const bool min_outside : {true, false}) {
      const char* outer = min_outside ? "min" : "max";
      const char* inner = min_outside ? "max" : "min";
      if (matcher_.ProducerOf(node.outputs[0], "Binary", outer) == nullptr) continue;
      for (size_t k = 0; k < 2; ++k) {
        const Node* next = matcher_.ProducerOf(node.inputs[k], "Binary", inner);
        const std::optional<double> bound = matcher_.Uniform(node.inputs[1 - k]);
        if (next == nullptr || !bound || matcher_.OnlyReader(node.inputs[k]) == nullptr) continue;
        for (size_t j = 0; j < 2; ++j) {
          const std::optional<double> other = matcher_.Uniform(next->inputs[1 - j]);
          if (!other) continue;
          return min_outside ? Clamp{next->inputs[j], *other, *bound}
                             : Clamp{next->inputs[j], *bound, *other};
        }
      }
    }
    return std::nullopt;
  }

  // With the clamped value alpha · x + beta: clamp / high is the hard sigmoid, x · clamp / high the
  // hard swish.
  Result ResultOf(const Node& node, const Clamp& clamp, ValueId x) const {
    const ir::DType dtype = graph_.values[node.outputs[0]].type.dtype;
    const auto line = matcher_.ReadAs(clamp.x, x);
    if (!ir::IsFloat(dtype) || !line || line->size() != 2 || !line->contains({1, 0}) ||
        !line->contains({0, 0}))
      return {};
    const double factor = 1 / clamp.high;
    const double alpha = line->at({1, 0}) * factor;
    const double beta = line->at({0, 0}) * factor;
    const ValueId f = node.outputs[0];
    if (IsNearly(alpha, 1.0 / 6, dtype) && IsNearly(beta, 0.5, dtype)) {
      const NodeId root = FindResult(graph_, matcher_, x, f, {{{1, 1}, factor}});
      if (root >= 0) return {root, {{"fn", std::string("hard_swish")}}};
    }
    const NodeId root = FindResult(graph_, matcher_, x, f, {{{0, 1}, factor}});
    return {root, {{"fn", std::string("hard_sigmoid")}, {"alpha", alpha}, {"beta", beta}}};
  }

  const Graph& graph_;
  const Matcher matcher_;
  RecognisedActivations found_;
};

}  // namespace

absl::StatusOr<int> RecogniseHardSigmoid(Graph& graph, const PassContext&) {
  return ReplaceByActivations(graph, HardSigmoidFinder(graph).Run());
}

}  // namespace hone::graph
