#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/core/status_macros.h"
#include "runtime/extern_element.h"
#include "runtime/externs.h"
#include "runtime/message.h"
#include "runtime/plan_check.h"

namespace hone::runtime {
namespace {

enum class Reduction : int64_t { kNone = 0, kAdd = 1, kMul = 2, kMax = 3, kMin = 4 };

/// Integers wrap; max and min propagate NaN.
template <typename Value>
inline Value Combine(Reduction reduction, Value old, Value update) {
  const auto arithmetic = [&](auto operation) {
    if constexpr (std::is_integral_v<Value>) {
      // At full width and unsigned, so that neither promotion nor overflow is undefined.
      return static_cast<Value>(
          operation(static_cast<uint64_t>(old), static_cast<uint64_t>(update)));
    } else {
      return operation(old, update);
    }
  };
  switch (reduction) {
    case Reduction::kNone: return update;
    case Reduction::kAdd: return arithmetic([](auto a, auto b) { return a + b; });
    case Reduction::kMul: return arithmetic([](auto a, auto b) { return a * b; });
    case Reduction::kMax: return IsGreater(update, old) ? update : old;  // NaN is the greatest
    case Reduction::kMin:
      if constexpr (std::is_floating_point_v<Value>) {
        if (std::isnan(old)) return old;
        if (std::isnan(update)) return update;
      }
      return update < old ? update : old;
  }
  HONE_UNREACHABLE();
}

int64_t ReadIndex(const ir::ArtifactBuffer& indices, const void* data, int64_t at) {
  return indices.dtype == ir::DType::kI32 ? static_cast<const int32_t*>(data)[at]
                                          : static_cast<const int64_t*>(data)[at];
}

Status WrapIndex(int64_t extent, int64_t& index) {
  const int64_t given = index;
  if (index < 0) index += extent;
  if (index >= 0 && index < extent) return {};
  return {StatusCode::kOutOfRange,
          Message("index ", given, " is outside [", -extent, ", ", extent - 1, "]")};
}

int64_t Product(const std::vector<int64_t>& shape, size_t first, size_t last) {
  int64_t product = 1;
  for (size_t i = first; i < last; ++i) product *= shape[i];
  return product;
}

/// In blocks of a fixed size, all read before any is written, so that the compiler makes vectors.
template <Reduction reduction, typename Element>
void CombineRow(const Element* updates, Element* y, int64_t count) {
  constexpr int64_t kBlock = 16;
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    Element block[kBlock];
    for (int64_t k = 0; k < kBlock; ++k)
      block[k] = Element::From(Combine(reduction, y[i + k].Get(), updates[i + k].Get()));
    std::memcpy(y + i, block, sizeof(block));
  }
  for (; i < count; ++i) y[i] = Element::From(Combine(reduction, y[i].Get(), updates[i].Get()));
}

template <typename Element>
void Apply(Reduction reduction, const Element* updates, Element* y, int64_t count) {
  switch (reduction) {
    case Reduction::kNone:
      std::memcpy(y, updates, static_cast<size_t>(count) * sizeof(Element));
      return;
    case Reduction::kAdd: return CombineRow<Reduction::kAdd>(updates, y, count);
    case Reduction::kMul: return CombineRow<Reduction::kMul>(updates, y, count);
    case Reduction::kMax: return CombineRow<Reduction::kMax>(updates, y, count);
    case Reduction::kMin: return CombineRow<Reduction::kMin>(updates, y, count);
  }
}

/// y starts as data; in place when they are the same buffer.
void CopyData(const ir::PlanStep& step, void* const* buffers) {
  const auto bytes = static_cast<size_t>(step.extern_outputs[0].bytes);
  if (bytes > 0 && buffers[3] != buffers[0]) std::memmove(buffers[3], buffers[0], bytes);
}

/// What both routines ask for: three inputs, one output, element types, the reduction.
Status CheckCommon(const ir::PlanStep& step, size_t num_attributes) {
  if (step.extern_attributes.size() != num_attributes || step.extern_inputs.size() != 3 ||
      step.extern_outputs.size() != 1) {
    return Invalid("wants ", num_attributes, " attributes, three inputs and one output");
  }
  const ir::ArtifactBuffer& data = step.extern_inputs[0];
  const ir::ArtifactBuffer& indices = step.extern_inputs[1];
  const ir::ArtifactBuffer& y = step.extern_outputs[0];
  const int64_t reduction = step.extern_attributes.back();
  if (reduction < 0 || reduction > static_cast<int64_t>(Reduction::kMin)) {
    return Invalid("unknown reduction ", reduction);
  }
  if (data.dtype == ir::DType::kBool && reduction != 0) return Invalid("bool takes no reduction");
  if (indices.dtype != ir::DType::kI32 && indices.dtype != ir::DType::kI64) {
    return Invalid("indices of type ", ir::ToString(indices.dtype), ", not i32 or i64");
  }
  if (step.extern_inputs[2].dtype != data.dtype || y.dtype != data.dtype) {
    return Invalid("data, updates and output differ in element type");
  }
  if (y.shape != data.shape || y.bytes != data.bytes) {
    return Invalid("data and output differ in shape");
  }
  return {};
}

}  // namespace

