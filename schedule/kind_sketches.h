#pragma once

#include <vector>

#include "ir/accuracy_class.h"
#include "ir/per_kind.h"
#include "ir/target.h"
#include "ir/workload.h"
#include "schedule/sketch.h"

namespace hone::schedule {

/// What may be chosen for a kind of device: the Sketches of its rules. Thread-safe.
class KindSketches {
 public:
  virtual ~KindSketches() = default;

  /// Every Sketch of every rule, with its rule set: ids of a Space count on the order.
  virtual std::vector<Sketch> Sketches(const ir::Workload& workload, const ir::Target& target,
                                       ir::AccuracyClass accuracy) const = 0;
  /// A Sketch that has a default: every Workload has one.
  virtual Sketch DefaultSketch(const ir::Workload& workload, const ir::Target& target) const = 0;
  /// Where the default schedule computes the Workload, a chain of layers, in bands, so that what
  /// lies between the layers stays near: its arithmetic over what the Workload asks for, at
  /// least 1. 0: it does not.
  virtual double WorkInBands(const ir::Workload& /*workload*/, const ir::Target& /*target*/) const {
    return 0;
  }
};

/// The kinds that candidates can be made for. ir::PerKind says how to add one.
ir::PerKind<KindSketches>& SketchesOfKinds();

}  // namespace hone::schedule
