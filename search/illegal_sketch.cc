#include "search/illegal_sketch.h"

#include <algorithm>

#include "schedule/lower.h"

namespace hone::search {
namespace {

/// Why a point is illegal: the log's events do not say it, but lowering it again does.
std::string WhyIllegal(const schedule::Space& space, uint64_t id) {
  const auto trace = space.TraceOf(id);
  if (!trace.ok()) return std::string(trace.status().message());
  const auto lowered =
      schedule::LowerTrace(space.workload(), *trace, space.target(), {}, "candidate");
  return lowered.ok() ? "the code generator refuses it" : std::string(lowered.status().message());
}

}  // namespace

std::vector<IllegalSketch> IllegalSketches(const Tuner& tuner) {
  std::vector<IllegalSketch> all;
  for (int i = 0; i < tuner.num_tasks(); ++i) {
    if (!tuner.searching(i)) continue;
    const schedule::Space& space = tuner.search(i).space();
    for (const uint64_t id : tuner.search(i).Illegal()) {
      const std::string& sketch = space.sketches()[static_cast<size_t>(space.At(id).sketch)].name;
      const auto known = std::ranges::find_if(
          all, [&](const IllegalSketch& s) { return s.task == i && s.sketch == sketch; });
      if (known != all.end()) {
        ++known->count;
      } else {
        all.push_back({i, sketch, 1, WhyIllegal(space, id)});
      }
    }
  }
  return all;
}

}  // namespace hone::search
