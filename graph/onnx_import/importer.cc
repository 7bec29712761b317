#include "graph/onnx_import/importer.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/onnx_import/foreign_operators.h"
#include "graph/onnx_import/handler.h"
#include "graph/onnx_import/model_cut.h"
#include "graph/onnx_import/node_order.h"
#include "graph/value_range.h"

namespace hone::graph::onnx_import {
namespace {

constexpr int kMaxCallDepth = 32;
/// Limit of nodes in the graph, and of ONNX nodes imported, each call of a function counted anew:
/// functions that call the next one twice make 2^depth imports of a file of a few kilobytes, and
/// Identity and Constant leave no trace in the graph.
constexpr size_t kMaxNodes = size_t{1} << 20;
/// Beyond these, nodes behind a failed one are not looked at.
constexpr size_t kMaxReports = 100;

// Operators that take numbers of four bits for what they are, and those that give them on.
constexpr std::array<std::string_view, 3> kReadFourBits = {"DequantizeLinear", "Cast",
                                                            "CastLike"};
constexpr std::array<std::string_view, 10> kMoveFourBits = {
    "Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze",
    "Flatten",  "Gather",  "Slice",     "Split",   "Concat"};

absl::Status Invalid(std::string message) { return absl::InvalidArgumentError(std::move(message)); }

std::string DomainOf(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

absl::Status CheckCounts(const onnx::NodeProto& proto, const Handler& handler) {
  const auto inputs = static_cast<size_t>(proto.input_size());
  const auto outputs = static_cast<size_t>(proto.output_size());
  if (inputs < handler.min_inputs || inputs > handler.max_inputs) {
    return Invalid(handler.min_inputs == handler.max_inputs
                       ? fmt::format("it has {} inputs, not {}", inputs, handler.min_inputs)
                       : fmt::format("it has {} inputs, not {} to {}", inputs, handler.min_inputs,
                                     handler.max_inputs));
  }
  if (outputs < 1 || outputs > handler.max_outputs) {
    return Invalid(fmt::format("it has {} outputs, not 1 to {}", outputs, handler.max_outputs));
  }
  return absl::OkStatus();
}

std::string WhyNoHandler(const std::string& domain, const std::string& op, int64_t opset) {
  if (!domain.empty()) return WhyForeign(domain, op);
  const int64_t first = FirstOpset(op);
  if (first == 0) return kUnknownOperator;
  return fmt::format(
      "Hone supports it from operator set {} on, but this model uses {}; convert the model with "
      "onnx.version_converter",
      first, opset);
}

/// Attributes must be ones that somebody asked for.
absl::Status CheckNames(const std::vector<std::string>& unknown, int64_t opset) {
  if (unknown.empty()) return absl::OkStatus();
  return Invalid(
      fmt::format("unknown attribute '{}' at opset {}", fmt::join(unknown, "', '"), opset));
}

/// The handler's result: its own errors first, then attributes that nobody knows.
absl::Status RunHandler(const Handler& handler, NodeImport& node) {
  ReadNode(handler, node);
  HONE_RETURN_IF_ERROR(node.status());
  return CheckNames(node.UnknownAttributes(), node.opset());
}

/// The attributes of a function that these nodes read.
void CollectReferences(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                       std::set<std::string>& names) {
  for (const onnx::NodeProto& node : nodes) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (!attribute.ref_attr_name().empty()) names.insert(attribute.ref_attr_name());
      if (attribute.has_g()) CollectReferences(attribute.g().node(), names);
    }
  }
}

/// A call's attributes must be ones that the function declares, or reads without declaring them.
absl::Status CheckArguments(const onnx::FunctionProto& function,
                            const std::map<std::string, const onnx::AttributeProto*>& given) {
  if (given.empty()) return absl::OkStatus();
  std::set<std::string> known(function.attribute().begin(), function.attribute().end());
  for (const onnx::AttributeProto& otherwise : function.attribute_proto())
    known.insert(otherwise.name());
  CollectReferences(function.node(), known);
  for (const auto& [name, value] : given) {
    if (known.contains(name)) continue;
    return Invalid(fmt::format("unknown attribute '{}'; the function has {}", name,
                               known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
  }
  return absl::OkStatus();
}

}  // namespace

const ValueId* Scope::Find(const std::string& name) const {
  const auto found = names_.find(name);
  if (found != names_.end()) return &found->second;
  return parent_ == nullptr ? nullptr : parent_->Find(name);
}

Importer::Importer(std::shared_ptr<const onnx::ModelProto> model, const ImportOptions& options)
    : model_(std::move(model)),
      options_(options),
      tensors_(model_, options.folder, options.linked_folder) {}

absl::StatusOr<Graph> Importer::Run() {
  if (!model_->has_graph()) return Invalid("the file holds no graph: is it an ONNX model?");
  const onnx::GraphProto& graph = model_->graph();
  graph_.name = graph.name();
  Body body;
  HONE_ASSIGN_OR_RETURN(body.opsets, Opsets(model_->opset_import()));
  HONE_RETURN_IF_ERROR(CheckOutputs(graph));
  if (!options_.outputs.empty()) needed_ = NamesNeeded(graph.node(), options_.outputs);
  const std::vector<FreeInput> inputs = FreeInputs(graph);
  HONE_ASSIGN_OR_RETURN(inputs_, ResolveInputShapes(inputs, options_));
  Scope scope;
  HONE_RETURN_IF_ERROR(AddInitializers(graph, scope));
  HONE_RETURN_IF_ERROR(AddInputs(inputs, scope));
  HONE_RETURN_IF_ERROR(AddNodes(graph.node(), body, scope));
  HONE_RETURN_IF_ERROR(Verdict(scope));
  HONE_RETURN_IF_ERROR(SetOutputs(scope));
  InferRanges(graph_, unstated_);
  if (options_.data_files != nullptr) *options_.data_files = tensors_.DataFiles();
  return std::move(graph_);
}

bool Importer::FailedAtNodes() const {
  constexpr size_t kMaxNodesToRepeat = 20'000;
  return failed_.size() > 0 && imported_nodes_ <= kMaxNodesToRepeat;
}

absl::StatusOr<std::map<std::string, int64_t>> Importer::Opsets(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  std::map<std::string, int64_t> opsets;
  for (const onnx::OperatorSetIdProto& import : imports)
    opsets[DomainOf(import.domain())] = import.version();
  const auto found = opsets.find("");
  if (found == opsets.end()) {
    if (opsets.empty()) return Invalid("the model names no version of ONNX's default operator set");
    opsets[""] = 0;  // operators of other domains only, each of which is reported
    return opsets;
  }
  constexpr int64_t kOldestOpset = 1;
  if (found->second < kOldestOpset || found->second > kNewestOpset) {
    return Invalid(
        fmt::format("operator set {} is not supported, only {} to {}; convert the model with "
                    "onnx.version_converter",
                    found->second, kOldestOpset, kNewestOpset));
  }
  return opsets;
}

absl::Status Importer::AddInitializers(const onnx::GraphProto& graph, Scope& scope) {
  const auto define = [&](const std::string& name,
                          absl::StatusOr<ConstantPtr> data) -> absl::Status {
    if (!data.ok()) return Annotate(data.status(), fmt::format("initialiser '{}'", name));
    if (name.empty()) return Invalid("an initialiser has no name");
    if (!scope.Define(name, graph_.AddConstant(*std::move(data), name))) {
      return Invalid(fmt::format("two initialisers are called '{}'", name));
    }
    return absl::OkStatus();
  };
  const bool main = &graph == &model_->graph();
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    if (main && IsOverridden(tensor.name())) continue;
    HONE_RETURN_IF_ERROR(CountNode(fmt::format("initialiser '{}'", tensor.name())));
    HONE_RETURN_IF_ERROR(define(tensor.name(), tensors_.Read(tensor)));
    if (IsFourBits(tensor.data_type())) four_bits_.insert(*scope.Find(tensor.name()));
  }
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer()) {
    if (main && IsOverridden(tensor.values().name())) continue;
    HONE_RETURN_IF_ERROR(CountNode(fmt::format("initialiser '{}'", tensor.values().name())));
    HONE_RETURN_IF_ERROR(define(tensor.values().name(), tensors_.ReadSparse(tensor)));
  }
  return absl::OkStatus();
}

