#include <algorithm>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/onnx_import/importer.h"
#include "graph/onnx_import/node_order.h"

// If, Loop and Scan are written out: a graph has no control flow. What decides is known while
// importing (extents of the model, constants, bound inputs), or else what is computed is selected
// afterwards: both branches of an If, every iteration of a Loop with a known limit.
namespace hone::graph::onnx_import {
namespace {

/// Written out, each iteration is a copy of the body.
constexpr int64_t kMaxIterations = 4096;

using Values = std::vector<ValueId>;

/// The body in `attribute`; an error of the node unless it has that many inputs (-1: any number)
/// and outputs.
const onnx::GraphProto* BodyOf(NodeImport& node, std::string_view attribute, int inputs,
                               int outputs) {
  const onnx::AttributeProto* found = node.RawAttribute(attribute);
  if (found == nullptr || !found->has_g()) {
    node.Invalid(fmt::format("attribute '{}' is missing or is not a graph", attribute));
    return nullptr;
  }
  const onnx::GraphProto& body = found->g();
  if ((inputs < 0 || body.input_size() == inputs) && body.output_size() == outputs) return &body;
  node.Invalid(fmt::format("attribute '{}' is a graph of {} inputs and {} outputs, not {} and {}",
                           attribute, body.input_size(), body.output_size(), std::max(inputs, 0),
                           outputs));
  return nullptr;
}

ValueId ScalarBool(NodeImport& node, ValueId value) {
  const TensorType type = node.TypeOf(value);
  if (type.dtype != ir::DType::kBool || type.NumElements() != 1) {
    node.Invalid(fmt::format("its condition must be one bool, not {}", ToText(type)));
    return kNoValue;
  }
  return type.shape.empty() ? value : node.Reshape(value, {});
}

/// Slice `i` of `x` along `axis`, without that axis.
ValueId SliceAt(NodeImport& node, ValueId x, int64_t axis, int64_t i) {
  std::vector<int64_t> shape = node.ShapeOf(x);
  std::vector<int64_t> starts(shape.size(), 0);
  const std::vector<int64_t> steps(shape.size(), 1);
  const auto at = static_cast<size_t>(axis);
  starts[at] = i;
  shape[at] = 1;
  const ValueId slice =
      node.Emit("Slice", {x}, {{"starts", starts}, {"steps", steps}, {"sizes", shape}});
  shape.erase(shape.begin() + axis);
  return node.Reshape(slice, std::move(shape));
}

/// Equal shapes next to each other along a new axis (negative: counted from the end of the result).
ValueId Stack(NodeImport& node, const Values& values, int64_t axis) {
  if (values.empty()) {
    node.Unsupported("it runs no iteration, so the shapes of its stacked outputs are not known");
    return kNoValue;
  }
  std::vector<int64_t> shape = node.ShapeOf(values[0]);
  axis = node.Axis(axis, shape.size() + 1);
  if (!node.ok()) return kNoValue;
  std::vector<ValueId> parts;
  shape.insert(shape.begin() + axis, 1);
  for (ValueId value : values) {
    if (node.TypeOf(value) != node.TypeOf(values[0])) {
      node.Invalid(fmt::format("an iteration gives {}, an earlier one {}; they cannot be stacked",
                               ToText(node.TypeOf(value)), ToText(node.TypeOf(values[0]))));
      return kNoValue;
    }
    parts.push_back(node.Reshape(value, shape));
  }
  return parts.size() == 1 ? parts[0] : node.Emit("Concat", parts, {{"axis", axis}});
}

/// One number for each of `count` tensors: the attribute, or zeros.
std::vector<int64_t> PerTensor(NodeImport& node, std::string_view attribute, size_t count) {
  std::vector<int64_t> values = node.Ints(attribute, std::vector<int64_t>(count, 0));
  if (values.size() != count) {
    node.Invalid(
        fmt::format("attribute '{}' must have {} values, not {}", attribute, count, values.size()));
    values.resize(count);
  }
  return values;
}

/// Whether a condition that is known only when the model runs can choose between them.
bool CanSelect(NodeImport& node, ValueId a, ValueId b) { return node.TypeOf(a) == node.TypeOf(b); }

/// Whether a node from number `first` on looks up where something unknown says: outside its table
/// that ends a run, also where the result is not taken.
bool MayFault(const Graph& graph, size_t first) {
  for (size_t i = first; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!node.op.starts_with("Gather") && !node.op.starts_with("Scatter")) continue;
    if (graph.values[static_cast<size_t>(node.inputs[1])].constant == nullptr) return true;
  }
  return false;
}

/// A scalar as the body declares its input: some say [1].
ValueId AsDeclared(NodeImport& node, ValueId scalar, const onnx::ValueInfoProto& input) {
  const onnx::TypeProto::Tensor& type = input.type().tensor_type();
  return type.has_shape() && type.shape().dim_size() == 1 ? node.Reshape(scalar, {1}) : scalar;
}

}  // namespace

