#pragma once

#include <memory>
#include <string>

#include "graph/onnx_import/import.h"
#include "graph/onnx_import/input_shapes.h"
#include "graph/onnx_import/onnx.pb.h"

namespace hone::graph::onnx_import {

/// For a model whose nodes do not fit with the sizes given: "'past' = 16 and 'total' = 20 …: --dim
/// total=17 or --dim past=19 fits", where another size of a single dimension lets it be imported;
/// empty otherwise. Tries sums and differences of the others, what equals one of them, and 1; so it
/// imports the model some dozen times. `resolved`: the sizes it was imported with.
std::string SizesThatFit(const std::shared_ptr<const onnx::ModelProto>& model,
                         const ImportOptions& options, const InputShapes& resolved);

}  // namespace hone::graph::onnx_import
