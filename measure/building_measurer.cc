#include "measure/building_measurer.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace hone::measure {

BuildingMeasurer::BuildingMeasurer(const BuilderOptions& options, const MonotonicClock& clock)
    : client_(options, clock), builder_(client_, clock, BuildFor::kAny) {}

MeasureResult BuildingMeasurer::Build(const MeasureInput& input) {
  const BuiltCandidate built =
      builder_.Build(*input.workload, input.target, input.trace, input.seed, "", Keep::kNo);
  MeasureResult result;
  result.id = input.id;
  result.outcome = built.error.outcome;
  result.message = built.error.message;
  result.build_ms = static_cast<double>(built.build_ns) * 1e-6;
  return result;
}

std::vector<MeasureResult> BuildingMeasurer::Collect(int64_t /*timeout_ns*/) {
  std::vector<MeasureInput> inputs;
  const size_t most = std::min(waiting_.size(), static_cast<size_t>(capacity()));
  for (size_t i = 0; i < most; ++i) {
    inputs.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  std::vector<MeasureResult> results(inputs.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < inputs.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = Build(inputs[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

}  // namespace hone::measure