bool IsControlFlow(const onnx::NodeProto& proto) {
  return proto.op_type() == "If" || proto.op_type() == "Loop" || proto.op_type() == "Scan";
}

bool HasUnknown(const std::vector<ValueId>& values) {
  return std::find(values.begin(), values.end(), kUnknown) != values.end();
}

absl::StatusOr<Values> Importer::AddBody(const onnx::GraphProto& graph, const Values& inputs,
                                         const Body& body, const Scope& scope) {
  // Counted though it may hold no node, so that loops in loops end.
  HONE_RETURN_IF_ERROR(CountNode(fmt::format("the body '{}'", graph.name())));
  Scope names(&scope);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = graph.input(static_cast<int>(i)).name();
    if (!names.Define(name, inputs[i]))
      return absl::InvalidArgumentError(
          fmt::format("two inputs of its body are called '{}'", name));
  }
  const size_t reports = failed_.size();
  HONE_RETURN_IF_ERROR(AddNodes(graph.node(), body, names));
  Values outputs;
  for (const onnx::ValueInfoProto& output : graph.output()) {
    const ValueId* made = names.Find(output.name());
    if (made == nullptr)
      return absl::InvalidArgumentError(
          fmt::format("no node makes its output '{}'", output.name()));
    outputs.push_back(*made);
  }
  // Once is enough to say so.
  if (failed_.size() > reports) outputs.assign(outputs.size(), kUnknown);
  return outputs;
}

absl::StatusOr<Values> Importer::AddBranch(NodeImport& node, const Body& body, const Scope& scope) {
  const Values failed(node.num_outputs(), kUnknown);
  const auto count = static_cast<int>(node.num_outputs());
  const onnx::GraphProto* branches[] = {BodyOf(node, "else_branch", 0, count),
                                        BodyOf(node, "then_branch", 0, count)};
  const ValueId condition = ScalarBool(node, node.Input(0));
  if (!node.ok()) return failed;
  const auto add = [&](size_t which) -> absl::StatusOr<Values> {
    Scope constants(&scope);
    HONE_RETURN_IF_ERROR(AddInitializers(*branches[which], constants));
    return AddBody(*branches[which], {}, body, constants);
  };
  const ConstantPtr known = node.Known(condition);
  if (known != nullptr) return add(known->DoubleAt(0) != 0 ? 1 : 0);
  const size_t reports = failed_.size(), nodes = graph_.nodes.size();
  HONE_ASSIGN_OR_RETURN(const Values otherwise, add(0));
  HONE_ASSIGN_OR_RETURN(Values values, add(1));
  // A node that cannot be imported may stand in the branch that is never taken.
  bool both = !HasUnknown(values) && !HasUnknown(otherwise) && !MayFault(graph_, nodes);
  failed_.Shrink(reports);
  for (size_t i = 0; both && i < values.size(); ++i) {
    both = CanSelect(node, values[i], otherwise[i]);
    if (both) values[i] = node.Select(condition, values[i], otherwise[i]);
  }
  if (!both) node.FailUnknown(condition, "its condition");
  return both ? values : failed;
}

