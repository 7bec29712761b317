#pragma once

#include <map>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace hone::schedule {

/// What a Trace uses, for the histogram.
struct TraceUse {
  std::map<std::string, int> counts;  ///< "split", "tail mask", "place register", …
  bool has_tail = false;              ///< a masked or two-size split that leaves a remainder
  int stages = 0;                     ///< live Stages
};

/// The tensors that the Stage loads, each once.
std::vector<int> TensorsReadBy(const ir::Stage& stage);

/// Counts where the live Stages stand.
void CountPlaces(const Schedule& schedule, TraceUse* use);

}  // namespace hone::schedule
