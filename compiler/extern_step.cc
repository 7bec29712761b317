#include "compiler/extern_step.h"

#include <array>
#include <string>
#include <string_view>

#include "fmt/core.h"

#include "base/status.h"
#include "graph/op.h"

namespace hone::compiler {
namespace {

absl::StatusOr<int64_t> Axis(const graph::OpCall& call, int64_t otherwise) {
  const auto rank = static_cast<int64_t>(call.inputs.front().type.shape.size());
  const int64_t axis = call.Int("axis", otherwise);
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(
        fmt::format("{} ({}): axis {} of rank {}", call.op, call.origin, axis, rank));
  }
  return axis < 0 ? axis + rank : axis;
}

absl::StatusOr<int64_t> Reduction(const graph::OpCall& call) {
  constexpr std::array<std::string_view, 5> kNames = {"none", "add", "mul", "max", "min"};
  const std::string name = call.String("reduction", "none");
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<int64_t>(i);
  }
  return absl::InvalidArgumentError(
      fmt::format("{} ({}): unknown reduction '{}'", call.op, call.origin, name));
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ExternAttributes(const graph::Graph& graph,
                                                      const graph::Node& node) {
  const graph::OpCall call = graph::MakeCall(graph, node);
  if (node.op == "TopK") {
    HONE_ASSIGN_OR_RETURN(const int64_t axis, Axis(call, -1));
    return std::vector<int64_t>{axis, call.Int("largest", 1), call.Int("sorted", 1)};
  }
  if (node.op == "ScatterElements") {
    HONE_ASSIGN_OR_RETURN(const int64_t axis, Axis(call, 0));
    HONE_ASSIGN_OR_RETURN(const int64_t reduction, Reduction(call));
    return std::vector<int64_t>{axis, reduction};
  }
  if (node.op == "ScatterND") {
    HONE_ASSIGN_OR_RETURN(const int64_t reduction, Reduction(call));
    return std::vector<int64_t>{reduction};
  }
  return absl::UnimplementedError(
      fmt::format("{} ({}): no routine of the runtime runs it", node.op, node.origin));
}

}  // namespace hone::compiler
