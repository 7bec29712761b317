#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "ir/per_kind.h"
#include "schedule/space.h"

namespace hone::costmodel {

/// A candidate as numbers: closed forms over what its rule says that it does, no lowering. Counts,
/// bytes and times stand as log2(1 + x), shares as themselves, ratios of times as log2(x). The
/// columns are the kind's (FeatureSchema); their meaning never changes under one
/// KindVersions::feature_schema (base/versions.h).
inline constexpr int kNumFeatures = 44;
using FeatureVector = std::array<float, kNumFeatures>;

/// The column of the analytic time over the least one of the Space: how the analytic model ranks a
/// candidate among those of its task, comparable between tasks.
inline constexpr size_t kAnalyticOverBest = 43;

/// What a kind of device puts into the columns.
struct FeatureSchema {
  std::array<std::string_view, kNumFeatures> names;  ///< empty: always 0
  std::array<bool, kNumFeatures> logarithm = {};     ///< stands as log2(1 + x)
};

/// The features and the analytic model of a kind of device, for the candidates of one Space.
/// Immutable, thread-safe to read.
class CandidateFeatures {
 public:
  virtual ~CandidateFeatures() = default;
  /// A sixth of a microsecond or so.
  virtual FeatureVector Extract(uint64_t id) const = 0;
  /// Predicted time of one run, seconds, with the Target's nominal numbers.
  virtual double AnalyticSeconds(uint64_t id) const = 0;
};

/// Makes them. Thread-safe.
class FeaturesOfKind {
 public:
  virtual ~FeaturesOfKind() = default;
  virtual const FeatureSchema& columns() const = 0;
  /// The Space, which is of this kind, must outlive what is made.
  virtual std::unique_ptr<const CandidateFeatures> Of(const schedule::Space& space) const = 0;
};

/// The kinds that a cost model can rank candidates of. ir::PerKind says how to add one.
ir::PerKind<FeaturesOfKind>& FeaturesOfKinds();

/// CandidateFeatures of the Space's kind of device.
class FeatureExtractor {
 public:
  /// The Space must outlive it.
  explicit FeatureExtractor(const schedule::Space& space);

  FeatureVector Extract(uint64_t id) const { return features_->Extract(id); }
  double AnalyticSeconds(uint64_t id) const { return features_->AnalyticSeconds(id); }

 private:
  std::unique_ptr<const CandidateFeatures> features_;
};

}  // namespace hone::costmodel
