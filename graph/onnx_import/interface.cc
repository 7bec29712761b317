#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "fmt/format.h"

#include "base/log.h"
#include "base/status.h"
#include "graph/extent_span.h"
#include "graph/onnx_import/importer.h"
#include "graph/onnx_import/input_shapes.h"
#include "graph/op.h"
#include "graph/value_range.h"

// The Importer's view of a graph's inputs and outputs: shapes, symbolic dimensions, value ranges,
// names.
namespace hone::graph::onnx_import {
namespace {

absl::Status Invalid(std::string message) { return absl::InvalidArgumentError(std::move(message)); }

/// "low=0,high=30522" or "ones=100" of an input's doc string, or nothing.
std::optional<ir::ValueRange> StatedRange(const std::string& doc) {
  ir::ValueRange range{0, 0};
  bool stated = false;
  size_t at = 0;
  while (at < doc.size()) {
    const size_t end = std::min(doc.find(',', at), doc.size());
    const std::string entry = doc.substr(at, end - at);
    at = end + 1;
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = entry.substr(0, equals);
    const char* const first = entry.data() + equals + 1;
    double value = 0;
    if (std::from_chars(first, entry.data() + entry.size(), value).ec != std::errc()) continue;
    if (key == "low") range.low = value;
    if (key == "high") range.high = value;
    if (key == "ones") range = {0, 2};
    stated = stated || key == "high" || key == "ones";
  }
  if (!stated || !(range.low < range.high) || !std::isfinite(range.low) ||
      !std::isfinite(range.high)) {
    return std::nullopt;
  }
  return range;
}

std::set<std::string> InitializerNames(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const onnx::TensorProto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer())
    names.insert(tensor.values().name());
  return names;
}

/// The range of an input of four bits, which is given as bytes.
ir::ValueRange RangeOfFourBits(bool is_signed) {
  return is_signed ? ir::ValueRange{-8, 8} : ir::ValueRange{0, 16};
}

// A declared shape that is not the one that follows from the nodes is wrong; like ONNX Runtime we
// compute and say so.
void WarnOfShape(const onnx::ValueInfoProto& output, const TensorType& made) {
  const onnx::TensorShapeProto& declared = output.type().tensor_type().shape();
  bool fits = declared.dim_size() == static_cast<int>(made.shape.size());
  for (int k = 0; fits && k < declared.dim_size(); ++k) {
    const int64_t extent = declared.dim(k).dim_value();  // 0: not said
    fits = extent <= 0 || extent == made.shape[static_cast<size_t>(k)];
  }
  if (fits) return;
  LogWarning("output '{}' is declared as {}, but its node makes {}: the declaration is ignored",
             output.name(), ShapeText(declared), ToText(made));
}

}  // namespace

bool Importer::IsOverridden(const std::string& name) const {
  return options_.shapes.contains(name) || options_.binds.contains(name);
}

std::vector<FreeInput> Importer::FreeInputs(const onnx::GraphProto& graph) const {
  const std::set<std::string> initialized = InitializerNames(graph);
  std::vector<FreeInput> inputs;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (initialized.contains(input.name()) && !IsOverridden(input.name())) continue;
    inputs.push_back({&input, options_.outputs.empty() || needed_.contains(input.name())});
  }
  return inputs;
}

bool Importer::IsNeeded(const onnx::NodeProto& node) const {
  return options_.outputs.empty() ||
         std::any_of(node.output().begin(), node.output().end(),
                     [&](const std::string& name) { return needed_.contains(name); });
}

absl::Status Importer::CheckOutputs(const onnx::GraphProto& graph) const {
  if (options_.outputs.empty())
    return graph.output_size() > 0 ? absl::OkStatus() : Invalid("the graph has no outputs");
  std::set<std::string> made = InitializerNames(graph);
  for (const onnx::ValueInfoProto& input : graph.input()) made.insert(input.name());
  for (const onnx::NodeProto& node : graph.node())
    made.insert(node.output().begin(), node.output().end());
  for (const std::string& name : options_.outputs) {
    if (!name.empty() && made.contains(name)) continue;
    std::vector<std::string> outputs;
    for (const onnx::ValueInfoProto& output : graph.output()) outputs.push_back(output.name());
    return Invalid(
        fmt::format("--cut {}: the model has no value of that name; its outputs "
                    "are: {}",
                    name, fmt::join(outputs, ", ")));
  }
  return absl::OkStatus();
}

std::vector<Importer::OutputName> Importer::Outputs() const {
  std::vector<OutputName> outputs;
  for (const onnx::ValueInfoProto& output : model_->graph().output())
    outputs.push_back({output.name(), &output});
  if (options_.outputs.empty()) return outputs;
  std::vector<OutputName> asked;
  for (const std::string& name : options_.outputs) {
    const auto declared = std::find_if(outputs.begin(), outputs.end(),
                                       [&](const OutputName& o) { return o.name == name; });
    asked.push_back({name, declared == outputs.end() ? nullptr : declared->declared});
  }
  return asked;
}