Status CheckScatterElements(const ir::PlanStep& step) {
  HONE_RETURN_IF_ERROR(CheckCommon(step, 2));
  const std::vector<int64_t>& data = step.extern_inputs[0].shape;
  const std::vector<int64_t>& indices = step.extern_inputs[1].shape;
  const int64_t axis = step.extern_attributes[0];
  if (axis < 0 || axis >= static_cast<int64_t>(data.size())) {
    return Invalid("axis ", axis, " of rank ", data.size());
  }
  if (indices.size() != data.size() || step.extern_inputs[2].shape != indices) {
    return Invalid("indices and updates need one shape, of the data's rank");
  }
  for (size_t i = 0; i < data.size(); ++i) {
    if (static_cast<int64_t>(i) != axis && indices[i] > data[i]) {
      return Invalid("indices have extent ", indices[i], " in dimension ", i, ", the data ",
                     data[i]);
    }
  }
  return {};
}

Status RunScatterElements(const ir::PlanStep& step, void* const* buffers) {
  CopyData(step, buffers);
  const std::vector<int64_t>& data = step.extern_inputs[0].shape;
  const ir::ArtifactBuffer& indices = step.extern_inputs[1];
  const auto axis = static_cast<size_t>(step.extern_attributes[0]);
  const auto reduction = static_cast<Reduction>(step.extern_attributes[1]);
  const int64_t count = Product(indices.shape, 0, indices.shape.size());
  std::vector<int64_t> position(data.size(), 0);
  return VisitDType(step.extern_inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const auto* updates = static_cast<const Element*>(buffers[2]);
    auto* y = static_cast<Element*>(buffers[3]);
    for (int64_t at = 0; at < count; ++at) {
      int64_t index = ReadIndex(indices, buffers[1], at);
      HONE_RETURN_IF_ERROR(WrapIndex(data[axis], index));
      int64_t target = 0;
      for (size_t i = 0; i < data.size(); ++i) {
        target = target * data[i] + (i == axis ? index : position[i]);
      }
      Apply(reduction, updates + at, y + target, 1);
      for (size_t i = data.size(); i-- > 0;) {
        if (++position[i] < indices.shape[i]) break;
        position[i] = 0;
      }
    }
    return {};
  });
}

Status CheckScatterNd(const ir::PlanStep& step) {
  HONE_RETURN_IF_ERROR(CheckCommon(step, 1));
  const std::vector<int64_t>& data = step.extern_inputs[0].shape;
  const std::vector<int64_t>& indices = step.extern_inputs[1].shape;
  if (indices.empty() || indices.back() > static_cast<int64_t>(data.size())) {
    return Invalid("the last extent of indices must be at most the data's rank, ", data.size());
  }
  std::vector<int64_t> expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), data.begin() + indices.back(), data.end());
  if (step.extern_inputs[2].shape != expected) {
    return Invalid("the updates' shape does not follow from data and indices");
  }
  return {};
}

Status RunScatterNd(const ir::PlanStep& step, void* const* buffers) {
  CopyData(step, buffers);
  const std::vector<int64_t>& data = step.extern_inputs[0].shape;
  const ir::ArtifactBuffer& indices = step.extern_inputs[1];
  const auto depth = static_cast<size_t>(indices.shape.back());
  const auto reduction = static_cast<Reduction>(step.extern_attributes[0]);
  const int64_t count = Product(indices.shape, 0, indices.shape.size() - 1);
  const int64_t slice = Product(data, depth, data.size());
  return VisitDType(step.extern_inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const auto* updates = static_cast<const Element*>(buffers[2]);
    auto* y = static_cast<Element*>(buffers[3]);
    for (int64_t at = 0; at < count; ++at) {
      int64_t target = 0;
      for (size_t i = 0; i < depth; ++i) {
        int64_t index = ReadIndex(indices, buffers[1],
                                  at * static_cast<int64_t>(depth) + static_cast<int64_t>(i));
        HONE_RETURN_IF_ERROR(WrapIndex(data[i], index));
        target = target * data[i] + index;
      }
      Apply(reduction, updates + at * slice, y + target * slice, slice);
    }
    return {};
  });
}

}  // namespace hone::runtime
