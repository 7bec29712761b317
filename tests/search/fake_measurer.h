#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/core/random.h"
#include "measure/measurer.h"
#include "search/tuner.h"

namespace hone::search {

/// Two small tasks: a product and a convolution.
std::vector<TuningTask> TwoTasks();
/// The product of TwoTasks with more rows: of the same form.
TuningTask TallerProduct();
ir::Target TestTarget();

/// A deterministic time for a Trace, so that every run of a test sees the same landscape.
double LandscapeNs(const std::string& trace);

/// A Measurer like a farm's: answers late, in another order, and sometimes never.
class FakeMeasurer final : public measure::Measurer {
 public:
  struct Faults {
    double lose = 0;  ///< chance that a candidate is never answered
    double fail = 0;  ///< share of candidates whose code is wrong, whenever it is measured
    bool reorder = false;
    int delay = 0;        ///< results held back at least
    bool broken = false;  ///< nothing can be measured
    bool noisy = false;   ///< other programs disturb everything
  };
  FakeMeasurer(uint64_t seed, Faults faults) : random_(seed), faults_(faults) {}

  void Submit(measure::MeasureInput input) override;
  std::vector<measure::MeasureResult> Collect(int64_t timeout_ns) override;
  std::vector<measure::ComparedTrace> Compare(const std::vector<measure::MeasureInput>& inputs,
                                              int rounds) override;
  int64_t num_in_flight() const override { return static_cast<int64_t>(waiting_.size()); }
  int capacity() const override { return 8; }

  /// The first candidate of a Workload takes 1000 ns, every other one 2000.
  bool flat = false;
  const std::vector<std::string>& measured() const { return measured_; }
  /// Called after every answer; a test throws here to kill the session.
  std::function<void()> on_answer;
  /// Called with the time that the runs of a comparison take, ns.
  std::function<void(double)> on_compare;
  /// How many times too long a part of the work says that a Trace takes. Unset: runs no parts.
  std::function<double(const std::string& trace)> part_says;
  /// How many times too long a screening says that a Trace takes; comparisons are right.
  std::function<double(const std::string& trace)> screens;
  /// Only a part of these is run, whatever the input says.
  std::function<bool(const std::string& trace)> only_a_part;
  /// How many times longer than LandscapeNs everything takes.
  double slow = 1;
  /// And how many times longer what is compared with so many threads. Unset: fewer are refused.
  std::function<double(int threads)> with_threads;

 private:
  Random random_;
  Faults faults_;
  std::deque<measure::MeasureInput> waiting_;
  std::set<std::string> met_;
  std::vector<std::string> measured_;  ///< workload hash + trace of everything answered
};

}  // namespace hone::search