absl::StatusOr<TensorType> Importer::InputType(const onnx::ValueInfoProto& input) {
  const onnx::TypeProto::Tensor& declared = input.type().tensor_type();
  TensorType type;
  auto dtype = HeldDTypeOf(declared.elem_type());
  if (!dtype.ok()) return Annotate(dtype.status(), fmt::format("input '{}'", input.name()));
  type.dtype = *dtype;
  type.shape = inputs_.shapes.at(input.name());
  constexpr size_t kMaxUserRank = 6;
  constexpr int64_t kMaxElements = int64_t{1} << 44;
  if (type.shape.size() > kMaxUserRank) {
    return Invalid(fmt::format("input '{}' is {}: rank {}; ranks 0 to {} are supported",
                               input.name(), ToText(type), type.shape.size(), kMaxUserRank));
  }
  if (ExtentSpan(type) > kMaxElements) {
    return Invalid(fmt::format("input '{}' is {}: its size overflows; give smaller extents",
                               input.name(), ToText(type)));
  }
  return type;
}

absl::Status Importer::AddInputs(const std::vector<FreeInput>& inputs, Scope& scope) {
  for (const FreeInput& free : inputs) {
    const onnx::ValueInfoProto& input = *free.declared;
    if (!free.needed) {
      scope.Define(input.name(), kUnknown);  // for nodes that are left out
      continue;
    }
    if (input.name().empty()) return Invalid("a graph input has no name");
    const bool four_bits = IsFourBits(input.type().tensor_type().elem_type());
    ValueId id = kNoValue;
    if (const auto bind = options_.binds.find(input.name()); bind != options_.binds.end()) {
      const auto dtype = HeldDTypeOf(input.type().tensor_type().elem_type());
      if (dtype.ok() && *dtype != bind->second->type.dtype) {
        return Invalid(fmt::format("--bind {}: the file holds {}, but the model needs {}",
                                   input.name(), ToString(bind->second->type.dtype),
                                   ToString(*dtype)));
      }
      id = graph_.AddConstant(bind->second, input.name());
    } else {
      HONE_ASSIGN_OR_RETURN(TensorType type, InputType(input));
      const bool empty = type.NumElements() == 0;
      Value value;
      value.name = input.name();
      value.type = std::move(type);
      const auto stated = StatedRange(input.doc_string());
      value.range =
          stated.value_or(four_bits ? RangeOfFourBits(value.type.dtype == ir::DType::kI8)
                                    : DefaultRange(value.type.dtype));
      // The model takes it, but what nodes read of it is known: nothing, a constant.
      ConstantPtr nothing = empty ? MakeConstant(value.type, {}) : nullptr;
      id = graph_.AddValue(std::move(value));
      graph_.inputs.push_back(id);
      if (!empty && !stated) unstated_.push_back(id);
      if (empty) id = graph_.AddConstant(std::move(nothing), "");
    }
    if (four_bits) four_bits_.insert(id);
    if (!scope.Define(input.name(), id))
      return Invalid(fmt::format("two graph inputs are called '{}'", input.name()));
  }
  return absl::OkStatus();
}

ValueId Importer::OutputCopy(ValueId value, const std::string& name) {
  const Value original = graph_.values[static_cast<size_t>(value)];
  if (original.constant != nullptr) return graph_.AddConstant(original.constant, name);
  Node node{.op = "Reshape",
            .origin = name,
            .attributes = {{"shape", original.type.shape}},
            .inputs = {value}};
  return (*AppendNode(graph_, std::move(node)))[0];
}

absl::Status Importer::SetOutputs(const Scope& scope) {
  std::set<std::string> names;
  std::set<ValueId> taken(graph_.inputs.begin(), graph_.inputs.end());
  for (const auto& [name, declared] : Outputs()) {
    const ValueId* found = scope.Find(name);
    if (found == nullptr || *found < 0)
      return Invalid(fmt::format("no node makes the output '{}'", name));
    if (!names.insert(name).second) {
      LogWarning("output '{}' is listed twice; the compiled model has it once", name);
      continue;
    }
    if (four_bits_.contains(*found))
      return Annotate(NoFourBits(*found), fmt::format("output '{}'", name));
    const Value& value = graph_.values[static_cast<size_t>(*found)];
    if (declared != nullptr && declared->type().has_tensor_type()) {
      const onnx::TypeProto::Tensor& type = declared->type().tensor_type();
      const auto dtype = onnx_import::DTypeOf(type.elem_type());
      if (dtype.ok() && *dtype != value.type.dtype) {
        return Invalid(fmt::format("output '{}' is declared as {}, but its node makes {}", name,
                                   ToString(*dtype), ToText(value.type)));
      }
      if (type.has_shape()) WarnOfShape(*declared, value.type);
    }
    // Every output is a value of its own: no input, no constant that others share, no other output.
    ValueId id = *found;
    if (value.constant != nullptr || !taken.insert(id).second) id = OutputCopy(id, name);
    graph_.values[static_cast<size_t>(id)].name = name;
    graph_.outputs.push_back(id);
  }
  return absl::OkStatus();
}

}  // namespace hone::graph::onnx_import
