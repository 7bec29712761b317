#include "costmodel/cuda/cuda_features.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "ir/cuda/cuda_target.h"

namespace hone::costmodel {
namespace {

constexpr double kLaunchSeconds = 3e-6;

class CudaFeatures final : public CandidateFeatures {
 public:
  explicit CudaFeatures(const schedule::Space& space)
      : space_(space), card_(space.target().As<ir::CudaTarget>()) {
    const ir::Workload& workload = space.workload();
    for (const ir::Stage& stage : workload.stages) {
      double points = 1, results = 1;
      for (int axis = 0; axis < stage.num_axes(); ++axis) {
        points *= static_cast<double>(stage.Extent(axis));
        if (axis < stage.num_spatial()) results *= static_cast<double>(stage.Extent(axis));
      }
      flop_ += 2 * points;
      results_ = std::max(results_, results);
    }
    for (const ir::Tensor& tensor : workload.tensors) {
      if (tensor.kind != ir::TensorKind::kImmediate) bytes_ += static_cast<double>(tensor.Bytes());
    }
    stages_ = static_cast<double>(workload.stages.size());
    least_seconds_ = AnalyticSeconds(space.DefaultId());
    for (uint64_t id = 0; id < std::min<uint64_t>(space.product(), 1 << 14); ++id) {
      least_seconds_ = std::min(least_seconds_, AnalyticSeconds(id));
    }
  }

  FeatureVector Extract(uint64_t id) const override {
    const auto log = [](double x) { return static_cast<float>(std::log2(1 + x)); };
    const double seconds = AnalyticSeconds(id);
    FeatureVector features{};
    features[0] = log(flop_ / 2);
    features[1] = log(results_);
    features[10] = static_cast<float>(space_.ValueOf(id, "threads"));
    features[11] = static_cast<float>(space_.ValueOf(id, "elements"));
    features[17] = static_cast<float>(Occupancy(id));
    features[38] = log(seconds * 1e6);
    features[kAnalyticOverBest] = static_cast<float>(std::log2(seconds / least_seconds_));
    return features;
  }

  double AnalyticSeconds(uint64_t id) const override {
    const double busy =
        std::max(bytes_ / card_.memory_bytes_per_second, flop_ / card_.flop_per_second);
    return busy / Occupancy(id) + kLaunchSeconds * stages_;
  }

 private:
  /// Share of the card's resident threads that work, on average over the waves of blocks.
  double Occupancy(uint64_t id) const {
    const auto threads = static_cast<double>(std::max<int64_t>(1, space_.ValueOf(id, "threads")));
    const auto elements = static_cast<double>(std::max<int64_t>(1, space_.ValueOf(id, "elements")));
    const double blocks = std::ceil(results_ / (threads * elements));
    const double places = card_.multiprocessors * std::max(1.0, card_.most_threads / threads);
    return blocks / (std::ceil(blocks / places) * places);
  }

  const schedule::Space& space_;
  const ir::CudaTarget& card_;
  double flop_ = 0, bytes_ = 0, results_ = 1, stages_ = 1;
  double least_seconds_ = 0;
};

}  // namespace

const FeaturesOfKind& CudaFeaturesOf() {
  class Kind final : public FeaturesOfKind {
   public:
    std::unique_ptr<const CandidateFeatures> Of(const schedule::Space& space) const override {
      return std::make_unique<CudaFeatures>(space);
    }
  };
  static const Kind kind;
  return kind;
}

}  // namespace hone::costmodel
