#include "tests/graph/onnx_model.h"

#include <span>

#include "base/status.h"

namespace hone::graph {
namespace {

onnx::AttributeProto& Add(onnx::NodeProto& node, const std::string& name,
                          onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

}  // namespace

OnnxModel::OnnxModel(int64_t opset) {
  model.set_ir_version(10);
  model.add_opset_import()->set_version(opset);
  graph().set_name("test");
}

OnnxModel& OnnxModel::Input(const std::string& name, const std::vector<std::string>& shape,
                            int32_t type) {
  onnx::ValueInfoProto& input = *graph().add_input();
  input.set_name(name);
  auto& tensor = *input.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (const std::string& extent : shape) {
    auto& dim = *tensor.mutable_shape()->add_dim();
    if (extent.find_first_not_of("-0123456789") == std::string::npos) {
      dim.set_dim_value(std::stoll(extent));
    } else {
      dim.set_dim_param(extent);
    }
  }
  return *this;
}

OnnxModel& OnnxModel::Output(const std::string& name, int32_t type) {
  onnx::ValueInfoProto& output = *graph().add_output();
  output.set_name(name);
  output.mutable_type()->mutable_tensor_type()->set_elem_type(type);
  return *this;
}

OnnxModel& OnnxModel::Zeros(const std::string& name, const std::vector<int64_t>& shape) {
  onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  size_t bytes = sizeof(float);
  for (int64_t extent : shape) {
    tensor.add_dims(extent);
    bytes *= static_cast<size_t>(extent);
  }
  tensor.set_raw_data(std::string(bytes, '\0'));
  return *this;
}

OnnxModel& OnnxModel::Weights(const std::string& name, const std::vector<int64_t>& shape) {
  constexpr int64_t kPeriod = 97;
  onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    tensor.add_dims(extent);
    elements *= extent;
  }
  for (int64_t i = 0; i < elements; ++i)
    tensor.add_float_data(0.01F * static_cast<float>(i % kPeriod + 1));
  return *this;
}

OnnxModel& OnnxModel::Ints(const std::string& name, const std::vector<int64_t>& values) {
  onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (int64_t value : values) tensor.add_int64_data(value);
  return *this;
}

onnx::NodeProto& OnnxModel::Node(const std::string& op, const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs) {
  onnx::NodeProto& node = *graph().add_node();
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  return node;
}

absl::StatusOr<Graph> OnnxModel::Import(const ImportOptions& options) const {
  return ImportBytes(Bytes(), options);
}

std::string OnnxModel::Error(const ImportOptions& options) const {
  const auto graph = Import(options);
  return graph.ok() ? "ok" : StatusMessage(graph.status());
}

void SetInt(onnx::NodeProto& node, const std::string& name, int64_t value) {
  Add(node, name, onnx::AttributeProto::INT).set_i(value);
}

void SetInts(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  onnx::AttributeProto& attribute = Add(node, name, onnx::AttributeProto::INTS);
  for (int64_t value : values) attribute.add_ints(value);
}

void SetFloat(onnx::NodeProto& node, const std::string& name, float value) {
  Add(node, name, onnx::AttributeProto::FLOAT).set_f(value);
}

void SetString(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  Add(node, name, onnx::AttributeProto::STRING).set_s(value);
}

absl::StatusOr<Graph> ImportBytes(const std::string& bytes, const ImportOptions& options) {
  return ImportOnnx(std::as_bytes(std::span(bytes)), options);
}

}  // namespace hone::graph
