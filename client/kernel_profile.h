#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "measure/device_rates.h"
#include "runtime/context.h"

namespace hone::client {

/// Where a model's time goes: one row a kernel (all its steps together) or extern routine.
struct KernelProfileRow {
  std::string name;      ///< operators and shape, or of which routine
  std::string workload;  ///< hash; empty for a routine
  std::string rung;
  int64_t count = 0;    ///< of its runs in one of the model
  double time_us = 0;   ///< of a run, all steps: medians added up
  double bytes = 0;     ///< moved at least, of a run
  double flop = 0;      ///< of a run; 0 for a routine, which does not tell
  double bound_us = 0;  ///< roofline; 0 for a routine
};

/// Collects step times of runs of one context.
class KernelProfile {
 public:
  /// Adds the last run.
  void AddRun(const runtime::Context& context);

  /// Rows by time, longest first.
  std::vector<KernelProfileRow> Rows(const runtime::Executable& executable,
                                     const measure::DeviceRates& rates) const;

 private:
  std::vector<std::vector<double>> step_us_;  // by step, by run
};

}  // namespace hone::client
