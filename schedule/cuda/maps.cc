#include "schedule/cuda/maps.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "schedule/cuda/grid.h"
#include "schedule/nest_builder.h"
#include "schedule/structure.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

constexpr size_t kThreads = 0, kElements = 1, kGroups = 2;  // columns
/// Below, a thread for each group leaves the card half empty as it is.
constexpr int64_t kLeastPoints = 1 << 14;

struct MapsForm : SketchForm {
  int64_t points = 0;  ///< of the largest map
};

bool IsMap(const ir::Stage& stage) {
  return stage.scan < 0 && stage.combiner == ir::Combiner::kNone && stage.num_spatial() > 0;
}

class MapsRule final : public SketchRule {
 public:
  absl::Status Emit(const Sketch&, const Values& v, TraceWriter& w) const override {
    FindClusters(w, -1, -1);  // inlines
    for (const int id : LiveStages(w.schedule())) {
      if (IsMap(w.stage(id)))
        ScheduleOnGrid(w, id, v[kThreads], v[kElements], v[kGroups]);
      else
        ScheduleOnGrid(w, id, kGridThreads, kGridElements);
    }
    return w.status();
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    Values values{sketch.tables[0].rows[0][0], 1, sketch.tables[2].rows[0][0]};
    for (const Instruction& i : trace.instructions) {
      if (i.positional.empty()) continue;
      const std::string& loop = i.positional[0];
      const std::vector<int64_t> factors = FactorsOf(trace, loop.substr(0, loop.rfind('.')));
      if (i.primitive == "vectorize" && factors.size() == 1) {
        values[kElements] = std::max(values[kElements], factors[0]);
      } else if (i.primitive == "bind" && factors.size() == 2) {
        values[kGroups] = factors[0];
        values[kThreads] = factors[1];
      }
    }
    return values;
  }

  std::string_view Refusal(const Sketch& sketch, const Values& v) const override {
    const auto& form = static_cast<const MapsForm&>(*sketch.form);
    if (v[kElements] * v[kGroups] > 32) return "too many registers";
    if (v[kThreads] * v[kElements] * v[kGroups] > form.points) return "a block is larger than all";
    return {};
  }
};

}  // namespace

std::optional<Sketch> MapsSketch(const ir::Workload& workload) {
  static const MapsRule rule;
  TraceWriter w(workload);
  FindClusters(w, -1, -1);
  auto form = std::make_shared<MapsForm>();
  int64_t most_elements = 1;
  for (const int id : LiveStages(w.schedule())) {
    const ir::Stage& stage = w.stage(id);
    if (!IsMap(stage)) continue;
    int64_t points = 1;
    for (const int64_t extent : stage.spatial) points *= extent;
    form->points = std::max(form->points, points);
    most_elements = std::max(most_elements, ElementsOf(w.workload(), stage, kGridElements));
  }
  if (form->points < kLeastPoints) return std::nullopt;
  DecisionTable threads{"threads", {"map_threads"}, {{64}, {128}, {256}, {512}, {1024}}};
  DecisionTable elements{"elements", {"map_elements"}, {}};
  for (int64_t e = 1; e <= most_elements; e *= 2) elements.rows.push_back({e});
  DecisionTable groups{"groups", {"map_groups"}, {{2}, {4}, {8}}};
  return Sketch{
      "maps", {std::move(threads), std::move(elements), std::move(groups)}, &rule, std::move(form)};
}

}  // namespace hone::schedule
