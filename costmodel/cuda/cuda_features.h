#pragma once

#include "costmodel/features.h"

namespace hone::costmodel {

/// Waves of blocks over the SMs, traffic and arithmetic with the card's nominal numbers: closed
/// forms over threads and elements of a grid. No model was trained on measurements of a GPU.
const FeaturesOfKind& CudaFeaturesOf();

}  // namespace hone::costmodel
