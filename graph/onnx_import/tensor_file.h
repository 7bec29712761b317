#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"

#include "graph/graph.h"

namespace hone::graph {

struct NamedTensor {
  std::string name;  ///< may be empty
  ConstantPtr data;
};

/// A file with one serialised ONNX TensorProto (the `input_0.pb` of operator cases). kNotFound for
/// a missing file, kUnimplemented for element types Hone lacks, kInvalidArgument for anything that
/// is no tensor (sequences and optionals too).
absl::StatusOr<NamedTensor> ReadTensorFile(const std::filesystem::path& path);

}  // namespace hone::graph
