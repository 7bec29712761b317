#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "ir/per_kind.h"
#include "schedule/space.h"

namespace hone::costmodel {

/// A candidate as numbers: closed forms over what its rule says that it does, no lowering. Counts,
/// bytes and times stand as log2(1 + x), shares as themselves, ratios of times as log2(x). The
/// columns are the kind's (FeatureSchema); their number and meaning never change under one
/// KindVersions::feature_schema (base/versions.h).
using FeatureVector = std::vector<float>;

/// A column of a kind of device.
struct Feature {
  std::string_view name;
  bool logarithm = false;  ///< stands as log2(1 + x)
};

/// The columns of a kind of device, at least one. The last one of every kind is
/// "analytic_over_best", the analytic time over the least one of the Space: how the analytic model
/// ranks a candidate among those of its task, comparable between tasks.
using FeatureSchema = std::vector<Feature>;
inline constexpr std::string_view kAnalyticOverBest = "analytic_over_best";

/// The features and the analytic model of a kind of device, for the candidates of one Space.
/// Immutable, thread-safe to read.
class CandidateFeatures {
 public:
  virtual ~CandidateFeatures() = default;
  /// Fills a row of zeros with as many columns as the kind has. A sixth of a microsecond or so.
  virtual void Extract(uint64_t id, std::span<float> row) const = 0;
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

  size_t columns() const { return columns_; }
  FeatureVector Extract(uint64_t id) const;
  void Extract(uint64_t id, std::span<float> row) const { features_->Extract(id, row); }
  double AnalyticSeconds(uint64_t id) const { return features_->AnalyticSeconds(id); }

 private:
  std::unique_ptr<const CandidateFeatures> features_;
  size_t columns_;
};

}  // namespace hone::costmodel