absl::Status Importer::AddNodes(const NodeProtos& nodes, const Body& body, Scope& scope) {
  // A body has the same order in every iteration, and finding it looks into all bodies inside.
  const auto [entry, first_time] = orders_.try_emplace(&nodes);
  const std::vector<int>& order = entry->second;
  if (first_time) {
    const KnownNames known = {[&](const std::string& name) { return scope.Find(name) != nullptr; },
                              [&](const std::string& name) { return scope.Owns(name); }};
    HONE_ASSIGN_OR_RETURN(entry->second, TopologicalOrder(nodes, known));
  }
  const bool main = &nodes == &model_->graph().node();
  for (int i : order) {
    if (main && !IsNeeded(nodes[i])) continue;
    HONE_RETURN_IF_ERROR(CountNode(NodeText(nodes[i])));
    HONE_RETURN_IF_ERROR(AddNode(nodes[i], body, scope));
  }
  return absl::OkStatus();
}

absl::Status Importer::CountNode(const std::string& what) {
  if (++imported_nodes_ <= kMaxNodes && graph_.nodes.size() <= kMaxNodes) return absl::OkStatus();
  return Invalid(fmt::format(
      "{}: the model has more than {} nodes once its functions and loops are written out; split "
      "it, or export it with fewer nested functions",
      what, kMaxNodes));
}

