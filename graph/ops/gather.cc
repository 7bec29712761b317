#include <algorithm>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"
#include "ir/checked_index.h"

// Gather, GatherElements, GatherND, Lookup: loads as indices.
namespace hone::graph::ops {
namespace {

using ir::Expr;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

absl::Status CheckIndices(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 2));
  if (!ir::IsInteger(call.inputs[1].type.dtype)) {
    return Invalid(
        fmt::format("the indices must be integers, not {}", ToString(call.inputs[1].type.dtype)));
  }
  return absl::OkStatus();
}

/// Known indices must be inside; element k of a tuple (the last axis, when there are several
/// extents) is into extents[k].
absl::Status CheckKnown(const OpCall& call, const Shape& extents) {
  const ConstantPtr& known = call.inputs[1].constant;
  if (known == nullptr || extents.empty()) return absl::OkStatus();
  const std::vector<int64_t> values = known->AsInt64s();
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t extent = extents[i % extents.size()];
    if (values[i] >= -extent && values[i] < extent) continue;
    return Invalid(fmt::format("index {} (element {} of the indices) is outside of [{}, {}]",
                               values[i], i, -extent, extent - 1));
  }
  return absl::OkStatus();
}

/// How the input with the indices is read: values known now stand in the text when they are few,
/// and an arithmetic progression becomes an affine index.
class IndexReader {
 public:
  IndexReader(const OpCall& call, WorkloadBuilder& builder, const std::vector<int>& tensors)
      : type_(call.inputs[1].type), builder_(builder), tensor_(tensors[1]) {
    if (call.inputs[1].constant != nullptr) known_ = call.inputs[1].constant->AsInt64s();
  }

  /// The index at `point` into an axis of this extent. Negative ones count from the end; those
  /// outside are drawn to the nearest inside, and the kernel refuses them before its loops.
  Expr Read(const Exprs& point, int64_t extent) {
    if (!known_.empty()) {
      if (Expr known = ReadKnown(point, extent)) return known;
    }
    return ir::CheckedIndexOf(ir::Cast(ir::DType::kI64, builder_.At(tensor_, point)), extent);
  }

 private:
  /// Null: it has to be loaded.
  Expr ReadKnown(const Exprs& point, int64_t extent) {
    std::vector<int64_t> values = known_;
    for (int64_t& value : values)
      value = std::clamp<int64_t>(value < 0 ? value + extent : value, 0, extent - 1);
    if (values.size() == 1) return ir::Int(values[0]);
    if (Expr affine = Affine(values, point)) return affine;
    if (static_cast<int64_t>(values.size()) > ir::kMaxImmediate) return nullptr;
    const std::vector<double> immediate(values.begin(), values.end());
    return builder_.At(builder_.AddImmediate(ir::DType::kI64, type_.shape, immediate), point);
  }

  /// The first value plus a step for each dimension, where those that `point` may meet are that: a
  /// constant in it picks one element of each tuple.
  Expr Affine(const std::vector<int64_t>& values, const Exprs& point) const {
    const Shape& shape = type_.shape;
    Shape steps(shape.size(), 0);
    Shape at(shape.size(), -1);  // where it is fixed
    size_t first = 0;
    size_t stride = 1;
    for (size_t d = shape.size(); d-- > 0; stride *= static_cast<size_t>(shape[d])) {
      if (const auto fixed = ir::AsInt(point[d])) {
        at[d] = *fixed;
        first += stride * static_cast<size_t>(*fixed);
      }
    }
    stride = 1;
    for (size_t d = shape.size(); d-- > 0; stride *= static_cast<size_t>(shape[d])) {
      if (at[d] < 0 && shape[d] > 1) steps[d] = values[first + stride] - values[first];
    }
    for (size_t i = 0; i < values.size(); ++i) {
      int64_t expected = values[first];
      bool met = true;
      auto rest = static_cast<int64_t>(i);
      for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
        expected += steps[d] * (rest % shape[d]);
        met &= at[d] < 0 || rest % shape[d] == at[d];
      }
      if (met && values[i] != expected) return nullptr;
    }
    Expr result = ir::Int(values[first]);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (steps[d] != 0) result = result + point[d] * steps[d];
    }
    return result;
  }

  TensorType type_;
  WorkloadBuilder& builder_;
  int tensor_;
  std::vector<int64_t> known_;
};

absl::StatusOr<Types> InferGather(const OpCall& call) {
  HONE_RETURN_IF_ERROR(CheckIndices(call));
  const TensorType& x = call.inputs[0].type;
  const Shape& indices = call.inputs[1].type.shape;
  HONE_ASSIGN_OR_RETURN(const int64_t axis, ResolveAxis(call.Int("axis", 0), x.shape.size()));
  HONE_RETURN_IF_ERROR(CheckKnown(call, {x.shape[static_cast<size_t>(axis)]}));
  TensorType result{x.dtype, Shape(x.shape.begin(), x.shape.begin() + axis)};
  result.shape.insert(result.shape.end(), indices.begin(), indices.end());
  result.shape.insert(result.shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  return Types{std::move(result)};
}

absl::StatusOr<Tensors> ExpressGather(const OpCall& call, WorkloadBuilder& builder,
                                      const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Types types, InferGather(call));
  const Shape& x = call.inputs[0].type.shape;
  HONE_ASSIGN_OR_RETURN(const int64_t axis, ResolveAxis(call.Int("axis", 0), x.size()));
  const Exprs point = Axes(types[0].shape.size());
  const auto inner =
      point.begin() + axis + static_cast<ptrdiff_t>(call.inputs[1].type.shape.size());
  IndexReader reader(call, builder, tensors);
  Exprs at(point.begin(), point.begin() + axis);
  at.push_back(reader.Read(Exprs(point.begin() + axis, inner), x[static_cast<size_t>(axis)]));
  at.insert(at.end(), inner, point.end());
  return Tensors{builder.AddMap(types[0].shape, ReadAt(call, builder, tensors, 0, std::move(at)))};
}

