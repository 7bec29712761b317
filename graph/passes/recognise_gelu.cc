#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "graph/passes/matcher.h"
#include "graph/passes/passes.h"
#include "graph/passes/recognised.h"

namespace hone::graph {
namespace {

const double kTanhScale = std::sqrt(2.0 / std::numbers::pi);
constexpr double kCubic = 0.044715;

/// One way to write it: f(argument(x)) of which the result is a polynomial.
struct Form {
  const char* function;
  Polynomial argument;
  Polynomial result;
  const char* fn;
};

const std::vector<Form>& Forms() {
  constexpr double kHalf = 0.5;
  const double root = 1.0 / std::numbers::sqrt2;
  const double t = kTanhScale;
  // An odd function of the negated argument gives the other sign.
  static const std::vector<Form> kForms = {
      {"erf", {{{1, 0}, root}}, {{{1, 0}, kHalf}, {{1, 1}, kHalf}}, "gelu"},
      {"erf", {{{1, 0}, -root}}, {{{1, 0}, kHalf}, {{1, 1}, -kHalf}}, "gelu"},
      {"tanh",
       {{{1, 0}, t}, {{3, 0}, t * kCubic}},
       {{{1, 0}, kHalf}, {{1, 1}, kHalf}},
       "gelu_tanh"},
      {"sigmoid", {{{1, 0}, 2 * t}, {{3, 0}, 2 * t * kCubic}}, {{{1, 1}, 1.0}}, "gelu_tanh"},
  };
  return kForms;
}

}  // namespace

absl::StatusOr<int> RecogniseGelu(Graph& graph, const PassContext&) {
  const Matcher matcher(graph);
  RecognisedActivations found;
  const auto recognise = [&](const Node& function, const Form& form) {
    const ir::DType dtype = graph.values[function.outputs[0]].type.dtype;
    for (ValueId x : matcher.Bases(function.inputs[0])) {
      const auto argument = matcher.ReadAs(function.inputs[0], x);
      if (!argument || !IsNearly(*argument, form.argument, dtype)) continue;
      const NodeId root = FindResult(graph, matcher, x, function.outputs[0], form.result);
      if (root >= 0) found[root] = {x, {{"fn", std::string(form.fn)}}};
    }
  };
  for (const Node& node : graph.nodes) {
    for (const Form& form : Forms()) {
      if (node.op == "Unary" && matcher.ProducerOf(node.outputs[0], "Unary", form.function))
        recognise(node, form);
    }
  }
  return ReplaceByActivations(graph, found);
}

}  // namespace hone::graph
