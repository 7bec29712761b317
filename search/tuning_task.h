#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "base/core/hash128.h"
#include "ir/target.h"
#include "ir/workload.h"
#include "schedule/space.h"

namespace hone::search {

/// One distinct Workload to tune.
struct TuningTask {
  std::shared_ptr<const ir::Workload> workload;
  Hash128 hash;
  std::string name;     ///< for people
  int count = 1;        ///< how often it occurs in the model
  /// How often it occurs when the model runs the other way (its batch, its chains of layers), where
  /// that is still to be decided and so searched as well; 0: not, or in both ways.
  int other_count = 0;
  double flop = 0;      ///< ir::CostOf, of one run
  double bound_ns = 0;  ///< what TaskOf says; 0: unknown
  /// Its Space, where it has been made already (it can take a second); null: the Tuner makes it.
  std::shared_ptr<const schedule::Space> space = nullptr;

  /// How much a nanosecond of it counts when the search shares out its time.
  int weight() const { return std::max(count, other_count); }
};

/// The task of a Workload, once and without a name. What it is chosen by follows from Workload and
/// target alone, here and on a farm the same: its bound is of the nominal rates of the target's
/// kind (DeviceProbe::Nominal), where it has none schedule::LeastNs.
TuningTask TaskOf(std::shared_ptr<const ir::Workload> workload, const ir::Target& target);

}  // namespace hone::search
