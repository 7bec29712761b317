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

/// The same for a group whose channels a producer can divide exactly (InputGroup::producer), of any
/// operator: √(max|x| / max|w|), which makes both ranges alike (Nagel et al. 2019, equation 11).
/// Empty where the channels' ranges are alike already.
std::vector<float> EqualisingFactors(const SourceModel& source, const InputGroup& group,
                                     const DataStatistics& statistics);

}  // namespace hone::graph::onnx_quantise
