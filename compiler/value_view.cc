#include <utility>

#include "compiler/memory_plan.h"
#include "compiler/model_steps.h"

namespace hone::compiler {
namespace {

using graph::ValueId;

std::vector<int64_t> DenseStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) strides[d] = stride;
  return strides;
}

// Root, strides, and all of the offset in `offset`.
ValueView PlainView(const ModelSteps& model, ValueId value) {
  const ValueAlias& alias = model.aliases[value];
  const graph::TensorType& type = model.graph.values[value].type;
  if (alias.of == graph::kNoValue) return {.root = value, .strides = DenseStrides(type.shape)};
  ValueView view = PlainView(model, alias.of);
  if (alias.concat_axis >= 0) {
    view.offset += alias.concat_start * view.strides[static_cast<size_t>(alias.concat_axis)];
  } else {
    view.offset += alias.offset_bytes / ir::SizeOf(type.dtype);
    view.strides = DenseStrides(type.shape);
  }
  return view;
}

// Whether both address the same elements; the stride of a dimension of one place means nothing.
bool SameLayout(const std::vector<int64_t>& a, const std::vector<int64_t>& b,
                const std::vector<int64_t>& shape) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1 && a[d] != b[d]) return false;
  }
  return true;
}

}  // namespace

ValueView ViewOf(const ModelSteps& model, ValueId value) {
  ValueView view = PlainView(model, value);
  const graph::TensorType& type = model.graph.values[value].type;
  if (SameLayout(view.strides, DenseStrides(type.shape), type.shape)) view.strides.clear();
  if (model.output_of[view.root] >= 0) return view;
  const int64_t element_bytes = ir::SizeOf(type.dtype);
  const int64_t offset_bytes = view.offset * element_bytes;
  view.offset = offset_bytes % kArenaAlignmentBytes / element_bytes;
  view.begin_bytes = offset_bytes - view.offset * element_bytes;
  return view;
}

schedule::Binding BindingOf(const ModelSteps& model, const ModelStep& step) {
  schedule::Binding binding;
  bool all_dense = true;
  for (const auto* values : {&step.inputs, &step.constants, &step.outputs}) {
    for (const ValueId value : *values) {
      ValueView view = ViewOf(model, value);
      all_dense = all_dense && view.IsWholeBuffer();
      binding.buffers.push_back({.strides = std::move(view.strides), .offset = view.offset});
    }
  }
  if (all_dense) binding.buffers.clear();
  return binding;
}

}  // namespace hone::compiler
