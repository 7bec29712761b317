#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/core/clock.h"
#include "measure/builder_client.h"
#include "measure/candidate_builder.h"
#include "measure/measurer.h"

namespace hone::measure {

/// Builds candidates with hone-builder and runs none: a result says whether, or why not, and has no
/// samples. For searches that predict times, of devices that this machine need not have. One
/// thread.
class BuildingMeasurer final : public Measurer {
 public:
  /// `clock` must outlive it.
  BuildingMeasurer(const BuilderOptions& options, const MonotonicClock& clock);

  void Submit(MeasureInput input) override { waiting_.push_back(std::move(input)); }
  /// Builds as many as the builder has processes, side by side, whatever the timeout says.
  std::vector<MeasureResult> Collect(int64_t timeout_ns) override;
  void DropWaiting() override { waiting_.clear(); }
  int64_t num_in_flight() const override { return static_cast<int64_t>(waiting_.size()); }
  int capacity() const override { return client_.processes(); }

 private:
  MeasureResult Build(const MeasureInput& input);

  BuilderClient client_;
  CandidateBuilder builder_;
  std::deque<MeasureInput> waiting_;
};

}  // namespace hone::measure
