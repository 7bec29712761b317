#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"
#include "graph/onnx_import/mapped_file.h"
#include "graph/onnx_import/onnx.pb.h"

namespace hone::graph::onnx_import {

/// Hone's dtype of an ONNX one; kUnimplemented for strings, complex numbers and those of less than
/// 8 bits.
absl::StatusOr<ir::DType> DTypeOf(int32_t data_type);

/// INT4 and UINT4.
bool IsFourBits(int32_t data_type);

/// The dtype in which a tensor's numbers are held: DTypeOf, or i8 and u8 for those of four bits.
absl::StatusOr<ir::DType> HeldDTypeOf(int32_t data_type);

/// The name of an ONNX element type, for messages.
std::string DataTypeName(int32_t data_type);

/// Turns TensorProtos into constants. Raw bytes and external data are not copied: the constants
/// keep the model, or the mapped file, alive; what stands in typed fields is converted once. Not
/// thread-safe.
class TensorReader {
 public:
  /// `model` owns every TensorProto that Read will see; `folder` is where external files lie. Where
  /// one is a link, the file that it leads to must lie below `folder` or `linked_folder`.
  TensorReader(std::shared_ptr<const void> model, std::filesystem::path folder,
               std::filesystem::path linked_folder = {})
      : model_(std::move(model)),
        folder_(std::move(folder)),
        linked_folder_(std::move(linked_folder)) {}

  /// The files of external data that were read.
  std::vector<std::string> DataFiles() const;

  /// kInvalidArgument when sizes and bytes disagree or a file leaves the folder.
  absl::StatusOr<ConstantPtr> Read(const onnx::TensorProto& tensor);
  absl::StatusOr<ConstantPtr> ReadSparse(const onnx::SparseTensorProto& tensor);

 private:
  absl::StatusOr<ConstantPtr> ReadAs(TensorType type, const onnx::TensorProto& tensor);
  bool StaysInside(const std::filesystem::path& path) const;
  absl::StatusOr<ConstantPtr> ReadExternal(const onnx::TensorProto& tensor, TensorType type);

  std::shared_ptr<const void> model_;
  std::filesystem::path folder_, linked_folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
  std::map<const onnx::TensorProto*, ConstantPtr> converted_;
};

}  // namespace hone::graph::onnx_import
