#include "graph/onnx_import/tensor_file.h"

#include <memory>

#include "base/status.h"
#include "graph/onnx_import/mapped_file.h"
#include "graph/onnx_import/onnx.pb.h"
#include "graph/onnx_import/tensor_reader.h"

namespace hone::graph {

absl::StatusOr<NamedTensor> ReadTensorFile(const std::filesystem::path& path) {
  HONE_ASSIGN_OR_RETURN(const auto file, onnx_import::MappedFile::Open(path));
  const google::protobuf::LogSilencer silencer;
  auto tensor = std::make_shared<onnx::TensorProto>();
  if (!tensor->ParseFromArray(file->bytes().data(), static_cast<int>(file->bytes().size()))) {
    return absl::InvalidArgumentError(path.string() + " holds no tensor");
  }
  onnx_import::TensorReader reader(tensor, path.parent_path());
  auto data = reader.Read(*tensor);
  if (!data.ok()) return Annotate(data.status(), path.string());
  return NamedTensor{tensor->name(), *std::move(data)};
}

}  // namespace hone::graph
