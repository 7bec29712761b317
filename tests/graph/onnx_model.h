#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/onnx_import/import.h"
#include "graph/onnx_import/onnx.pb.h"

namespace hone::graph {

/// Writes small ONNX models for tests.
class OnnxModel {
 public:
  explicit OnnxModel(int64_t opset = 18);

  /// A dimension is a number, or a name.
  OnnxModel& Input(const std::string& name, const std::vector<std::string>& shape,
                   int32_t type = onnx::TensorProto::FLOAT);
  OnnxModel& Output(const std::string& name, int32_t type = onnx::TensorProto::FLOAT);
  /// Float zeros, and integers with their values.
  OnnxModel& Zeros(const std::string& name, const std::vector<int64_t>& shape);
  /// Floats between 0.01 and 0.97, none of them zero: weights that nothing can leave out.
  OnnxModel& Weights(const std::string& name, const std::vector<int64_t>& shape);
  OnnxModel& Ints(const std::string& name, const std::vector<int64_t>& values);
  onnx::NodeProto& Node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs);

  onnx::GraphProto& graph() { return *model.mutable_graph(); }
  std::string Bytes() const { return model.SerializeAsString(); }
  absl::StatusOr<Graph> Import(const ImportOptions& options = {}) const;
  /// The message of the error that importing gives, or "ok".
  std::string Error(const ImportOptions& options = {}) const;

  onnx::ModelProto model;
};

void SetInt(onnx::NodeProto& node, const std::string& name, int64_t value);
void SetInts(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values);
void SetFloat(onnx::NodeProto& node, const std::string& name, float value);
void SetString(onnx::NodeProto& node, const std::string& name, const std::string& value);

absl::StatusOr<Graph> ImportBytes(const std::string& bytes, const ImportOptions& options = {});

}  // namespace hone::graph