absl::Status Importer::AddNode(const onnx::NodeProto& proto, const Body& body, Scope& scope) {
  AttributeMap attributes;
  for (const onnx::AttributeProto& attribute : proto.attribute()) {
    const onnx::AttributeProto* value = &attribute;
    if (!attribute.ref_attr_name().empty()) {
      if (body.arguments == nullptr)
        return Invalid(NodeText(proto) + " refers to an attribute of a function outside one");
      const auto argument = body.arguments->find(attribute.ref_attr_name());
      if (argument == body.arguments->end()) continue;
      value = argument->second;
    }
    if (!attributes.emplace(attribute.name(), value).second) {
      return Invalid(fmt::format("{} has two attributes '{}'", NodeText(proto), attribute.name()));
    }
  }
  const std::string domain = DomainOf(proto.domain());
  for (const onnx::FunctionProto& function : model_->functions()) {
    if (function.name() == proto.op_type() && DomainOf(function.domain()) == domain &&
        function.overload() == proto.overload()) {
      return CallFunction(function, proto, attributes, body, scope);
    }
  }
  const int64_t opset = body.opsets.at("");
  const bool control_flow = domain.empty() && IsControlFlow(proto);
  const Handler* handler = domain.empty()              ? FindHandler(proto.op_type(), opset)
                           : domain == "com.microsoft" ? FindMicrosoftHandler(proto.op_type())
                                                       : nullptr;
  std::vector<ValueId> inputs;
  for (const std::string& name : proto.input())
    inputs.push_back(name.empty() ? kNoValue : *scope.Find(name));
  if (!control_flow && (handler == nullptr || handler->import == nullptr)) {
    Report(
        proto, scope,
        absl::UnimplementedError(handler == nullptr ? WhyNoHandler(domain, proto.op_type(), opset)
                                                    : std::string(handler->unsupported)));
    DefineUnknown(proto, scope);
    return absl::OkStatus();
  }
  if (HasUnknown(inputs)) {
    if (!control_flow) CheckBehind(*handler, {proto, attributes, inputs, opset}, scope);
    DefineUnknown(proto, scope);
    return absl::OkStatus();
  }
  const absl::Status known_type = CheckFourBits(proto, inputs);
  NodeImport node(graph_, tensors_, proto, std::move(attributes), std::move(inputs), opset);
  if (control_flow && known_type.ok()) return AddControlFlow(node, proto, body, scope);
  absl::Status status = control_flow ? known_type : CheckCounts(proto, *handler);
  if (status.ok()) status = known_type;
  if (status.ok()) status = RunHandler(*handler, node);
  if (!status.ok()) {
    Report(proto, scope, status, node.deciders());
    DefineUnknown(proto, scope);
    return absl::OkStatus();
  }
  for (int i = 0; i < proto.output_size(); ++i) {
    const std::string& name = proto.output(i);
    if (!name.empty())
      scope.Define(name, AsBytes(proto, node.outputs()[static_cast<size_t>(i)], name));
  }
  NoteFourBits(proto, node.inputs(), node.outputs());
  return absl::OkStatus();
}