void Importer::TellIteration(const NodeImport& node, int64_t done, int64_t total) const {
  if (loops_ == 0 && options_.on_iteration != nullptr)
    options_.on_iteration(node.origin(), done, total);
}

/// What an iteration leaves to the next one.
struct Importer::LoopState {
  ValueId running;  ///< a bool: whether another iteration counts
  Values carried;
  std::vector<Values> stacks;
};

absl::Status Importer::AddIteration(NodeImport& node, const onnx::GraphProto& graph, int64_t number,
                                    const Body& body, const Scope& scope, LoopState& state) {
  const bool decided = node.Known(state.running) != nullptr;
  const size_t reports = failed_.size(), nodes = graph_.nodes.size();
  Values inputs = {node.Scalar(ir::DType::kI64, static_cast<double>(number)), state.running};
  for (size_t i = 0; i < 2; ++i)
    inputs[i] = AsDeclared(node, inputs[i], graph.input(static_cast<int>(i)));
  inputs.insert(inputs.end(), state.carried.begin(), state.carried.end());
  ++loops_;
  absl::StatusOr<Values> added = AddBody(graph, inputs, body, scope);
  --loops_;
  HONE_ASSIGN_OR_RETURN(const Values made, std::move(added));
  if (!decided && (HasUnknown(made) || MayFault(graph_, nodes))) {
    failed_.Shrink(reports);  // of an iteration that may never run
    node.FailUnknown(state.running, "whether it goes on");
    return absl::OkStatus();
  }
  if (HasUnknown(made)) {
    state.carried.assign(state.carried.size(), kUnknown);
    state.running = kUnknown;
    return absl::OkStatus();
  }
  const auto carried = static_cast<ptrdiff_t>(state.carried.size());
  if (decided) state.carried.assign(made.begin() + 1, made.begin() + 1 + carried);
  for (size_t i = 0; !decided && i < state.carried.size(); ++i) {
    if (!CanSelect(node, state.carried[i], made[i + 1])) {
      node.FailUnknown(state.running, "whether it goes on");
      return absl::OkStatus();
    }
    state.carried[i] = node.Select(state.running, made[i + 1], state.carried[i]);
  }
  for (size_t i = 0; i < state.stacks.size(); ++i)
    state.stacks[i].push_back(made[1 + state.carried.size() + i]);
  const ValueId goes_on = ScalarBool(node, made[0]);
  state.running = decided ? goes_on : node.Select(state.running, goes_on, state.running);
  return absl::OkStatus();
}

absl::StatusOr<Values> Importer::AddLoop(NodeImport& node, const Body& body, const Scope& scope) {
  const Values failed(node.num_outputs(), kUnknown);
  const size_t carried = std::max<size_t>(node.num_inputs(), 2) - 2;
  const size_t stacked = std::max(node.num_outputs(), carried) - carried;
  const onnx::GraphProto* graph =
      BodyOf(node, "body", static_cast<int>(carried) + 2, static_cast<int>(1 + carried + stacked));
  const int64_t limit = node.Has(0) ? node.KnownInt(0, "its number of iterations") : INT64_MAX;
  LoopState state{
      .running = node.Has(1) ? ScalarBool(node, node.Input(1)) : node.Scalar(ir::DType::kBool, 1),
      .carried = {},
      .stacks = std::vector<Values>(stacked)};
  for (size_t i = 0; i < carried; ++i) state.carried.push_back(node.Input(i + 2));
  if (!node.ok()) return failed;
  Scope constants(&scope);
  HONE_RETURN_IF_ERROR(AddInitializers(*graph, constants));
  for (int64_t i = 0; i < limit; ++i) {
    const ConstantPtr goes_on = node.Known(state.running);
    if (goes_on != nullptr && goes_on->DoubleAt(0) == 0) break;
    if (goes_on == nullptr && (limit > kMaxIterations || stacked > 0))
      node.FailUnknown(state.running, "whether it goes on");
    if (i == kMaxIterations)
      node.Unsupported(
          fmt::format("it runs more than {} iterations, which is the limit", kMaxIterations));
    if (!node.ok()) return failed;
    TellIteration(node, i, limit <= kMaxIterations ? limit : -1);
    HONE_RETURN_IF_ERROR(AddIteration(node, *graph, i, body, constants, state));
    if (!node.ok() || state.running == kUnknown) return failed;
  }
  for (const Values& stack : state.stacks) state.carried.push_back(Stack(node, stack, 0));
  state.carried.resize(node.num_outputs());
  return state.carried;
}