absl::StatusOr<Types> InferGatherElements(const OpCall& call) {
  HONE_RETURN_IF_ERROR(CheckIndices(call));
  const TensorType& x = call.inputs[0].type;
  const Shape& indices = call.inputs[1].type.shape;
  HONE_ASSIGN_OR_RETURN(const int64_t axis, ResolveAxis(call.Int("axis", 0), x.shape.size()));
  bool fits = indices.size() == x.shape.size();
  for (size_t d = 0; fits && d < indices.size(); ++d)
    fits = static_cast<int64_t>(d) == axis || indices[d] <= x.shape[d];
  if (!fits)
    return Invalid(fmt::format("the indices {} do not fit the input {}",
                               ToText(call.inputs[1].type), ToText(x)));
  HONE_RETURN_IF_ERROR(CheckKnown(call, {x.shape[static_cast<size_t>(axis)]}));
  return Types{{x.dtype, indices}};
}

absl::StatusOr<Tensors> ExpressGatherElements(const OpCall& call, WorkloadBuilder& builder,
                                              const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Types types, InferGatherElements(call));
  const Shape& x = call.inputs[0].type.shape;
  HONE_ASSIGN_OR_RETURN(const int64_t axis, ResolveAxis(call.Int("axis", 0), x.size()));
  IndexReader reader(call, builder, tensors);
  Exprs at = Axes(x.size());
  at[static_cast<size_t>(axis)] = reader.Read(Axes(x.size()), x[static_cast<size_t>(axis)]);
  return Tensors{builder.AddMap(types[0].shape, ReadAt(call, builder, tensors, 0, std::move(at)))};
}

absl::StatusOr<Types> InferGatherNd(const OpCall& call) {
  HONE_RETURN_IF_ERROR(CheckIndices(call));
  const TensorType& x = call.inputs[0].type;
  const Shape& indices = call.inputs[1].type.shape;
  const int64_t batch = call.Int("batch_dims", 0);
  const auto rank = static_cast<int64_t>(x.shape.size());
  if (indices.empty() || batch < 0 || batch >= static_cast<int64_t>(indices.size()) ||
      batch > rank) {
    return Invalid(fmt::format("batch_dims {} does not fit the indices {}", batch,
                               ToText(call.inputs[1].type)));
  }
  const int64_t depth = indices.back();
  if (depth < 0 || batch + depth > rank)
    return Invalid(fmt::format("the indices' last extent {} is too large for an input of rank {}",
                               depth, rank));
  for (int64_t d = 0; d < batch; ++d) {
    if (indices[static_cast<size_t>(d)] != x.shape[static_cast<size_t>(d)])
      return Invalid("the batch axes of input and indices differ");
  }
  const auto first = x.shape.begin() + batch;
  HONE_RETURN_IF_ERROR(CheckKnown(call, Shape(first, first + depth)));
  TensorType result{x.dtype, Shape(indices.begin(), indices.end() - 1)};
  result.shape.insert(result.shape.end(), x.shape.begin() + batch + depth, x.shape.end());
  return Types{std::move(result)};
}

absl::StatusOr<Tensors> ExpressGatherNd(const OpCall& call, WorkloadBuilder& builder,
                                        const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Types types, InferGatherNd(call));
  const Shape& x = call.inputs[0].type.shape;
  const Shape& indices = call.inputs[1].type.shape;
  const auto batch = static_cast<size_t>(call.Int("batch_dims", 0));
  const Exprs point = Axes(types[0].shape.size());
  const auto outer = static_cast<ptrdiff_t>(indices.size()) - 1;
  IndexReader reader(call, builder, tensors);
  Exprs at(point.begin(), point.begin() + static_cast<ptrdiff_t>(batch));
  for (int64_t k = 0; k < indices.back(); ++k) {
    Exprs tuple(point.begin(), point.begin() + outer);
    tuple.push_back(ir::Int(k));
    at.push_back(reader.Read(tuple, x[batch + static_cast<size_t>(k)]));
  }
  at.insert(at.end(), point.begin() + outer, point.end());
  return Tensors{builder.AddMap(types[0].shape, ReadAt(call, builder, tensors, 0, std::move(at)))};
}

// Lookup: inputs x (u8), table (256 elements). Every byte is an index.

absl::StatusOr<Types> InferLookup(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 2));
  const TensorType& x = call.inputs[0].type;
  const TensorType& table = call.inputs[1].type;
  if (x.dtype != ir::DType::kU8 || table.shape != Shape{256})
    return Invalid(fmt::format("{} cannot index the table {}", ToText(x), ToText(table)));
  return Types{{table.dtype, x.shape}};
}

absl::StatusOr<Tensors> ExpressLookup(const OpCall& call, WorkloadBuilder& builder,
                                      const Tensors& tensors) {
  const Exprs point = Axes(call.inputs[0].type.shape.size());
  const Expr byte = ReadAt(call, builder, tensors, 0, point);
  return Tensors{builder.AddMap(call.inputs[0].type.shape,
                                builder.At(tensors[1], {ir::Cast(ir::DType::kI64, byte)}))};
}

constexpr OpDefinition kOps[] = {
    {"Gather", InferGather, ExpressGather},
    {"Lookup", InferLookup, ExpressLookup},
    {"GatherElements", InferGatherElements, ExpressGatherElements},
    {"GatherND", InferGatherNd, ExpressGatherNd},
};

}  // namespace

std::span<const OpDefinition> GatherOps() { return kOps; }

}  // namespace hone::graph::ops
