#pragma once

#include <optional>

#include "graph/graph.h"
#include "graph/passes/matcher.h"

namespace hone::graph {

/// scale · (bytes - zero), as DequantizeLinear is imported.
struct Dequantised {
  ValueId bytes = kNoValue;
  ConstantPtr zero;  ///< of any integer type; none: 0
  ValueId scale = kNoValue;
};

/// round(x / scale) + zero, saturated to bytes, as QuantizeLinear with known scalars is imported.
struct Quantised {
  ValueId x = kNoValue;
  double scale = 1, zero = 0;
};

/// Finds quantising and dequantising in a graph that is not yet changed. Holds references to graph
/// and matcher. Thread-safe to read.
class QuantisedMatcher {
 public:
  QuantisedMatcher(const Graph& graph, const Matcher& matcher) : graph_(graph), matcher_(matcher) {}

  /// The constant that the value is a reshape or cast of, or null.
  ConstantPtr Known(ValueId id) const;
  /// The value of a known tensor of one element.
  std::optional<double> KnownScalar(ValueId id) const;
  /// A value that is dequantised, by known scale and zero point, from i8 or u8.
  std::optional<Dequantised> DequantisedAt(ValueId value) const;
  /// A value of i8 or u8 that is quantised from f32.
  std::optional<Quantised> QuantisedAt(ValueId value) const;
  /// Whether quantising gives back the bytes that were dequantised.
  bool Restores(const Quantised& q, const Dequantised& d) const;

 private:
  const Graph& graph_;
  const Matcher& matcher_;
};

}  // namespace hone::graph
