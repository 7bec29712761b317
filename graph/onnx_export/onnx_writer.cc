#include "graph/onnx_export/onnx_writer.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <type_traits>

#include "fmt/format.h"

#include "base/core/hash128.h"
#include "base/core/random.h"
#include "base/file.h"
#include "base/status.h"
#include "base/versions.h"
#include "graph/onnx_import/onnx.pb.h"

namespace hone::graph {
namespace {

constexpr int64_t kIrVersion = 8;
constexpr int64_t kOpset = 17;
constexpr int64_t kExternalBytes =
    100'000'000;                        ///< of all tensors: above, they get a file of their own
constexpr int64_t kInlineBytes = 1024;  ///< a tensor up to this size stays in the model
constexpr int64_t kDataAlignment = 64;

onnx::TensorProto::DataType OnnxType(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kBool: return onnx::TensorProto::BOOL;
    case ir::DType::kI8: return onnx::TensorProto::INT8;
    case ir::DType::kU8: return onnx::TensorProto::UINT8;
    case ir::DType::kI16: return onnx::TensorProto::INT16;
    case ir::DType::kU16: return onnx::TensorProto::UINT16;
    case ir::DType::kI32: return onnx::TensorProto::INT32;
    case ir::DType::kU32: return onnx::TensorProto::UINT32;
    case ir::DType::kI64: return onnx::TensorProto::INT64;
    case ir::DType::kU64: return onnx::TensorProto::UINT64;
    case ir::DType::kF16: return onnx::TensorProto::FLOAT16;
    case ir::DType::kBF16: return onnx::TensorProto::BFLOAT16;
    case ir::DType::kF32: return onnx::TensorProto::FLOAT;
    case ir::DType::kF64: return onnx::TensorProto::DOUBLE;
  }
  HONE_UNREACHABLE();
}

void FillTensor(onnx::TensorProto& proto, const std::string& name, const TensorType& type) {
  proto.set_name(name);
  proto.set_data_type(OnnxType(type.dtype));
  for (const int64_t extent : type.shape) proto.add_dims(extent);
}

void FillAttribute(onnx::AttributeProto& proto, const std::string& name,
                   const Attribute& attribute) {
  proto.set_name(name);
  std::visit(
      [&proto](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, int64_t>) {
          proto.set_type(onnx::AttributeProto::INT);
          proto.set_i(value);
        } else if constexpr (std::is_same_v<T, double>) {
          proto.set_type(onnx::AttributeProto::FLOAT);
          proto.set_f(static_cast<float>(value));
        } else if constexpr (std::is_same_v<T, std::string>) {
          proto.set_type(onnx::AttributeProto::STRING);
          proto.set_s(value);
        } else if constexpr (std::is_same_v<T, Ints>) {
          proto.set_type(onnx::AttributeProto::INTS);
          for (const int64_t each : value) proto.add_ints(each);
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          proto.set_type(onnx::AttributeProto::FLOATS);
          for (const double each : value) proto.add_floats(static_cast<float>(each));
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          proto.set_type(onnx::AttributeProto::STRINGS);
          for (const std::string& each : value) proto.add_strings(each);
        } else {
          proto.set_type(onnx::AttributeProto::TENSOR);
          FillTensor(*proto.mutable_t(), "", value->type);
          proto.mutable_t()->set_raw_data(value->bytes.data(), value->bytes.size());
        }
      },
      attribute);
}

template <typename ValueSpec>
void FillValue(onnx::ValueInfoProto& proto, const ValueSpec& value) {
  proto.set_name(value.name);
  if (!value.description.empty()) proto.set_doc_string(value.description);
  onnx::TypeProto::Tensor& tensor = *proto.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(OnnxType(value.type.dtype));
  tensor.mutable_shape();  // a scalar has a shape too
  for (const int64_t extent : value.type.shape) {
    tensor.mutable_shape()->add_dim()->set_dim_value(extent);
  }
}

void AddExternalKey(onnx::TensorProto& proto, const std::string& key, const std::string& value) {
  onnx::StringStringEntryProto& entry = *proto.add_external_data();
  entry.set_key(key);
  entry.set_value(value);
}

