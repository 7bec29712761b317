#pragma once

#include "costmodel/features.h"

namespace hone::costmodel {

/// A sum over the launches of a candidate (launch.h, cuda_launches.h) with the card's nominal
/// numbers, never less than its roofline. No model was trained on measurements of a
/// GPU.
const FeaturesOfKind& CudaFeaturesOf();

}  // namespace hone::costmodel
