#include "graph/onnx_quantise/standalone_model.h"

#include <limits>

#include "fmt/format.h"

#include "base/status.h"
#include "base/versions.h"
#include "graph/onnx_import/tensor_reader.h"

namespace hone::graph::onnx_quantise {
namespace {

absl::Status TakeIn(onnx::TensorProto& tensor, onnx_import::TensorReader& reader) {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return absl::OkStatus();
  const auto data = reader.Read(tensor);
  if (!data.ok()) return Annotate(data.status(), fmt::format("tensor '{}'", tensor.name()));
  tensor.set_raw_data((*data)->bytes.data(), (*data)->bytes.size());
  tensor.clear_external_data();
  tensor.clear_data_location();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> StandaloneModel(const SourceModel& source, onnx::ModelProto model) {
  model.set_producer_name("hone");
  model.set_producer_version(kProgramVersion);
  onnx_import::TensorReader reader(source.proto, source.folder, source.linked_folder);
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer())
    HONE_RETURN_IF_ERROR(TakeIn(tensor, reader));
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node())
    for (onnx::AttributeProto& attribute : *node.mutable_attribute())
      if (attribute.has_t()) HONE_RETURN_IF_ERROR(TakeIn(*attribute.mutable_t(), reader));
  if (model.ByteSizeLong() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return absl::ResourceExhaustedError(
        "the written model is above the 2 GB that one ONNX file may have: keep fewer layers");
  }
  return model.SerializeAsString();
}

}  // namespace hone::graph::onnx_quantise
