#include "graph/ops/activation.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

#include "graph/ops/operand.h"

namespace hone::graph::ops {
namespace {

using ir::BinaryOp;
using ir::Expr;
using ir::UnaryOp;

/// A function, its default parameters and which it has.
struct Known {
  const char* name;
  bool has_alpha;
  double alpha;
  bool has_beta;
  double beta;
};

constexpr Known kKnown[] = {
    {"relu", false, 0, false, 0},         {"tanh", false, 0, false, 0},
    {"sigmoid", false, 0, false, 0},      {"affine", true, 1, true, 0},
    {"leakyrelu", true, 0.01F, false, 0}, {"thresholdedrelu", true, 1, false, 0},
    {"scaledtanh", true, 1, true, 1},     {"hardsigmoid", true, 0.2F, true, 0.5},
    {"elu", true, 1, false, 0},           {"softsign", false, 0, false, 0},
    {"softplus", false, 0, false, 0},
};

std::string Lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

absl::Status UnknownActivation(const std::string& name) {
  std::vector<std::string_view> allowed;
  for (const Known& known : kKnown) allowed.emplace_back(known.name);
  return Invalid(fmt::format("attribute 'activations' has '{}'; it must be one of {}", name,
                             fmt::join(allowed, ", ")));
}

}  // namespace

absl::StatusOr<std::vector<Activation>> ReadActivations(const OpCall& call, size_t count,
                                                        const std::vector<std::string>& otherwise) {
  std::vector<std::string> names;
  if (const auto found = call.attributes->find("activations"); found != call.attributes->end()) {
    if (const auto* list = std::get_if<std::vector<std::string>>(&found->second)) names = *list;
  }
  if (names.empty()) {
    for (size_t i = 0; i < count; ++i) names.push_back(otherwise[i % otherwise.size()]);
  }
  if (names.size() != count)
    return Invalid(
        fmt::format("attribute 'activations' must have {} values, not {}", count, names.size()));
  const std::vector<double> alphas = call.Floats("activation_alpha");
  const std::vector<double> betas = call.Floats("activation_beta");
  size_t next_alpha = 0;
  size_t next_beta = 0;
  std::vector<Activation> activations;
  for (const std::string& name : names) {
    const std::string lower = Lower(name);
    const auto* known = std::find_if(std::begin(kKnown), std::end(kKnown),
                                     [&](const Known& k) { return k.name == lower; });
    if (known == std::end(kKnown)) return UnknownActivation(name);
    Activation activation{lower, known->alpha, known->beta};
    if (known->has_alpha && next_alpha < alphas.size()) activation.alpha = alphas[next_alpha++];
    if (known->has_beta && next_beta < betas.size()) activation.beta = betas[next_beta++];
    activations.push_back(std::move(activation));
  }
  return activations;
}

Expr Apply(const Activation& f, Expr x, double clip) {
  const ir::DType type = x->dtype;
  const auto constant = [&](double v) { return ir::Const(type, v); };
  if (clip > 0) x = ir::Min(ir::Max(x, constant(-clip)), constant(clip));
  const Expr zero = constant(0);
  const Expr one = constant(1);
  if (f.name == "relu") return ir::Max(x, zero);
  if (f.name == "tanh") return ir::Unary(UnaryOp::kTanh, x);
  if (f.name == "sigmoid") return ir::Unary(UnaryOp::kSigmoid, x);
  if (f.name == "affine") return x * constant(f.alpha) + constant(f.beta);
  if (f.name == "leakyrelu") return ir::Select(ir::Lt(x, zero), x * constant(f.alpha), x);
  if (f.name == "thresholdedrelu") return ir::Select(ir::Ge(x, constant(f.alpha)), x, zero);
  if (f.name == "scaledtanh")
    return ir::Unary(UnaryOp::kTanh, x * constant(f.beta)) * constant(f.alpha);
  if (f.name == "hardsigmoid")
    return ir::Min(ir::Max(x * constant(f.alpha) + constant(f.beta), zero), one);
  if (f.name == "elu") {
    return ir::Select(ir::Lt(x, zero), (ir::Unary(UnaryOp::kExp, x) - one) * constant(f.alpha), x);
  }
  const Expr magnitude = ir::Unary(UnaryOp::kAbs, x);
  if (f.name == "softsign") return ir::Binary(BinaryOp::kDiv, x, magnitude + one);
  // softplus: log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|))
  return ir::Max(x, zero) +
         ir::Unary(UnaryOp::kLog, ir::Unary(UnaryOp::kExp, zero - magnitude) + one);
}

}  // namespace hone::graph::ops