absl::Status Importer::CheckFourBits(const onnx::NodeProto& proto,
                                     const std::vector<ValueId>& inputs) const {
  const auto has = [&](ValueId v) { return four_bits_.contains(v); };
  const auto is_one_of = [&](const auto& names) {
    return std::ranges::find(names, proto.op_type()) != names.end();
  };
  const auto first = std::ranges::find_if(inputs, has);
  if (first == inputs.end()) return absl::OkStatus();
  const bool makes = proto.op_type() == "CastLike" && has(inputs.back());
  if (!makes && (is_one_of(kReadFourBits) || is_one_of(kMoveFourBits))) return absl::OkStatus();
  return NoFourBits(*first);
}

absl::Status Importer::NoFourBits(ValueId value) const {
  const bool is_signed = graph_.values[static_cast<size_t>(value)].type.dtype == ir::DType::kI8;
  return absl::UnimplementedError(
      fmt::format("elements of type {} are not supported", is_signed ? "INT4" : "UINT4"));
}

ValueId Importer::AsBytes(const onnx::NodeProto& proto, ValueId made, const std::string& name) {
  const bool reads = std::ranges::find(kReadFourBits, proto.op_type()) != kReadFourBits.end();
  return reads && four_bits_.contains(made) ? OutputCopy(made, name) : made;
}

void Importer::NoteFourBits(const onnx::NodeProto& proto, const std::vector<ValueId>& inputs,
                            const std::vector<ValueId>& outputs) {
  const bool moves = !inputs.empty() && four_bits_.contains(inputs[0]) &&
                     std::ranges::find(kMoveFourBits, proto.op_type()) != kMoveFourBits.end();
  const bool holds = std::ranges::any_of(proto.attribute(), [](const auto& attribute) {
    return attribute.name() == "value" && IsFourBits(attribute.t().data_type());
  });
  for (const ValueId output : outputs)
    if ((moves || holds) && output >= 0) four_bits_.insert(output);
}

absl::Status Importer::CallFunction(const onnx::FunctionProto& function,
                                    const onnx::NodeProto& proto, const AttributeMap& attributes,
                                    const Body& body, Scope& scope) {
  if (body.depth >= kMaxCallDepth)
    return Invalid(NodeText(proto) + ": functions call each other too deeply");
  if (proto.input_size() > function.input_size() || proto.output_size() > function.output_size()) {
    return Invalid(fmt::format(
        "{}: it has {} inputs and {} outputs, but the function has {} and {}", NodeText(proto),
        proto.input_size(), proto.output_size(), function.input_size(), function.output_size()));
  }
  HONE_RETURN_IF_ERROR(Annotate(CheckArguments(function, attributes), NodeText(proto)));
  AttributeMap arguments = attributes;
  for (const onnx::AttributeProto& otherwise : function.attribute_proto())
    arguments.emplace(otherwise.name(), &otherwise);
  Body inner{.arguments = &arguments, .depth = body.depth + 1};
  HONE_ASSIGN_OR_RETURN(inner.opsets, Opsets(function.opset_import()));
  Scope names;
  for (int i = 0; i < function.input_size(); ++i) {
    const bool given = i < proto.input_size() && !proto.input(i).empty();
    names.Define(function.input(i), given ? *scope.Find(proto.input(i)) : kNoValue);
  }
  HONE_RETURN_IF_ERROR(AddNodes(function.node(), inner, names));
  for (int i = 0; i < proto.output_size(); ++i) {
    const ValueId* made = names.Find(function.output(i));
    if (made == nullptr)
      return Invalid(fmt::format("{}: no node makes the function's output '{}'", NodeText(proto),
                                 function.output(i)));
    if (!proto.output(i).empty()) scope.Define(proto.output(i), *made);
  }
  return absl::OkStatus();
}