struct FileClose {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

std::string OnnxWriter::Input(const std::string& name, ir::DType dtype, Ints shape) {
  inputs_.push_back({name, {dtype, std::move(shape)}, ""});
  return name;
}

std::string OnnxWriter::Input(const std::string& name, ir::DType dtype, Ints shape,
                              ir::ValueRange range) {
  inputs_.push_back(
      {name, {dtype, std::move(shape)}, fmt::format("low={},high={}", range.low, range.high)});
  return name;
}

std::string OnnxWriter::Weight(const std::string& name, Ints shape, double low, double high) {
  initialisers_.push_back({.name = name,
                           .type = {ir::DType::kF32, std::move(shape)},
                           .bytes = {},
                           .low = static_cast<float>(low),
                           .high = static_cast<float>(high)});
  return name;
}

std::string OnnxWriter::Weight(const std::string& name, Ints shape, int64_t fan_in, double gain) {
  // A uniform distribution on [-b, b) has variance b^2 / 3. Square roots round alike everywhere.
  const double bound = gain * std::sqrt(3.0 / static_cast<double>(fan_in));
  return Weight(name, std::move(shape), -bound, bound);
}

std::string OnnxWriter::Floats(const std::string& name, Ints shape, std::vector<float> values) {
  Initialiser initialiser = {
      .name = name, .type = {ir::DType::kF32, std::move(shape)}, .bytes = {}};
  initialiser.bytes.resize(values.size() * sizeof(float));
  std::memcpy(initialiser.bytes.data(), values.data(), initialiser.bytes.size());
  initialisers_.push_back(std::move(initialiser));
  return name;
}

std::string OnnxWriter::Integers(const std::string& name, Ints shape, Ints values) {
  Initialiser initialiser = {
      .name = name, .type = {ir::DType::kI64, std::move(shape)}, .bytes = {}};
  initialiser.bytes.resize(values.size() * sizeof(int64_t));
  std::memcpy(initialiser.bytes.data(), values.data(), initialiser.bytes.size());
  initialisers_.push_back(std::move(initialiser));
  return name;
}

std::string OnnxWriter::Node(const std::string& op, const std::string& name,
                             std::vector<std::string> inputs, Attributes attributes) {
  return Nodes(op, {name}, std::move(inputs), std::move(attributes)).front();
}

std::vector<std::string> OnnxWriter::Nodes(const std::string& op, std::vector<std::string> outputs,
                                           std::vector<std::string> inputs, Attributes attributes) {
  nodes_.push_back({op, std::move(inputs), outputs, std::move(attributes)});
  return outputs;
}

void OnnxWriter::Output(const std::string& name, ir::DType dtype, Ints shape) {
  outputs_.push_back({name, {dtype, std::move(shape)}, ""});
}

int64_t OnnxWriter::NumParameters() const {
  int64_t total = 0;
  for (const Initialiser& each : initialisers_) {
    if (each.type.dtype == ir::DType::kF32) total += each.type.NumElements();
  }
  return total;
}

std::vector<std::byte> OnnxWriter::Bytes(const Initialiser& initialiser) const {
  if (!initialiser.bytes.empty()) return initialiser.bytes;
  std::vector<std::byte> bytes(static_cast<size_t>(initialiser.type.Bytes()));
  Random random(seed_ ^ HashBytes(graph_name_ + '\0' + initialiser.name).high);
  const double low = initialiser.low, width = static_cast<double>(initialiser.high) - low;
  for (size_t at = 0; at < bytes.size(); at += sizeof(float)) {
    const auto value = static_cast<float>(low + width * random.Uniform());
    std::memcpy(bytes.data() + at, &value, sizeof(float));
  }
  return bytes;
}

absl::Status OnnxWriter::SaveTensors(const std::string& data_path,
                                     std::vector<int64_t>* offsets) const {
  const std::string temporary = data_path + ".tmp";
  std::unique_ptr<std::FILE, FileClose> file(std::fopen(temporary.c_str(), "wbe"));
  const auto failed = [&] {
    const absl::Status status = ErrnoStatus(errno, fmt::format("write '{}'", data_path));
    std::remove(temporary.c_str());
    return status;
  };
  if (!file) return failed();
  int64_t offset = 0;
  for (const Initialiser& each : initialisers_) {
    if (each.type.Bytes() <= kInlineBytes) {
      offsets->push_back(-1);
      continue;
    }
    std::vector<std::byte> bytes = Bytes(each);
    offsets->push_back(offset);
    bytes.resize((bytes.size() + kDataAlignment - 1) / kDataAlignment * kDataAlignment);
    if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) return failed();
    offset += static_cast<int64_t>(bytes.size());
  }
  if (std::fclose(file.release()) != 0) return failed();
  if (std::rename(temporary.c_str(), data_path.c_str()) != 0) return failed();
  return absl::OkStatus();
}

absl::Status OnnxWriter::Save(const std::string& path) const {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("hone");
  model.set_producer_version(kProgramVersion);
  model.add_opset_import()->set_version(kOpset);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name(graph_name_);
  for (const Value& input : inputs_) FillValue(*graph.add_input(), input);
  for (const Value& output : outputs_) FillValue(*graph.add_output(), output);
  for (const NodeSpec& spec : nodes_) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(spec.op);
    node.set_name(spec.outputs.front());
    for (const std::string& input : spec.inputs) node.add_input(input);
    for (const std::string& output : spec.outputs) node.add_output(output);
    for (const auto& [name, attribute] : spec.attributes) {
      FillAttribute(*node.add_attribute(), name, attribute);
    }
  }
  int64_t total = 0;
  for (const Initialiser& each : initialisers_) total += each.type.Bytes();
  const std::string data_path = path + ".data";
  std::vector<int64_t> offsets(initialisers_.size(), -1);
  if (total > kExternalBytes) {
    offsets.clear();
    HONE_RETURN_IF_ERROR(SaveTensors(data_path, &offsets));
  }
  for (size_t i = 0; i < initialisers_.size(); ++i) {
    const Initialiser& each = initialisers_[i];
    onnx::TensorProto& tensor = *graph.add_initializer();
    FillTensor(tensor, each.name, each.type);
    if (offsets[i] < 0) {
      const std::vector<std::byte> bytes = Bytes(each);
      tensor.set_raw_data(bytes.data(), bytes.size());
      continue;
    }
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    AddExternalKey(tensor, "location", std::filesystem::path(data_path).filename().string());
    AddExternalKey(tensor, "offset", std::to_string(offsets[i]));
    AddExternalKey(tensor, "length", std::to_string(each.type.Bytes()));
  }
  return WriteFileAtomically(path, model.SerializeAsString());
}

}  // namespace hone::graph
