#include "graph/passes/quantised.h"

namespace hone::graph {

using ir::DType;

namespace {

bool IsByte(DType type) { return type == DType::kI8 || type == DType::kU8; }

}  // namespace

ConstantPtr QuantisedMatcher::Known(ValueId id) const {
  while (true) {
    if (graph_.values[id].constant != nullptr) return graph_.values[id].constant;
    const Node* node = matcher_.ProducerOf(id, "Reshape");
    if (node == nullptr) node = matcher_.ProducerOf(id, "Cast");
    if (node == nullptr) return nullptr;
    id = node->inputs[0];
  }
}

std::optional<double> QuantisedMatcher::KnownScalar(ValueId id) const {
  const ConstantPtr known = Known(id);
  if (known == nullptr || known->type.NumElements() != 1) return std::nullopt;
  return known->DoubleAt(0);
}

std::optional<Dequantised> QuantisedMatcher::DequantisedAt(ValueId value) const {
  const Node* product = matcher_.ProducerOf(value, "Binary", "mul");
  if (product == nullptr || Known(product->inputs[1]) == nullptr) return std::nullopt;
  const Node* real = matcher_.ProducerOf(product->inputs[0], "Cast");
  if (real == nullptr || graph_.values[value].type.dtype != DType::kF32) return std::nullopt;
  Dequantised d{.scale = product->inputs[1]};
  ValueId wide = real->inputs[0];
  if (const Node* shifted = matcher_.ProducerOf(wide, "Binary", "sub")) {
    d.zero = Known(shifted->inputs[1]);
    if (d.zero == nullptr) return std::nullopt;
    wide = shifted->inputs[0];
  }
  // Without a zero point the two casts may have become one.
  const Node* bytes = matcher_.ProducerOf(wide, "Cast");
  const bool widened = bytes != nullptr && graph_.values[wide].type.dtype == DType::kI32;
  if (!widened && d.zero != nullptr) return std::nullopt;
  d.bytes = widened ? bytes->inputs[0] : wide;
  if (!IsByte(graph_.values[d.bytes].type.dtype)) return std::nullopt;
  return d;
}

std::optional<Quantised> QuantisedMatcher::QuantisedAt(ValueId value) const {
  const Node* cast = matcher_.ProducerOf(value, "Cast");
  if (cast == nullptr || !IsByte(graph_.values[value].type.dtype)) return std::nullopt;
  ValueId rounded = cast->inputs[0];
  Quantised q;
  if (const Node* shifted = matcher_.ProducerOf(rounded, "Binary", "add")) {
    const auto zero = KnownScalar(shifted->inputs[1]);
    if (!zero) return std::nullopt;
    q.zero = *zero;
    rounded = shifted->inputs[0];
  }
  const Node* round = matcher_.ProducerOf(rounded, "Unary", "round");
  if (round == nullptr) return std::nullopt;
  const Node* quotient = matcher_.ProducerOf(round->inputs[0], "Binary", "div");
  if (quotient == nullptr) return std::nullopt;
  const auto scale = KnownScalar(quotient->inputs[1]);
  q.x = quotient->inputs[0];
  if (!scale || !(*scale > 0) || graph_.values[q.x].type.dtype != DType::kF32) return std::nullopt;
  q.scale = *scale;
  return q;
}

bool QuantisedMatcher::Restores(const Quantised& q, const Dequantised& d) const {
  const double zero = d.zero == nullptr                 ? 0
                      : d.zero->type.NumElements() == 1 ? d.zero->DoubleAt(0)
                                                        : -1000;
  return KnownScalar(d.scale) == q.scale && zero == q.zero;
}

}  // namespace hone::graph
