#include <cmath>
#include <optional>
#include <string>

#include "graph/passes/matcher.h"
#include "graph/passes/passes.h"
#include "graph/passes/recognised.h"

namespace hone::graph {
namespace {

/// The factor of a polynomial that is factor · x.
std::optional<double> FactorOf(const std::optional<Polynomial>& polynomial) {
  if (!polynomial || polynomial->size() != 1) return std::nullopt;
  const auto& [powers, factor] = *polynomial->begin();
  return powers == std::pair(1, 0) ? std::optional(factor) : std::nullopt;
}

class SiluFinder {
 public:
  explicit SiluFinder(const Graph& graph) : graph_(graph), matcher_(graph) {}

  RecognisedActivations Run() {
    for (const Node& node : graph_.nodes) {
      if (node.outputs.empty() || node.outputs[0] == kNoValue) continue;
      const ValueId f = node.outputs[0];
      if (matcher_.ProducerOf(f, "Unary", "sigmoid") != nullptr)
        OfFunction(node, 1, {{{1, 1}, 1.0}});
      // x · (1 + tanh(x / 2)) / 2
      if (matcher_.ProducerOf(f, "Unary", "tanh") != nullptr)
        OfFunction(node, 2, {{{1, 0}, 0.5}, {{1, 1}, 0.5}});
      if (matcher_.ProducerOf(f, "Binary", "div") != nullptr) OfQuotient(node);
    }
    return std::move(found_);
  }

 private:
  void Found(NodeId root, ValueId x, double alpha) {
    if (std::abs(alpha - 1) < 1e-6) alpha = 1;
    found_[root] = {x, {{"fn", std::string("silu")}, {"alpha", alpha}}};
  }

  void OfFunction(const Node& function, double scale, const Polynomial& result) {
    for (ValueId x : matcher_.Bases(function.inputs[0])) {
      const std::optional<double> factor = FactorOf(matcher_.ReadAs(function.inputs[0], x));
      if (!factor) continue;
      const NodeId root = FindResult(graph_, matcher_, x, function.outputs[0], result);
      if (root >= 0) return Found(root, x, scale * *factor);
    }
  }

  // x / (1 + exp(-alpha · x))
  void OfQuotient(const Node& quotient) {
    const ValueId x = quotient.inputs[0];
    const Node* sum = matcher_.ProducerOf(quotient.inputs[1], "Binary", "add");
    if (sum == nullptr || matcher_.OnlyReader(quotient.inputs[1]) == nullptr ||
        graph_.values[x].type != graph_.values[quotient.outputs[0]].type)
      return;
    for (size_t k = 0; k < 2; ++k) {
      const Node* power = matcher_.ProducerOf(sum->inputs[k], "Unary", "exp");
      if (power == nullptr || matcher_.OnlyReader(sum->inputs[k]) == nullptr ||
          matcher_.Uniform(sum->inputs[1 - k]) != 1.0)
        continue;
      const std::optional<double> factor = FactorOf(matcher_.ReadAs(power->inputs[0], x));
      if (factor) return Found(matcher_.IdOf(quotient), x, -*factor);
    }
  }

  const Graph& graph_;
  const Matcher matcher_;
  RecognisedActivations found_;
};

}  // namespace

absl::StatusOr<int> RecogniseSilu(Graph& graph, const PassContext&) {
  return ReplaceByActivations(graph, SiluFinder(graph).Run());
}

}  // namespace hone::graph
