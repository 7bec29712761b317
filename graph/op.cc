#include "graph/op.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/extent_span.h"
#include "graph/ops/definitions.h"
#include "graph/value_range.h"

namespace hone::graph {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 44;
constexpr size_t kMaxUserRank = 6;

using OpTable = std::map<std::string_view, const OpDefinition*, std::less<>>;

OpTable MakeTable() {
  OpTable table;
  for (const std::span<const OpDefinition> family : ops::AllFamilies()) {
    for (const OpDefinition& definition : family) {
      const bool added = table.emplace(definition.name, &definition).second;
      HONE_CHECK(added) << "two definitions of " << definition.name;
    }
  }
  return table;
}

const OpTable& Table() {
  static const OpTable table = MakeTable();
  return table;
}

template <typename T>
const T* Find(const OpCall& call, std::string_view name) {
  const auto found = call.attributes->find(name);
  return found == call.attributes->end() ? nullptr : std::get_if<T>(&found->second);
}

/// "conv1 (Conv) of f32[1,3,8,8], f32[4,3,3,3]".
std::string Describe(const OpCall& call) {
  std::vector<std::string> types;
  for (const OpInput& input : call.inputs)
    types.push_back(input.present ? ToText(input.type) : "-");
  return fmt::format("node {} ({}) of {}", call.origin.empty() ? "without name" : call.origin,
                     call.op,
                     types.empty() ? "nothing" : fmt::format("{}", fmt::join(types, ", ")));
}

absl::Status CheckType(const TensorType& type) {
  if (type.shape.size() > kMaxUserRank) {
    return absl::InvalidArgumentError(fmt::format(
        "its result has rank {}; ranks 0 to {} are supported", type.shape.size(), kMaxUserRank));
  }
  for (int64_t extent : type.shape) {
    if (extent < 0)
      return absl::InvalidArgumentError("its result has a negative extent: " + ToText(type));
  }
  if (ExtentSpan(type) > kMaxElements) {
    return absl::InvalidArgumentError("the size of its result overflows: " + ToText(type));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t OpCall::Int(std::string_view name, int64_t otherwise) const {
  const auto* value = Find<int64_t>(*this, name);
  return value == nullptr ? otherwise : *value;
}

double OpCall::Float(std::string_view name, double otherwise) const {
  const auto* value = Find<double>(*this, name);
  return value == nullptr ? otherwise : *value;
}

std::string OpCall::String(std::string_view name, std::string_view otherwise) const {
  const auto* value = Find<std::string>(*this, name);
  return value == nullptr ? std::string(otherwise) : *value;
}

std::vector<int64_t> OpCall::Ints(std::string_view name, std::vector<int64_t> otherwise) const {
  const auto* value = Find<std::vector<int64_t>>(*this, name);
  return value == nullptr ? std::move(otherwise) : *value;
}

std::vector<double> OpCall::Floats(std::string_view name, std::vector<double> otherwise) const {
  const auto* value = Find<std::vector<double>>(*this, name);
  return value == nullptr ? std::move(otherwise) : *value;
}

const OpDefinition* FindOp(std::string_view name) {
  const auto found = Table().find(name);
  return found == Table().end() ? nullptr : found->second;
}

std::vector<const OpDefinition*> AllOps() {
  std::vector<const OpDefinition*> all;
  for (const auto& [name, definition] : Table()) all.push_back(definition);
  return all;
}

OpCall MakeCall(const Graph& graph, const Node& node) {
  OpCall call;
  call.op = node.op;
  call.origin = node.origin;
  call.attributes = &node.attributes;
  call.num_outputs = static_cast<int>(node.outputs.size());
  for (ValueId id : node.inputs) {
    OpInput input;
    if (id != kNoValue) {
      const Value& value = graph.values[static_cast<size_t>(id)];
      input = {.present = true, .type = value.type, .constant = value.constant};
    }
    call.inputs.push_back(std::move(input));
  }
  return call;
}

absl::StatusOr<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const OpDefinition* definition = FindOp(call.op);
  if (definition == nullptr) return absl::UnimplementedError("Hone has no such operator");
  HONE_ASSIGN_OR_RETURN(std::vector<TensorType> types, definition->infer(call));
  HONE_CHECK(static_cast<int>(types.size()) >= call.num_outputs)
      << call.op << " has " << types.size() << " outputs, not " << call.num_outputs;
  types.resize(static_cast<size_t>(call.num_outputs));
  for (const TensorType& type : types) HONE_RETURN_IF_ERROR(CheckType(type));
  return types;
}

absl::StatusOr<std::vector<ValueId>> AppendNode(Graph& graph, Node node, int num_outputs) {
  OpCall call = MakeCall(graph, node);
  call.num_outputs = num_outputs;
  auto types = InferTypes(call);
  if (!types.ok()) return Annotate(types.status(), Describe(call));
  const auto id = static_cast<NodeId>(graph.nodes.size());
  node.outputs.clear();
  for (size_t i = 0; i < types->size(); ++i) {
    Value value;
    value.name = i == 0 ? node.origin : fmt::format("{}.{}", node.origin, i);
    value.type = std::move((*types)[i]);
    value.producer = id;
    node.outputs.push_back(graph.AddValue(std::move(value)));
  }
  std::vector<ValueId> outputs = node.outputs;
  SetRanges(graph, node);
  graph.nodes.push_back(std::move(node));
  return outputs;
}

}  // namespace hone::graph
