#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "graph/onnx_import/onnx.pb.h"
#include "graph/onnx_quantise/source_model.h"

namespace hone::graph::onnx_quantise {

/// A model that was made of the source as one file: Hone is its producer, external data are taken
/// in. Errors of reading those; kResourceExhausted above the 2 GB that one message may have.
absl::StatusOr<std::string> StandaloneModel(const SourceModel& source, onnx::ModelProto model);

}  // namespace hone::graph::onnx_quantise
