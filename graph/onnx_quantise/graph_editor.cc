#include "graph/onnx_quantise/graph_editor.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

namespace hone::graph::onnx_quantise {

namespace {

/// How often nodes read each name, those of bodies too, which see what is outside them.
void AddRead(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
             std::map<std::string, int>& reads) {
  for (const onnx::NodeProto& node : nodes) {
    for (const std::string& input : node.input()) ++reads[input];
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) {
        AddRead(attribute.g().node(), reads);
        for (const onnx::ValueInfoProto& output : attribute.g().output()) ++reads[output.name()];
      }
    }
  }
}

}  // namespace

GraphEditor::GraphEditor(const onnx::ModelProto& source) : source_(source) {
  // All but the graph's nodes and tensors, which may be large.
  const onnx::GraphProto& from = source.graph();
  model_.set_ir_version(source.ir_version());
  model_.set_producer_name(source.producer_name());
  model_.set_producer_version(source.producer_version());
  model_.set_domain(source.domain());
  model_.set_model_version(source.model_version());
  model_.set_doc_string(source.doc_string());
  *model_.mutable_opset_import() = source.opset_import();
  *model_.mutable_metadata_props() = source.metadata_props();
  *model_.mutable_functions() = source.functions();
  graph().set_name(from.name());
  graph().set_doc_string(from.doc_string());
  *graph().mutable_output() = from.output();
  *graph().mutable_value_info() = from.value_info();
  *graph().mutable_sparse_initializer() = from.sparse_initializer();
  *graph().mutable_metadata_props() = from.metadata_props();
  for (const onnx::TensorProto& tensor : from.initializer()) {
    names_.insert(tensor.name());
    tensors_.insert(tensor.name());
  }
  for (const onnx::ValueInfoProto& input : from.input()) {
    // What has an initialiser is no input that anybody must give.
    if (names_.insert(input.name()).second) *graph().add_input() = input;
  }
  for (const onnx::NodeProto& node : from.node()) {
    names_.insert(node.output().begin(), node.output().end());
    if (node.op_type() == "Constant") tensors_.insert(node.output(0));
  }
  AddRead(from.node(), reads_);
  for (const onnx::ValueInfoProto& output : from.output()) ++reads_[output.name()];
}

std::map<std::string, int> GraphEditor::NumRead() const {
  std::map<std::string, int> read;
  AddRead(model_.graph().node(), read);
  for (const onnx::ValueInfoProto& output : model_.graph().output()) ++read[output.name()];
  return read;
}

onnx::ModelProto GraphEditor::Finish() {
  DropUnread("Identity", NumRead());
  DropUnread("Constant", NumRead());
  const std::map<std::string, int> read = NumRead();
  for (const onnx::TensorProto& tensor : source_.graph().initializer())
    if (read.contains(tensor.name()) && !replaced_.contains(tensor.name()))
      *graph().add_initializer() = tensor;
  for (const onnx::ValueInfoProto& input : source_.graph().input()) {
    const bool was_known = std::ranges::none_of(
        graph().input(), [&](const auto& own) { return own.name() == input.name(); });
    if (!was_known || !read.contains(input.name())) continue;
    onnx::ValueInfoProto& own = *graph().add_input();
    own = input;
    const auto tensor = std::ranges::find_if(graph().initializer(), [&](const auto& each) {
      return each.name() == input.name() && replaced_.contains(input.name());
    });
    if (tensor == graph().initializer().end()) continue;
    onnx::TensorShapeProto& shape = *own.mutable_type()->mutable_tensor_type()->mutable_shape();
    shape.clear_dim();
    for (const int64_t extent : tensor->dims()) shape.add_dim()->set_dim_value(extent);
  }
  return std::move(model_);
}

void GraphEditor::DropUnread(const std::string& op, const std::map<std::string, int>& read) {
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  nodes.Swap(graph().mutable_node());
  for (onnx::NodeProto& node : nodes) {
    const bool dropped = node.op_type() == op &&
                         (!read.contains(node.output(0)) || replaced_.contains(node.output(0)));
    if (!dropped) *graph().add_node() = std::move(node);
  }
}

std::string GraphEditor::FreshName(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
  return name;
}

std::string GraphEditor::AddTensor(const std::string& name, int32_t data_type,
                                   const std::vector<int64_t>& shape, std::string bytes) {
  onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(FreshName(name));
  tensor.set_data_type(data_type);
  for (const int64_t extent : shape) tensor.add_dims(extent);
  tensor.set_raw_data(std::move(bytes));
  return tensor.name();
}

std::string GraphEditor::ReplaceFloats(const std::string& name, const std::vector<int64_t>& shape,
                                       std::span<const float> values) {
  return Replace(name, AddFloats(name, shape, values));
}

std::string GraphEditor::ReplaceInts(const std::string& name, std::span<const int64_t> values) {
  const std::vector<int64_t> shape = {static_cast<int64_t>(values.size())};
  return Replace(name, AddTensor<int64_t>(name, onnx::TensorProto::INT64, shape, values));
}

// `added` is the last initialiser.
std::string GraphEditor::Replace(const std::string& name, const std::string& added) {
  if (reads_[name] != 1 || !tensors_.contains(name)) return added;
  names_.erase(added);
  replaced_.insert(name);
  graph().mutable_initializer(graph().initializer_size() - 1)->set_name(name);
  return name;
}

void GraphEditor::AddInput(const std::string& name, int32_t data_type,
                           const std::vector<int64_t>& shape) {
  onnx::ValueInfoProto& input = *graph().add_input();
  input.set_name(name);
  names_.insert(name);
  onnx::TypeProto::Tensor& type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(data_type);
  type.mutable_shape();
  for (const int64_t extent : shape) type.mutable_shape()->add_dim()->set_dim_value(extent);
}

void GraphEditor::AddOutput(const std::string& name) { graph().add_output()->set_name(name); }

onnx::NodeProto& GraphEditor::AddNode(const std::string& op, const std::vector<std::string>& inputs,
                                      const std::string& output) {
  onnx::NodeProto& node = *graph().add_node();
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(FreshName(output));
  node.set_name(node.output(0));
  return node;
}

onnx::NodeProto& GraphEditor::Keep(const onnx::NodeProto& node) {
  onnx::NodeProto& own = *graph().add_node();
  own = node;
  return own;
}

void SetInt(onnx::NodeProto& node, const std::string& name, int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

}  // namespace hone::graph::onnx_quantise
