#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/onnx_import/import.h"
#include "graph/onnx_import/onnx.pb.h"

namespace hone::graph::onnx_import {

/// What a model declares, with ? for what it leaves open without a name: "[batch,3,?]".
std::string ShapeText(const onnx::TensorShapeProto& shape);

/// An input of the model that no initialiser gives its value.
struct FreeInput {
  const onnx::ValueInfoProto* declared = nullptr;
  bool needed = true;  ///< for the outputs that are asked for
};

/// What the inputs of a model are, once the user has said what the model leaves open.
struct InputShapes {
  std::map<std::string, std::vector<int64_t>> shapes;  ///< of each that is needed and a tensor
  std::map<std::string, int64_t> dims;  ///< what each name stands for that is no formula of others
};

/// Fills the shapes of `inputs` from what they declare, --dim, --shape and --bind. A dimension
/// whose name is a formula of other names ("past + 1") follows from them. Errors: an option that
/// fits nothing; sizes that contradict each other; dimensions that are still open, each once, with
/// the options that give them.
absl::StatusOr<InputShapes> ResolveInputShapes(const std::vector<FreeInput>& inputs,
                                               const ImportOptions& options);

}  // namespace hone::graph::onnx_import