absl::Status Importer::AddControlFlow(NodeImport& node, const onnx::NodeProto& proto,
                                      const Body& body, Scope& scope) {
  const size_t reports = failed_.size();
  absl::StatusOr<std::vector<ValueId>> made = node.op() == "If"     ? AddBranch(node, body, scope)
                                              : node.op() == "Loop" ? AddLoop(node, body, scope)
                                                                    : AddScan(node, body, scope);
  if (!made.ok()) return Annotate(made.status(), NodeText(proto));
  if (node.ok()) node.Fail(CheckNames(node.UnknownAttributes(), node.opset()));
  const bool reported = failed_.size() > reports;  // nodes of its body
  if (!node.ok() && !reported) Report(proto, scope, node.status(), node.deciders());
  if (!node.ok() || reported || HasUnknown(*made)) {
    DefineUnknown(proto, scope);
    return absl::OkStatus();
  }
  for (int i = 0; i < proto.output_size(); ++i) {
    if (!proto.output(i).empty()) scope.Define(proto.output(i), (*made)[static_cast<size_t>(i)]);
  }
  return absl::OkStatus();
}

void Importer::CheckBehind(const Handler& handler, const NodeBehind& node, const Scope& scope) {
  absl::Status status = CheckCounts(node.proto, handler);
  if (status.ok() && failed_.size() <= kMaxReports) {
    status = CheckNames(UnaskedAttributes(handler, node, graph_, tensors_), node.opset);
  }
  if (!status.ok()) Report(node.proto, scope, status);
}

void Importer::DefineUnknown(const onnx::NodeProto& proto, Scope& scope) const {
  for (const std::string& output : proto.output()) {
    if (!output.empty()) scope.Define(output, kUnknown);
  }
}

void Importer::Report(const onnx::NodeProto& proto, const Scope& scope, const absl::Status& status,
                      const std::vector<ValueId>& deciders) {
  std::vector<std::string> types;
  for (const std::string& name : proto.input()) {
    const ValueId* value = name.empty() ? nullptr : scope.Find(name);
    const bool known = value != nullptr && *value >= 0;
    types.push_back(known          ? ToText(graph_.values[static_cast<size_t>(*value)].type)
                    : name.empty() ? "-"
                                   : "?");
  }
  const std::string text = types.empty()
                               ? NodeText(proto)
                               : fmt::format("{} of {}", NodeText(proto), fmt::join(types, ", "));
  failed_.Add({.name = NodeName(proto),
               .node = text,
               .op = proto.op_type(),
               .reason = status,
               .deciders = deciders});
}

absl::Status Importer::Verdict(const Scope& scope) const {
  std::vector<std::string> cut;
  if (failed_.size() > 0 && failed_.AllUnimplemented()) {
    const onnx::GraphProto& graph = model_->graph();
    std::vector<ValueId> wanted;
    const auto want = [&](const std::string& name) {
      const ValueId* value = scope.Find(name);
      if (value == nullptr || *value < 0) return;
      if (graph_.values[static_cast<size_t>(*value)].producer >= 0) wanted.push_back(*value);
    };
    for (const onnx::NodeProto& node : graph.node()) {
      const auto unknown = [&](const std::string& output) {
        const ValueId* value = scope.Find(output);
        return value != nullptr && *value == kUnknown;
      };
      if (!std::any_of(node.output().begin(), node.output().end(), unknown)) continue;
      for (const std::string& name : NamesRead(node)) want(name);
    }
    for (const OutputName& output : Outputs()) want(output.name);
    cut = CutBefore(graph_, wanted, scope.names());
  }
  return failed_.Verdict(graph_, cut);
}

}  // namespace hone::graph::onnx_import
