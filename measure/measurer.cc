#include "measure/measurer.h"

#include <algorithm>

namespace hone::measure {

std::vector<ComparedTrace> Measurer::Compare(const std::vector<MeasureInput>& inputs,
                                             int /*rounds*/) {
  return std::vector<ComparedTrace>(inputs.size(),
                                    {{Outcome::kWorkerLost, "this measurer compares nothing"}, {}});
}

int64_t MedianNs(std::vector<int64_t> samples_ns) {
  if (samples_ns.empty()) return 0;
  std::sort(samples_ns.begin(), samples_ns.end());
  const size_t half = samples_ns.size() / 2;
  if (samples_ns.size() % 2 == 1) return samples_ns[half];
  return samples_ns[half - 1] + (samples_ns[half] - samples_ns[half - 1]) / 2;
}

}  // namespace hone::measure
