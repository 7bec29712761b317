#include "costmodel/features.h"

#include "costmodel/cpu/cpu_features.h"

namespace hone::costmodel {

ir::PerKind<FeaturesOfKind>& FeaturesOfKinds() {
  static ir::PerKind<FeaturesOfKind> kinds = {{"cpu", &CpuFeaturesOf()}};
  return kinds;
}

FeatureExtractor::FeatureExtractor(const schedule::Space& space)
    : features_(FeaturesOfKinds().Of(space.target()).Of(space)) {}

}  // namespace hone::costmodel
