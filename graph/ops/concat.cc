#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

namespace hone::graph::ops {
namespace {

using ir::Expr;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

absl::StatusOr<Types> InferConcat(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, std::max<size_t>(call.inputs.size(), 1)));
  TensorType result = call.inputs[0].type;
  HONE_ASSIGN_OR_RETURN(const int64_t axis, ResolveAxis(call.Int("axis", 0), result.shape.size()));
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    const TensorType& x = call.inputs[i].type;
    bool fits = x.dtype == result.dtype && x.shape.size() == result.shape.size();
    for (size_t d = 0; fits && d < x.shape.size(); ++d) {
      fits = static_cast<int64_t>(d) == axis || x.shape[d] == result.shape[d];
    }
    int64_t& total = result.shape[static_cast<size_t>(axis)];
    if (!fits || __builtin_add_overflow(total, x.shape[static_cast<size_t>(axis)], &total)) {
      return Invalid(fmt::format("input {} ({}) cannot be joined to input 0 ({}) along axis {}", i,
                                 ToText(x), ToText(call.inputs[0].type), axis));
    }
  }
  return Types{std::move(result)};
}

/// Input `input`, read so that its first slice stands at `begin` of the result's axis.
struct Part {
  size_t input;
  int64_t begin;
};

absl::StatusOr<Tensors> ExpressConcat(const OpCall& call, WorkloadBuilder& builder,
                                      const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Types types, InferConcat(call));
  HONE_ASSIGN_OR_RETURN(const int64_t axis,
                        ResolveAxis(call.Int("axis", 0), types[0].shape.size()));
  const auto a = static_cast<size_t>(axis);
  const Exprs point = Axes(types[0].shape.size());
  std::vector<Part> parts;
  int64_t end = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const int64_t extent = call.inputs[i].type.shape[a];
    if (extent > 0) parts.push_back({i, end});
    end += extent;
  }
  if (parts.empty()) return Invalid("a result without elements has no Stage");
  const auto read = [&](const Part& part) {
    Exprs indices = point;
    indices[a] = point[a] - part.begin;
    return ReadAt(call, builder, tensors, part.input, std::move(indices));
  };
  // Few are tested one after the other; of many, halves, since a nest of tests has a limit.
  constexpr size_t kInTurn = 16;
  const auto choose = [&](const auto& self, std::span<const Part> among) -> Expr {
    if (among.size() == 1) return read(among[0]);
    const size_t cut = among.size() > kInTurn ? among.size() / 2 : 1;
    Expr first = self(self, among.first(cut));
    return ir::Select(ir::Lt(point[a], ir::Int(among[cut].begin)), std::move(first),
                      self(self, among.subspan(cut)));
  };
  return Tensors{builder.AddMap(types[0].shape, choose(choose, parts))};
}

constexpr OpDefinition kOps[] = {{"Concat", InferConcat, ExpressConcat}};

}  // namespace

std::span<const OpDefinition> ConcatOps() { return kOps; }

}  // namespace hone::graph::ops
