#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/extern_element.h"
#include "runtime/externs.h"
#include "runtime/message.h"

namespace hone::runtime {
namespace {

/// The tensor as [outer, n, inner], n the searched axis.
struct TopKShape {
  int64_t outer = 1;
  int64_t n = 0;
  int64_t k = 0;
  int64_t inner = 1;
  bool largest = true;
};

TopKShape ShapeOf(const ir::PlanStep& step) {
  const std::vector<int64_t>& in = step.extern_inputs[0].shape;
  const auto axis = static_cast<size_t>(step.extern_attributes[0]);
  TopKShape shape;
  for (size_t i = 0; i < axis; ++i) shape.outer *= in[i];
  for (size_t i = axis + 1; i < in.size(); ++i) shape.inner *= in[i];
  shape.n = in[axis];
  shape.k = step.extern_outputs[0].shape[axis];
  shape.largest = step.extern_attributes[1] != 0;
  return shape;
}

/// The first k of each row in order, equal ones by index: kept in a heap whose front is the last of
/// them, which most elements are only compared with.
template <typename Element>
void TopK(const TopKShape& shape, const Element* x, Element* values, int64_t* indices) {
  if (shape.k == 0) return;
  using Value = decltype(x->Get());
  struct Kept {
    Value value;
    int64_t index = 0;
  };
  const auto precedes = [&](const Value& a, const Value& b) {
    return shape.largest ? IsGreater(a, b) : IsGreater(b, a);
  };
  const auto before = [&](const Kept& a, const Kept& b) {
    if (precedes(a.value, b.value)) return true;
    return !precedes(b.value, a.value) && a.index < b.index;
  };
  std::vector<Kept> kept;
  for (int64_t row = 0; row < shape.outer * shape.inner; ++row) {
    const int64_t outer = row / shape.inner;
    const int64_t inner = row % shape.inner;
    const Element* in = x + outer * shape.n * shape.inner + inner;
    kept.clear();
    for (int64_t i = 0; i < shape.k; ++i) kept.push_back({in[i * shape.inner].Get(), i});
    std::ranges::make_heap(kept, before);
    for (int64_t i = shape.k; i < shape.n; ++i) {
      // One that equals the last of them stands behind it.
      const Value value = in[i * shape.inner].Get();
      if (!precedes(value, kept.front().value)) continue;
      std::ranges::pop_heap(kept, before);
      kept.back() = {value, i};
      std::ranges::push_heap(kept, before);
    }
    std::ranges::sort_heap(kept, before);
    for (int64_t i = 0; i < shape.k; ++i) {
      const int64_t at = (outer * shape.k + i) * shape.inner + inner;
      const int64_t from = kept[static_cast<size_t>(i)].index;
      values[at] = in[from * shape.inner];
      indices[at] = from;
    }
  }
}

}  // namespace

Status CheckTopK(const ir::PlanStep& step) {
  const auto& attributes = step.extern_attributes;
  if (attributes.size() != 3 || step.extern_inputs.size() != 1 || step.extern_outputs.size() != 2) {
    return Invalid("wants attributes {axis, largest, sorted}, one input and two outputs");
  }
  const ir::ArtifactBuffer& x = step.extern_inputs[0];
  const ir::ArtifactBuffer& values = step.extern_outputs[0];
  const ir::ArtifactBuffer& indices = step.extern_outputs[1];
  const auto rank = static_cast<int64_t>(x.shape.size());
  if (attributes[0] < 0 || attributes[0] >= rank) {
    return Invalid("axis ", attributes[0], " of rank ", rank);
  }
  for (const size_t flag : {size_t{1}, size_t{2}}) {
    if (attributes[flag] != 0 && attributes[flag] != 1) {
      return Invalid("attribute ", flag, " is ", attributes[flag], ", not 0 or 1");
    }
  }
  std::vector<int64_t> expected = x.shape;
  const auto axis = static_cast<size_t>(attributes[0]);
  if (values.shape.size() == x.shape.size()) expected[axis] = values.shape[axis];
  if (values.shape != expected || indices.shape != expected || expected[axis] > x.shape[axis]) {
    return Invalid("the outputs' shapes do not follow from the input's");
  }
  if (values.dtype != x.dtype || indices.dtype != ir::DType::kI64) {
    return Invalid("element types are not T -> T, i64");
  }
  return {};
}

Status RunTopK(const ir::PlanStep& step, void* const* buffers) {
  const TopKShape shape = ShapeOf(step);
  VisitDType(step.extern_inputs[0].dtype, [&](auto element) {
    using Element = decltype(element);
    TopK(shape, static_cast<const Element*>(buffers[0]), static_cast<Element*>(buffers[1]),
         static_cast<int64_t*>(buffers[2]));
  });
  return {};
}

}  // namespace hone::runtime
