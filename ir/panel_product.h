#pragma once

#include <optional>

#include "ir/kept_panels.h"
#include "ir/workload.h"

namespace hone::ir {

/// A Stage that multiplies by a matrix of weights: a sum over one axis (the terms) of products of
/// f32, one factor an element of a constant, the other the same for all columns.
struct PanelProduct {
  int weights = -1;  ///< tensor, a constant of which this is the only load
  int dim = -1;      ///< of the weights: their columns
  int column = -1;   ///< spatial axis
  int term = -1;     ///< reduce axis; all others have one iteration
  Expr weight;       ///< the load of the constant
  Expr other;        ///< the other factor
};
/// Nothing where the Stage is none.
std::optional<PanelProduct> FindPanelProduct(const Workload& workload, int stage);

/// What is known of the zeros of the Stage's weights, where it is such a product with weights of
/// which something is known.
std::optional<KeptPanels> PanelsOfStage(const Workload& workload, int stage);

}  // namespace hone::ir
