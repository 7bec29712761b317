#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// What no loop nest expresses: the runtime's routines of the same names (runtime/externs.h).
namespace hone::graph::ops {
namespace {

using ir::DType;

absl::StatusOr<Types> InferTopK(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  TensorType values = call.inputs[0].type;
  HONE_ASSIGN_OR_RETURN(const int64_t axis, ResolveAxis(call.Int("axis", -1), values.shape.size()));
  const int64_t k = call.Int("k", 0);
  int64_t& extent = values.shape[static_cast<size_t>(axis)];
  if (k < 0 || k > extent)
    return Invalid(fmt::format("k is {}, but the axis has {} elements", k, extent));
  if (ir::IsBool(values.dtype)) return Invalid("bool has no order");
  extent = k;
  return Types{values, {DType::kI64, values.shape}};
}

absl::Status CheckReduction(const OpCall& call) {
  const std::string reduction = call.String("reduction", "none");
  for (const char* known : {"none", "add", "mul", "max", "min"}) {
    if (reduction == known) {
      if (reduction != "none" && ir::IsBool(call.inputs[0].type.dtype))
        return Invalid("bool takes no reduction");
      return absl::OkStatus();
    }
  }
  return Invalid(fmt::format("unknown reduction '{}'", reduction));
}

absl::Status CheckScatter(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 3));
  HONE_RETURN_IF_ERROR(CheckReduction(call));
  const DType indices = call.inputs[1].type.dtype;
  if (indices != DType::kI64 && indices != DType::kI32)
    return Invalid(fmt::format("the indices must be i32 or i64, not {}", ToString(indices)));
  if (call.inputs[2].type.dtype != call.inputs[0].type.dtype)
    return Invalid("data and updates have different types");
  return absl::OkStatus();
}

absl::StatusOr<Types> InferScatterElements(const OpCall& call) {
  HONE_RETURN_IF_ERROR(CheckScatter(call));
  const TensorType& x = call.inputs[0].type;
  const Shape& indices = call.inputs[1].type.shape;
  HONE_ASSIGN_OR_RETURN(const int64_t axis, ResolveAxis(call.Int("axis", 0), x.shape.size()));
  bool fits = indices.size() == x.shape.size() && indices == call.inputs[2].type.shape;
  for (size_t d = 0; fits && d < indices.size(); ++d)
    fits = static_cast<int64_t>(d) == axis || indices[d] <= x.shape[d];
  if (!fits) {
    return Invalid(fmt::format("the indices {} and updates {} do not fit the data {}",
                               ToText(call.inputs[1].type), ToText(call.inputs[2].type),
                               ToText(x)));
  }
  return Types{x};
}

absl::StatusOr<Types> InferScatterNd(const OpCall& call) {
  HONE_RETURN_IF_ERROR(CheckScatter(call));
  const TensorType& x = call.inputs[0].type;
  const Shape& indices = call.inputs[1].type.shape;
  const auto rank = static_cast<int64_t>(x.shape.size());
  if (indices.empty() || indices.back() < 1 || indices.back() > rank) {
    return Invalid(fmt::format("the indices {} do not fit the data {}", ToText(call.inputs[1].type),
                               ToText(x)));
  }
  Shape updates(indices.begin(), indices.end() - 1);
  updates.insert(updates.end(), x.shape.begin() + indices.back(), x.shape.end());
  if (call.inputs[2].type.shape != updates) {
    return Invalid(fmt::format("updates must be [{}], not {}", fmt::join(updates, ","),
                               ToText(call.inputs[2].type)));
  }
  return Types{x};
}

constexpr OpDefinition kOps[] = {
    {"TopK", InferTopK, nullptr, "TopK"},
    {"ScatterElements", InferScatterElements, nullptr, "ScatterElements"},
    {"ScatterND", InferScatterNd, nullptr, "ScatterND"},
};

}  // namespace

std::span<const OpDefinition> ExternOps() { return kOps; }

}  // namespace hone::graph::ops
