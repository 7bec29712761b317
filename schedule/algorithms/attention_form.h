#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "schedule/schedule.h"

namespace hone::schedule {

/// Attention, recognised from who reads what: scores S (a contraction and maps of it), over rows
/// and keys (the last axis), M = max of S over the keys, E = exp(S - M), L = sum of E, and a
/// contraction of E, or of E/L, with other values over the keys. All of it is f32.
struct AttentionForm {
  int product = -1;        ///< the contraction over the keys, its only reduce axis
  int contraction = -1;    ///< the sum of products that the scores begin with
  std::vector<int> chain;  ///< the contraction, then the maps of it, producers first; all have the
                           ///< axes of E
  ir::Expr scores;         ///< S, over the axes of E
  int max = -1, exponential = -1, sum = -1;
  int quotient = -1;     ///< the Stage E/L; -1: there is none
  bool divided = false;  ///< the product's weights are E/L; false: its readers divide by L
  bool zero_nan = false;  ///< the weights of a row whose L is NaN are zeros
  int64_t keys = 0;
  std::vector<ir::Expr> row;  ///< over the product's spatial axes: the row its weights are from
  ir::Expr values;            ///< the product's other factor, over all its axes
};

/// The attention whose last contraction is `product`. InvalidArgument says what differs: another
/// reader of something inside, a Stage with a place or loops already, other axes or types.
absl::StatusOr<AttentionForm> MatchAttention(const Schedule& schedule, int product);

}  // namespace hone::schedule
