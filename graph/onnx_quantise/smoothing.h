#pragma once

#include <vector>

#include "graph/onnx_quantise/data_statistics.h"
#include "graph/onnx_quantise/quantise_scheme.h"
#include "graph/onnx_quantise/source_model.h"

namespace hone::graph::onnx_quantise {

/// What a group's value is divided by, channel by channel, and its layers' weights multiplied by,
/// so that channels of outliers do not make the steps of all others coarse: max|x|^a / max|w|^(1-a)
/// with the a that makes the layers' sums most exact on what calibration saw (Xiao et al. 2022,
/// SmoothQuant, equation 4). Empty where none gains more than it costs to multiply, for
/// convolutions, and for schemes whose data keep their own exponents.
std::vector<float> ChooseSmoothing(const SourceModel& source, const InputGroup& group,
                                   const DataStatistics& statistics, Scheme scheme);

}  // namespace hone::graph::onnx_quantise
