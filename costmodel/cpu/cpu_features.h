#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "costmodel/features.h"
#include "schedule/cpu/cpu_rule.h"
#include "schedule/space.h"

namespace hone::costmodel {

/// What does not depend on the candidate, computed once per Space. Immutable, thread-safe to read.
class CpuFeatures final : public CandidateFeatures {
 public:
  explicit CpuFeatures(const schedule::Space& space);

  void Extract(uint64_t id, std::span<float> row) const override;
  /// The largest of arithmetic at the tile's efficiency and of
  /// traffic per cache level, plus packing and barriers, with the Target's nominal numbers (cost
  /// stack 1; the tile model is the one of BLIS-like register kernels: Low et al., "Analytical
  /// Modeling Is Enough for High-Performance BLIS", TOMS 2016, with the port limits measured).
  double AnalyticSeconds(uint64_t id) const override;

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
  /// The columns, from the first on, that the Workload alone decides.
  std::array<float, 10> shared_{};
  double least_seconds_ = 0;  ///< analytic, of the points (of a sample of a large Space)
};

const FeaturesOfKind& CpuFeaturesOf();

}  // namespace hone::costmodel