absl::StatusOr<Values> Importer::AddScan(NodeImport& node, const Body& body, const Scope& scope) {
  const Values failed(node.num_outputs(), kUnknown);
  if (node.opset() < 9) {
    node.Unsupported(
        "operator set 8 is not supported for it; convert the model with onnx.version_converter");
    return failed;
  }
  const auto inputs = static_cast<int64_t>(node.num_inputs());
  const int64_t scanned = node.Int("num_scan_inputs", 0);
  if (scanned < 1 || scanned > inputs)
    node.Invalid(fmt::format("num_scan_inputs is {}, but it has {} inputs", scanned, inputs));
  if (!node.ok()) return failed;
  const auto states = static_cast<size_t>(inputs - scanned);
  const size_t stacked = std::max(node.num_outputs(), states) - states;
  const onnx::GraphProto* graph =
      BodyOf(node, "body", static_cast<int>(inputs), static_cast<int>(states + stacked));
  const auto sources = static_cast<size_t>(scanned);
  std::vector<int64_t> axes = PerTensor(node, "scan_input_axes", sources);
  const std::vector<int64_t> directions = PerTensor(node, "scan_input_directions", sources);
  const std::vector<int64_t> output_axes = PerTensor(node, "scan_output_axes", stacked);
  const std::vector<int64_t> output_directions = PerTensor(node, "scan_output_directions", stacked);
  int64_t length = 0;
  for (size_t i = 0; i < sources && node.ok(); ++i) {
    const std::vector<int64_t> shape = node.ShapeOf(node.Input(states + i));
    axes[i] = node.Axis(axes[i], shape.size());
    if (!node.ok()) break;
    const int64_t extent = shape[static_cast<size_t>(axes[i])];
    if (i > 0 && extent != length)
      node.Invalid(fmt::format("one scanned input has {} slices and another {}; they must be equal",
                               length, extent));
    length = extent;
  }
  if (length > kMaxIterations)
    node.Unsupported(
        fmt::format("it runs {} iterations; at most {} are supported", length, kMaxIterations));
  Values state;
  for (size_t i = 0; i < states; ++i) state.push_back(node.Input(i));
  if (!node.ok()) return failed;
  Scope constants(&scope);
  HONE_RETURN_IF_ERROR(AddInitializers(*graph, constants));
  std::vector<Values> stacks(stacked);
  for (int64_t step = 0; step < length; ++step) {
    TellIteration(node, step, length);
    Values arguments = state;
    for (size_t i = 0; i < sources; ++i) {
      const int64_t at = directions[i] == 0 ? step : length - 1 - step;
      arguments.push_back(SliceAt(node, node.Input(states + i), axes[i], at));
    }
    ++loops_;
    absl::StatusOr<Values> added = AddBody(*graph, arguments, body, constants);
    --loops_;
    HONE_ASSIGN_OR_RETURN(const Values made, std::move(added));
    if (!node.ok() || HasUnknown(made)) return failed;
    state.assign(made.begin(), made.begin() + static_cast<ptrdiff_t>(states));
    for (size_t i = 0; i < stacked; ++i) stacks[i].push_back(made[states + i]);
  }
  for (size_t i = 0; i < stacked; ++i) {
    if (output_directions[i] != 0) std::reverse(stacks[i].begin(), stacks[i].end());
    state.push_back(Stack(node, stacks[i], output_axes[i]));
  }
  state.resize(node.num_outputs());
  return state;
}

}  // namespace hone::graph::onnx_import
