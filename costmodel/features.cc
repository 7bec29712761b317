#include "costmodel/features.h"

#include "costmodel/cpu/cpu_features.h"
#include "costmodel/cuda/cuda_features.h"

namespace hone::costmodel {

ir::PerKind<FeaturesOfKind>& FeaturesOfKinds() {
  static ir::PerKind<FeaturesOfKind> kinds = {{"cpu", &CpuFeaturesOf()},
                                              {"cuda", &CudaFeaturesOf()}};
  return kinds;
}

FeatureExtractor::FeatureExtractor(const schedule::Space& space)
    : features_(FeaturesOfKinds().Of(space.target()).Of(space)),
      columns_(FeaturesOfKinds().Of(space.target()).columns().size()) {}

FeatureVector FeatureExtractor::Extract(uint64_t id) const {
  FeatureVector row(columns_, 0);
  features_->Extract(id, row);
  return row;
}

}  // namespace hone::costmodel
