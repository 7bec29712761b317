#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "schedule/space.h"

namespace hone::costmodel {

/// A candidate as numbers: closed forms over the Space's form and the columns of its tables, no
/// lowering. Counts, bytes and times stand as log2(1 + x), shares as themselves, ratios of times as
/// log2(x). The meaning of a column never changes under one kFeatureSchemaVersion
/// (base/versions.h); FeatureNames tells them.
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
  /// The contraction or window that the tile computes, after Winograd's transform if any.
  struct Work {
    double rows = 1, outer = 1, reduce = 1, multiply_adds = 0;
    double alpha2 = 1;  ///< products a Winograd tile needs; 1 without
  };
  void ReadTileForm();
  void FillShared();
  void FindLeast();
  Terms TermsOf(const schedule::PlanChoice& choice) const;
  Terms StreamTerms(const schedule::PlanChoice& choice) const;
  Work WinogradWork(const schedule::PlanChoice& choice, Terms* terms) const;
  void AddPadding(const schedule::PlanChoice& choice, Terms* terms) const;
  void AddTile(const schedule::PlanChoice& choice, const Work& work, Terms* terms) const;

  const schedule::Space& space_;
  FeatureVector shared_{};    ///< the columns that no candidate changes
  double least_seconds_ = 0;  ///< analytic, of the points (of a sample of a large Space)
  double multiply_adds_ = 0;  ///< of the anchor, padding included
  double points_ = 0;         ///< results of the anchor or owner
  double reduce_ = 1;
  double rows_ = 1, columns_ = 1, outer_ = 1;
  double input_bytes_ = 0, constant_bytes_ = 0, output_bytes_ = 0;
  double channel_ = 1;  ///< innermost reduce extent
  double row_stride_bytes_ = 0;
  bool contraction_ = false;
};

}  // namespace hone::costmodel
