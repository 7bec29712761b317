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

/// Some exporters write -1 for what they leave open.
bool IsFixed(const onnx::TensorShapeProto::Dimension& dim) {
  return dim.has_dim_value() && dim.dim_value() >= 0;
}

std::string ShapeText(const onnx::TensorShapeProto& shape) {
  std::vector<std::string> dims;
  for (const auto& dim : shape.dim()) {
    dims.push_back(dim.has_dim_param() ? dim.dim_param()
                   : IsFixed(dim)      ? fmt::format("{}", dim.dim_value())
                                       : "?");
  }
  return fmt::format("[{}]", fmt::join(dims, ","));
}

bool IsSymbolic(const onnx::TensorShapeProto::Dimension& dim) {
  return dim.has_dim_param() && !dim.dim_param().empty();
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

absl::Status Importer::CheckOptions(const onnx::GraphProto& graph) const {
  const std::set<std::string> initialized = InitializerNames(graph);
  std::set<std::string> inputs;
  std::set<std::string> dims;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (initialized.contains(input.name())) continue;
    inputs.insert(input.name());
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      if (IsSymbolic(dim)) dims.insert(dim.dim_param());
    }
  }
  for (const auto& [name, value] : options_.dims) {
    if (!dims.contains(name)) {
      return Invalid(fmt::format("--dim {}={}: the model has no such dimension; it has: {}", name,
                                 value,
                                 dims.empty() ? "none" : fmt::format("{}", fmt::join(dims, ", "))));
    }
    if (value < 1) return Invalid(fmt::format("--dim {}={}: must be at least 1", name, value));
  }
  for (const auto& [name, shape] : options_.shapes) {
    if (!inputs.contains(name)) {
      return Invalid(fmt::format("--shape {}: the model has no such input; it has: {}", name,
                                 fmt::join(inputs, ", ")));
    }
  }
  for (const auto& [name, data] : options_.binds) {
    if (!inputs.contains(name)) {
      return Invalid(fmt::format("--bind {}: the model has no such input; it has: {}", name,
                                 fmt::join(inputs, ", ")));
    }
  }
  return absl::OkStatus();
}

absl::Status Importer::BindShape(const onnx::ValueInfoProto& input,
                                 const std::vector<int64_t>& shape, std::string_view how) {
  const onnx::TypeProto::Tensor& type = input.type().tensor_type();
  if (!type.has_shape()) return absl::OkStatus();
  bool fits = static_cast<size_t>(type.shape().dim_size()) == shape.size();
  for (int i = 0; fits && i < type.shape().dim_size(); ++i) {
    const auto& dim = type.shape().dim(i);
    const int64_t extent = shape[static_cast<size_t>(i)];
    fits = extent >= 0;
    // An extent of 0 is how some old exporters leave a dimension open.
    if (fits && IsFixed(dim) && dim.dim_value() > 0 && dim.dim_value() != extent) {
      return Invalid(
          fmt::format("{} of input '{}' makes dimension {} {}, but the model fixes it to {}: give "
                      "{}, or export the model anew with that dimension named",
                      how, input.name(), i, extent, dim.dim_value(), dim.dim_value()));
    }
    if (!IsSymbolic(dim) || !fits) continue;
    const auto [bound, added] = dims_.emplace(dim.dim_param(), extent);
    if (!added && bound->second != extent) {
      return Invalid(fmt::format("{} of input '{}' makes dimension '{}' {}, but it is {} already",
                                 how, input.name(), dim.dim_param(), extent, bound->second));
    }
  }
  if (fits) return absl::OkStatus();
  return Invalid(fmt::format("{} of input '{}' is [{}], the model says {}", how, input.name(),
                             fmt::join(shape, ","), ShapeText(type.shape())));
}

