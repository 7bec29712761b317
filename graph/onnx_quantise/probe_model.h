#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "graph/graph.h"
#include "graph/onnx_quantise/quantise_scheme.h"
#include "graph/onnx_quantise/source_model.h"

// The model in f32, with everything that quantising decides as additional graph inputs. Compiled
// once, it serves calibration and computes the outputs of any assignment.
namespace hone::graph::onnx_quantise {

// Names of its additional inputs. Those of a layer: its weights and its bias (where it has one) as
// they are multiplied and added, and whether its data are rounded. Those of a group: what its value
// is multiplied by (InputGroup::spread), and of kInt8 the scale and the zero point.
std::string WeightsInput(size_t layer);
std::string BiasInput(size_t layer);
std::string RoundedInput(size_t layer);
std::string SmoothInput(size_t group);
std::string ScaleInput(size_t group);
std::string ZeroInput(size_t group);
/// The additional output: a group's value after smoothing.
std::string DataOutput(size_t group);

/// Whether a layer's own vector is its alone, so that it can be another: BiasInput exists.
bool HasBias(const Layer& layer);

/// The probe as an ONNX model, whose tensors may lie in the source's folder. The model's own inputs
/// and outputs come first, in their order.
std::string ProbeModel(const SourceModel& source, Scheme scheme);

}  // namespace hone::graph::onnx_quantise
