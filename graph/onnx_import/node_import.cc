#include "graph/onnx_import/node_import.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/onnx_import/fold.h"
#include "graph/onnx_import/node_order.h"
#include "graph/op.h"

namespace hone::graph::onnx_import {
namespace {

std::string KindName(onnx::AttributeProto::AttributeType type) {
  return onnx::AttributeProto::AttributeType_Name(type);
}

/// Files of the oldest writers leave the type out: it is what the fields say.
bool IsKind(const onnx::AttributeProto& attribute, onnx::AttributeProto::AttributeType type) {
  if (attribute.type() != onnx::AttributeProto::UNDEFINED) return attribute.type() == type;
  switch (type) {
    case onnx::AttributeProto::FLOAT: return attribute.has_f();
    case onnx::AttributeProto::INT: return attribute.has_i();
    case onnx::AttributeProto::STRING: return attribute.has_s();
    case onnx::AttributeProto::TENSOR: return attribute.has_t();
    case onnx::AttributeProto::GRAPH: return attribute.has_g();
    case onnx::AttributeProto::FLOATS: return attribute.floats_size() > 0;
    case onnx::AttributeProto::INTS: return attribute.ints_size() > 0;
    case onnx::AttributeProto::STRINGS: return attribute.strings_size() > 0;
    default: return false;
  }
}

}  // namespace

NodeImport::NodeImport(Graph& graph, TensorReader& tensors, const onnx::NodeProto& proto,
                       std::map<std::string, const onnx::AttributeProto*> attributes,
                       std::vector<ValueId> inputs, int64_t opset)
    : graph_(graph),
      tensors_(tensors),
      proto_(proto),
      attributes_(std::move(attributes)),
      inputs_(std::move(inputs)),
      outputs_(static_cast<size_t>(proto.output_size()), kNoValue),
      opset_(opset),
      origin_(NodeName(proto)) {}

bool NodeImport::Wants(size_t i) const {
  return i < num_outputs() && !proto_.output(static_cast<int>(i)).empty();
}

ValueId NodeImport::Input(size_t i) {
  if (Has(i)) return inputs_[i];
  Invalid(fmt::format("input {} is missing", i));
  return kNoValue;
}

void NodeImport::SetOutput(size_t i, ValueId value) {
  if (!ok() || i >= outputs_.size()) return;
  outputs_[i] = value;
  if (value == kNoValue || !Wants(i)) return;
  Value& made = graph_.values[static_cast<size_t>(value)];
  // A value that this node made takes the name it has in the model.
  if (made.name.empty() || made.name == origin_) made.name = proto_.output(static_cast<int>(i));
}

TensorType NodeImport::TypeOf(ValueId value) const {
  return value == kNoValue ? TensorType{} : graph_.values[static_cast<size_t>(value)].type;
}

bool NodeImport::CheckRank(ValueId value, size_t low, size_t high, std::string_view what) {
  if (!ok()) return false;
  const size_t rank = RankOf(value);
  if (rank >= low && rank <= high) return true;
  Invalid(low == high ? fmt::format("{} must have rank {}, not {}", what, low, rank)
                      : fmt::format("{} must have rank {} to {}, not {}", what, low, high, rank));
  return false;
}

const onnx::AttributeProto* NodeImport::Find(std::string_view name,
                                             onnx::AttributeProto::AttributeType type) {
  asked_.emplace(name);
  const auto found = attributes_.find(std::string(name));
  if (found == attributes_.end()) return nullptr;
  if (IsKind(*found->second, type)) return found->second;
  // An empty list without a type is a list of any kind.
  if (found->second->type() != onnx::AttributeProto::UNDEFINED ||
      type < onnx::AttributeProto::FLOATS) {
    Invalid(fmt::format("attribute '{}' must be {}, not {}", name, KindName(type),
                        KindName(found->second->type())));
  }
  return nullptr;
}

bool NodeImport::HasAttribute(std::string_view name) {
  asked_.emplace(name);
  return attributes_.contains(std::string(name));
}

int64_t NodeImport::Int(std::string_view name, int64_t otherwise) {
  const auto* attribute = Find(name, onnx::AttributeProto::INT);
  return attribute == nullptr ? otherwise : attribute->i();
}

double NodeImport::Float(std::string_view name, double otherwise) {
  const auto* attribute = Find(name, onnx::AttributeProto::FLOAT);
  return attribute == nullptr ? otherwise : attribute->f();
}

std::string NodeImport::String(std::string_view name, std::string_view otherwise) {
  const auto* attribute = Find(name, onnx::AttributeProto::STRING);
  return attribute == nullptr ? std::string(otherwise) : attribute->s();
}

std::string NodeImport::Choice(std::string_view name, std::string_view otherwise,
                               std::initializer_list<std::string_view> allowed) {
  std::string value = String(name, otherwise);
  if (!HasAttribute(name) || std::find(allowed.begin(), allowed.end(), value) != allowed.end())
    return value;
  Invalid(fmt::format("attribute '{}' is '{}'; it must be one of {}", name, value,
                      fmt::join(allowed, ", ")));
  return std::string(otherwise);
}

std::vector<int64_t> NodeImport::Ints(std::string_view name, std::vector<int64_t> otherwise) {
  const auto* attribute = Find(name, onnx::AttributeProto::INTS);
  if (attribute == nullptr) return otherwise;
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::vector<double> NodeImport::Floats(std::string_view name, std::vector<double> otherwise) {
  const auto* attribute = Find(name, onnx::AttributeProto::FLOATS);
  if (attribute == nullptr) return otherwise;
  return {attribute->floats().begin(), attribute->floats().end()};
}

std::vector<std::string> NodeImport::Strings(std::string_view name) {
  const auto* attribute = Find(name, onnx::AttributeProto::STRINGS);
  if (attribute == nullptr) return {};
  return {attribute->strings().begin(), attribute->strings().end()};
}

ConstantPtr NodeImport::Tensor(std::string_view name) {
  const auto* attribute = Find(name, onnx::AttributeProto::TENSOR);
  if (attribute == nullptr) return nullptr;
  auto data = tensors_.Read(attribute->t());
  if (data.ok()) return *std::move(data);
  Fail(Annotate(data.status(), fmt::format("attribute '{}'", name)));
  return nullptr;
}

const onnx::AttributeProto* NodeImport::RawAttribute(std::string_view name) {
  asked_.emplace(name);
  const auto found = attributes_.find(std::string(name));
  return found == attributes_.end() ? nullptr : found->second;
}

ir::DType NodeImport::ElementType(std::string_view name, ir::DType otherwise) {
  if (!HasAttribute(name)) return otherwise;
  const int64_t number = Int(name, 0);
  const auto dtype =
      onnx_import::DTypeOf(number < 0 || number > 1000 ? -1 : static_cast<int32_t>(number));
  if (dtype.ok()) return *dtype;
  Fail(Annotate(dtype.status(), fmt::format("attribute '{}'", name)));
  return otherwise;
}

int64_t NodeImport::Axis(int64_t axis, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  if (axis >= -n && axis < n) return axis < 0 ? axis + n : axis;
  Invalid(fmt::format("axis {} is outside [{}, {})", axis, -n, n));
  return 0;
}

std::vector<int64_t> NodeImport::Axes(std::vector<int64_t> axes, size_t rank) {
  std::set<int64_t> seen;
  for (int64_t& axis : axes) {
    axis = Axis(axis, rank);
    if (!ok()) return {};
    if (!seen.insert(axis).second) {
      Invalid(fmt::format("axis {} is named twice", axis));
      return {};
    }
  }
  return axes;
}

std::vector<std::string> NodeImport::UnknownAttributes() const {
  std::vector<std::string> unknown;
  for (const auto& [name, attribute] : attributes_) {
    if (!asked_.contains(name)) unknown.push_back(name);
  }
  return unknown;
}

ConstantPtr NodeImport::Known(ValueId value) const {
  return value == kNoValue ? nullptr : graph_.values[static_cast<size_t>(value)].constant;
}

void NodeImport::FailUnknown(ValueId value, std::string_view what) {
  if (!ok()) return;
  std::set<std::string> names;
  std::set<ValueId> seen = {value};
  std::vector<ValueId> open = {value};
  while (!open.empty()) {
    const ValueId next = open.back();
    const Value& at = graph_.values[static_cast<size_t>(next)];
    open.pop_back();
    if (at.producer < 0) {
      if (at.constant == nullptr && names.insert(fmt::format("'{}'", at.name)).second)
        deciders_.push_back(next);
      continue;
    }
    for (ValueId input : graph_.nodes[static_cast<size_t>(at.producer)].inputs) {
      if (input != kNoValue && seen.insert(input).second) open.push_back(input);
    }
  }
  if (names.empty()) {
    return Unsupported(fmt::format(
        "{} must be known while importing, but is computed from constants too large for that; "
        "simplify the model (onnxsim)",
        what));
  }
  Unsupported(fmt::format("{} must be known while importing, but comes from the graph input{} {}",
                          what, names.size() == 1 ? "" : "s", fmt::join(names, ", ")));
}

std::vector<int64_t> NodeImport::KnownInts(size_t input, std::string_view what) {
  const ValueId value = Input(input);
  if (!ok()) return {};
  const ConstantPtr known = Known(value);
  if (known == nullptr) {
    FailUnknown(value, what);
    return {};
  }
  if (!ir::IsInteger(known->type.dtype)) {
    Invalid(fmt::format("{} must be integers, not {}", what, ToString(known->type.dtype)));
    return {};
  }
  constexpr int64_t kMaxValues = 1 << 20;
  if (known->type.NumElements() > kMaxValues) {
    Invalid(fmt::format("{} has {} values", what, known->type.NumElements()));
    return {};
  }
  return known->AsInt64s();
}

std::vector<double> NodeImport::KnownFloats(size_t input, std::string_view what) {
  const ValueId value = Input(input);
  if (!ok()) return {};
  const ConstantPtr known = Known(value);
  if (known != nullptr) return known->AsDoubles();
  FailUnknown(value, what);
  return {};
}

double NodeImport::KnownScalar(size_t input, std::string_view what) {
  const std::vector<double> values = KnownFloats(input, what);
  if (!ok()) return 0;
  if (values.size() == 1) return values[0];
  Invalid(fmt::format("{} has {} elements, not one", what, values.size()));
  return 0;
}

int64_t NodeImport::KnownInt(size_t input, std::string_view what) {
  const std::vector<int64_t> values = KnownInts(input, what);
  if (!ok()) return 0;
  if (values.size() == 1) return values[0];
  Invalid(fmt::format("{} has {} elements, not one", what, values.size()));
  return 0;
}

bool NodeImport::CheckTable(int64_t rows, int64_t columns, std::string_view what, int64_t most) {
  if (!ok()) return false;
  if (rows == 0 || columns <= most / rows) return true;
  Unsupported(
      fmt::format("{} would be a table of {} x {}; at most {} elements are computed while "
                  "importing",
                  what, rows, columns, most));
  return false;
}

ValueId NodeImport::Constant(ConstantPtr data) {
  if (!ok() || data == nullptr) return kNoValue;
  return graph_.AddConstant(std::move(data));
}

ValueId NodeImport::SparseConstant(const onnx::SparseTensorProto& tensor) {
  auto data = tensors_.ReadSparse(tensor);
  if (data.ok()) return Constant(*std::move(data));
  Fail(data.status());
  return kNoValue;
}

ValueId NodeImport::Scalar(ir::DType dtype, double value) {
  return Constant(MakeConstant(dtype, {}, {value}));
}

ValueId NodeImport::Int64s(const std::vector<int64_t>& values) {
  return Constant(MakeInt64s({static_cast<int64_t>(values.size())}, values));
}

ValueId NodeImport::Emit(std::string_view op, std::vector<ValueId> inputs, Attributes attributes) {
  const std::vector<ValueId> made = EmitMany(op, std::move(inputs), std::move(attributes), 1);
  return made.empty() ? kNoValue : made[0];
}

std::vector<ValueId> NodeImport::EmitMany(std::string_view op, std::vector<ValueId> inputs,
                                          Attributes attributes, int num_outputs) {
  const std::vector<ValueId> nothing(static_cast<size_t>(num_outputs), kNoValue);
  if (!ok()) return nothing;
  Node node{.op = std::string(op),
            .origin = origin_,
            .attributes = std::move(attributes),
            .inputs = std::move(inputs)};
  OpCall call = MakeCall(graph_, node);
  call.num_outputs = num_outputs;
  const auto types = InferTypes(call);
  if (!types.ok()) {
    Fail(types.status());
    return nothing;
  }
  auto folded = Fold(call, *types);
  if (!folded.ok()) {
    Fail(folded.status());
    return nothing;
  }
  if (!folded->empty()) {
    std::vector<ValueId> values;
    for (ConstantPtr& data : *folded) values.push_back(graph_.AddConstant(std::move(data)));
    return values;
  }
  auto made = AppendNode(graph_, std::move(node), num_outputs);
  if (made.ok()) return *std::move(made);
  Fail(made.status());
  return nothing;
}

ValueId NodeImport::Unary(ir::UnaryOp fn, ValueId x) {
  return Emit("Unary", {x}, {{"fn", std::string(ToString(fn))}});
}

ValueId NodeImport::Binary(ir::BinaryOp fn, ValueId a, ValueId b) {
  return Emit("Binary", {a, b}, {{"fn", std::string(ToString(fn))}});
}

ValueId NodeImport::Binary(ir::BinaryOp fn, ValueId a, double b) {
  return Binary(fn, a, Scalar(DTypeOf(a), b));
}

ValueId NodeImport::Binary(ir::BinaryOp fn, double a, ValueId b) {
  return Binary(fn, Scalar(DTypeOf(b), a), b);
}

ValueId NodeImport::Select(ValueId condition, ValueId a, ValueId b) {
  return Emit("Select", {condition, a, b});
}

ValueId NodeImport::Cast(ValueId x, ir::DType dtype) {
  if (DTypeOf(x) == dtype) return x;
  return Emit("Cast", {x}, {{"to", std::string(ToString(dtype))}});
}

ValueId NodeImport::Reshape(ValueId x, std::vector<int64_t> shape) {
  if (ShapeOf(x) == shape) return x;
  return Emit("Reshape", {x}, {{"shape", std::move(shape)}});
}

ValueId NodeImport::Transpose(ValueId x, std::vector<int64_t> perm) {
  bool same = perm.size() == RankOf(x);
  for (size_t i = 0; same && i < perm.size(); ++i) same = perm[i] == static_cast<int64_t>(i);
  return same ? x : Emit("Transpose", {x}, {{"perm", std::move(perm)}});
}

ValueId NodeImport::Expand(ValueId x, std::vector<int64_t> shape) {
  if (!ok() || ShapeOf(x) == shape) return x;
  // What needs no node is not inferred, so it is checked here.
  for (int64_t extent : shape) {
    if (extent >= 0) continue;
    Invalid(fmt::format("shape [{}] has a negative extent", fmt::join(shape, ",")));
    return kNoValue;
  }
  // Few elements of one known value need no node.
  const ConstantPtr known = Known(x);
  const TensorType type{DTypeOf(x), shape};
  constexpr int64_t kMaxFilled = 4096;
  if (known != nullptr && known->type.NumElements() == 1 && shape.size() <= 6 &&
      type.NumElements() <= kMaxFilled) {
    std::vector<std::byte> bytes;
    for (int64_t i = 0; i < type.NumElements(); ++i) {
      bytes.insert(bytes.end(), known->bytes.begin(), known->bytes.end());
    }
    return Constant(MakeConstant(type, std::move(bytes)));
  }
  return Emit("Expand", {x}, {{"shape", std::move(shape)}});
}

void NodeImport::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

}  // namespace hone::graph::onnx_import