absl::StatusOr<TensorType> Importer::InputType(const onnx::ValueInfoProto& input) {
  if (!input.type().has_tensor_type()) {
    return absl::UnimplementedError(
        fmt::format("input '{}' is no tensor; only tensors are supported", input.name()));
  }
  const onnx::TypeProto::Tensor& declared = input.type().tensor_type();
  TensorType type;
  auto dtype = onnx_import::DTypeOf(declared.elem_type());
  if (!dtype.ok()) return Annotate(dtype.status(), fmt::format("input '{}'", input.name()));
  type.dtype = *dtype;
  const auto given = options_.shapes.find(input.name());
  if (given != options_.shapes.end()) {
    type.shape = given->second;
  } else if (!declared.has_shape()) {
    unbound_.push_back(fmt::format("input '{}' has no shape: give it with --shape {}=1x3x224x224",
                                   input.name(), input.name()));
    return type;
  } else {
    for (const auto& dim : declared.shape().dim()) {
      int64_t extent = 1;
      if (IsFixed(dim)) {
        extent = dim.dim_value();
      } else if (!IsSymbolic(dim)) {
        unbound_.push_back(fmt::format("input '{}' is {}: give its shape with --shape {}=…",
                                       input.name(), ShapeText(declared.shape()), input.name()));
        break;
      } else if (const auto bound = dims_.find(dim.dim_param()); bound != dims_.end()) {
        extent = bound->second;
      } else {
        unbound_.push_back(fmt::format(
            "dimension '{}' of input '{}' ({}) is not bound: give it with --dim {}=N",
            dim.dim_param(), input.name(), ShapeText(declared.shape()), dim.dim_param()));
      }
      type.shape.push_back(extent);
    }
  }
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

absl::Status Importer::AddInputs(const onnx::GraphProto& graph, Scope& scope) {
  const std::set<std::string> initialized = InitializerNames(graph);
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (const auto shape = options_.shapes.find(input.name()); shape != options_.shapes.end()) {
      HONE_RETURN_IF_ERROR(BindShape(input, shape->second, "--shape"));
    }
    if (const auto bind = options_.binds.find(input.name()); bind != options_.binds.end()) {
      HONE_RETURN_IF_ERROR(BindShape(input, bind->second->type.shape, "--bind"));
    }
  }
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (initialized.contains(input.name())) continue;
    if (input.name().empty()) return Invalid("a graph input has no name");
    ValueId id = kNoValue;
    if (const auto bind = options_.binds.find(input.name()); bind != options_.binds.end()) {
      const auto dtype = onnx_import::DTypeOf(input.type().tensor_type().elem_type());
      if (dtype.ok() && *dtype != bind->second->type.dtype) {
        return Invalid(fmt::format("--bind {}: the file holds {}, the model wants {}", input.name(),
                                   ToString(bind->second->type.dtype), ToString(*dtype)));
      }
      id = graph_.AddConstant(bind->second, input.name());
    } else {
      HONE_ASSIGN_OR_RETURN(TensorType type, InputType(input));
      const bool known = type.NumElements() == 0;  // nothing can be given: a constant
      Value value;
      value.name = input.name();
      value.type = std::move(type);
      const auto stated = StatedRange(input.doc_string());
      value.range = stated.value_or(DefaultRange(value.type.dtype));
      if (known) value.constant = MakeConstant(value.type, {});
      id = graph_.AddValue(std::move(value));
      if (!known) graph_.inputs.push_back(id);
      if (!known && !stated) unstated_.push_back(id);
    }
    if (!scope.Define(input.name(), id))
      return Invalid(fmt::format("two graph inputs are called '{}'", input.name()));
  }
  if (unbound_.empty()) return absl::OkStatus();
  return Invalid(fmt::format("{}", fmt::join(unbound_, "; ")));
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

absl::Status Importer::SetOutputs(const onnx::GraphProto& graph, const Scope& scope) {
  if (graph.output_size() == 0) return Invalid("the graph has no outputs");
  std::set<std::string> names;
  std::set<ValueId> taken(graph_.inputs.begin(), graph_.inputs.end());
  for (const onnx::ValueInfoProto& output : graph.output()) {
    const std::string& name = output.name();
    const ValueId* found = scope.Find(name);
    if (found == nullptr || *found < 0)
      return Invalid(fmt::format("nobody makes the output '{}'", name));
    if (!names.insert(name).second) {
      LogWarning("output '{}' is listed twice: it is given once", name);
      continue;
    }
    const Value& value = graph_.values[static_cast<size_t>(*found)];
    if (output.type().has_tensor_type()) {
      const auto dtype = onnx_import::DTypeOf(output.type().tensor_type().elem_type());
      if (dtype.ok() && *dtype != value.type.dtype) {
        return Invalid(fmt::format("output '{}' is declared as {}, but its node makes {}", name,
                                   ToString(*dtype), ToText(value.type)));
      }
    }
    if (output.type().has_tensor_type() && output.type().tensor_type().has_shape())
      WarnOfShape(output, value.type);
    // Every output is a value of its own: no input, no constant that others share, no other output.
    ValueId id = *found;
    if (value.constant != nullptr || !taken.insert(id).second) id = OutputCopy(id, name);
    graph_.values[static_cast<size_t>(id)].name = name;
    graph_.outputs.push_back(id);
  }
  return absl::OkStatus();
}

}  // namespace hone::graph::onnx_import
