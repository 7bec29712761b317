#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "schedule/sketches/cpu_rule.h"
#include "schedule/space.h"

namespace hone::costmodel {

/// A candidate as numbers: closed forms over what its rule says that it does, no lowering. Counts,
/// bytes and times stand as log2(1 + x), shares as themselves, ratios of times as log2(x). The
/// meaning of a column never changes under one kFeatureSchemaVersion (base/versions.h);
/// FeatureNames tells them.
inline constexpr int kNumFeatures = 44;
using FeatureVector = std::array<float, kNumFeatures>;

const std::array<std::string_view, kNumFeatures>& FeatureNames();

/// The column of the analytic time over the least one of the Space: how the analytic model ranks a
/// candidate among those of its task, comparable between tasks.
inline constexpr size_t kAnalyticOverBest = 43;

/// Whether a column stands as log2(1 + x).
bool IsLogarithm(int column);

/// What does not depend on the candidate, computed once per Space. Immutable, thread-safe to read.
class FeatureExtractor {
 public:
  explicit FeatureExtractor(const schedule::Space& space);

  /// A sixth of a microsecond or so.
  FeatureVector Extract(uint64_t id) const;
  /// Predicted time of one run, seconds: the largest of arithmetic at the tile's efficiency and of
  /// traffic per cache level, plus packing and barriers, with the Target's nominal numbers (cost
  /// stack 1; the tile model is the one of BLIS-like register kernels: Low et al., "Analytical
  /// Modeling Is Enough for High-Performance BLIS", TOMS 2016, with the port limits measured).
  double AnalyticSeconds(uint64_t id) const;

 private:
  struct Terms {
    double compute = 0, feed = 0, memory = 0, transform = 0, barrier = 0;
    double efficiency = 1, row_balance = 1, lane_use = 1, thread_balance = 1, panel_bytes = 0,
           set_rows = 0;
    double Seconds() const;
  };
  void FillShared();
  void FindLeast();
  schedule::CpuFacts FactsOf(uint64_t id) const;
  Terms TermsOf(const schedule::CpuFacts& facts) const;
  void AddTile(const schedule::CpuFacts& facts, Terms* terms) const;

  const schedule::Space& space_;
  const schedule::CpuSubject& subject_;
  FeatureVector shared_{};    ///< the columns that no candidate changes
  double least_seconds_ = 0;  ///< analytic, of the points (of a sample of a large Space)
};

}  // namespace hone::costmodel
