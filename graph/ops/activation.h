#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/op.h"

// The activation functions that recurrent operators name.
namespace hone::graph::ops {

struct Activation {
  std::string name;  ///< lower case: relu, tanh, sigmoid, …
  double alpha = 0;
  double beta = 0;
};

/// The `count` functions of attributes activations, activation_alpha and activation_beta, or
/// `otherwise` repeated. The lists of parameters are used up in order by the functions that have
/// one.
absl::StatusOr<std::vector<Activation>> ReadActivations(const OpCall& call, size_t count,
                                                        const std::vector<std::string>& otherwise);

/// f(x), after limiting x to [-clip, clip] when clip > 0.
ir::Expr Apply(const Activation& activation, ir::Expr x, double clip);

}  // namespace hone::graph::ops
