#include "schedule/cuda/grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "schedule/cuda/rows.h"
#include "schedule/nest_builder.h"
#include "schedule/structure.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

constexpr size_t kThreads = 0, kElements = 1;  // columns
constexpr int64_t kScanThreads = 1024;

/// The axis whose elements one thread can take together: the innermost, of a map that writes it
/// side by side; -1: none.
int ThreadAxis(const ir::Workload& workload, const ir::Stage& stage) {
  if (stage.combiner != ir::Combiner::kNone || stage.num_spatial() == 0) return -1;
  const int last = stage.num_spatial() - 1;
  return VectorAxis(workload, stage) == last ? last : -1;
}

/// A step of a scan: threads of one block take its elements in turns, neighbours together.
void ScheduleInScan(TraceWriter& w, const ir::Stage& stage) {
  if (stage.num_spatial() < 2) return;
  // Indices stay plain where axes of one element stand inside.
  std::vector<std::string> axes, units;
  int64_t points = 1;
  bool moved = false;
  for (int a = 1; a < stage.num_spatial(); ++a) {
    const bool unit = stage.spatial[a] == 1 && (a + 1 < stage.num_spatial() || !axes.empty());
    moved = moved || (!unit && !units.empty());
    (unit ? units : axes).push_back(fmt::format("{}.i{}", stage.name, a));
    points *= stage.spatial[a];
  }
  if (moved) w.Emit(fmt::format("reorder({}, {})", fmt::join(axes, ", "), fmt::join(units, ", ")));
  std::string loop = axes[0];
  for (size_t k = 1; k < axes.size(); ++k) {
    const std::string fused = fmt::format("{}.f{}", stage.name, k - 1);
    w.Emit(fmt::format("{} = fuse({}, {})", fused, loop, axes[k]));
    loop = fused;
  }
  const int64_t threads = ThreadsInScan(points);
  w.Emit(fmt::format("split({}, {}{})", loop, threads, points % threads == 0 ? "" : ", mask"));
  w.Emit(fmt::format("reorder({0}.1, {0}.0)", loop));
  w.Emit(fmt::format("bind({}.1, thread.x)", loop));
  if (stage.combiner != ir::Combiner::kNone)
    w.Emit(fmt::format("{} = cache_write({}, register, at={}.0)", w.NextStage(), stage.name, loop));
}

struct GridForm : SketchForm {
  std::vector<std::string> scans;  ///< Stages of scans, which have their own number of threads
  int64_t most_elements = 1;       ///< that some Stage's thread can take
};

class GridRule final : public SketchRule {
 public:
  absl::Status Emit(const Sketch&, const Values& v, TraceWriter& w) const override {
    FindClusters(w, -1, -1);  // inlines
    for (const int id : LiveStages(w.schedule())) ScheduleOnGrid(w, id, v[kThreads], v[kElements]);
    return w.status();
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const auto& form = static_cast<const GridForm&>(*sketch.form);
    Values values{kGridThreads, 1};
    bool found = false;
    for (const Instruction& i : trace.instructions) {
      if (i.positional.empty()) continue;
      const std::string& loop = i.positional[0];
      const std::string whole = loop.substr(0, loop.rfind('.'));
      if (std::ranges::count(form.scans, loop.substr(0, loop.find('.'))) > 0) continue;
      const std::vector<int64_t> factors = FactorsOf(trace, whole);
      if (factors.empty()) continue;
      if (i.primitive == "bind" && i.positional.back() == "thread.x" && !found) {
        values[kThreads] = factors.back();
        found = true;
      } else if (i.primitive == "vectorize") {
        values[kElements] = std::max(values[kElements], factors.back());
      }
    }
    // Where nothing is bound every number of threads gives the same Trace.
    if (!found) values[kThreads] = sketch.tables[0].rows[0][0];
    return values;
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    return Values{kGridThreads, static_cast<const GridForm&>(*sketch.form).most_elements};
  }
};

}  // namespace

int64_t ThreadsInScan(int64_t elements) {
  const int64_t warps = (elements + kWarpThreads - 1) / kWarpThreads;
  return std::min(warps * kWarpThreads, kScanThreads);
}

int64_t ElementsOf(const ir::Workload& workload, const ir::Stage& stage, int64_t wanted) {
  const int axis = ThreadAxis(workload, stage);
  if (axis < 0) return 1;
  while (stage.spatial[axis] % wanted != 0) wanted /= 2;
  return wanted;
}

void ScheduleOnGrid(TraceWriter& w, int id, int64_t threads, int64_t elements, int64_t repeats) {
  const ir::Stage stage = w.stage(id);
  if (stage.num_spatial() == 0) return;
  if (stage.scan >= 0) {
    ScheduleInScan(w, stage);
    return;
  }
  std::string loop = stage.name + ".i0";
  int64_t points = stage.spatial[0];
  std::string together;
  elements = ElementsOf(w.workload(), stage, elements);
  for (int a = 0; a < stage.num_spatial(); ++a) {
    std::string next = fmt::format("{}.i{}", stage.name, a);
    int64_t extent = stage.spatial[a];
    if (elements > 1 && a + 1 == stage.num_spatial()) {
      w.Emit(fmt::format("split({}, {})", next, elements));
      together = next + ".1";
      next += ".0";
      extent /= elements;
    }
    if (a == 0) {
      loop = next;
      points = extent;
      continue;
    }
    const std::string fused = fmt::format("{}.f{}", stage.name, a - 1);
    w.Emit(fmt::format("{} = fuse({}, {})", fused, loop, next));
    loop = fused;
    points *= extent;
  }
  if (stage.combiner != ir::Combiner::kNone) repeats = 1;
  const char* const tail = points % (threads * repeats) == 0 ? "" : ", mask";
  if (repeats > 1) {
    w.Emit(fmt::format("split({}, [{}, {}]{})", loop, repeats, threads, tail));
    w.Emit(fmt::format("reorder({0}.0, {0}.2, {0}.1{1})", loop,
                       together.empty() ? "" : ", " + together));
  } else {
    w.Emit(fmt::format("split({}, {}{})", loop, threads, tail));
  }
  w.Emit(fmt::format("bind({}.0, block.x)", loop));
  w.Emit(fmt::format("bind({}.{}, thread.x)", loop, repeats > 1 ? 2 : 1));
  // All loads are on their way before the first result is stored.
  if (repeats > 1) w.Emit(fmt::format("unroll({}.1)", loop));
  if (!together.empty()) w.Emit(fmt::format("vectorize({})", together));
  if (stage.combiner != ir::Combiner::kNone) {
    w.Emit(fmt::format("{} = cache_write({}, register, at={}.1)", w.NextStage(), stage.name, loop));
  }
}

void ScheduleReduction(TraceWriter& w, int id, int64_t threads, bool last_slowest) {
  const ir::Stage stage = w.stage(id);
  if (last_slowest && stage.num_spatial() > 1) {
    std::string order = fmt::format("{}.i{}", stage.name, stage.num_spatial() - 1);
    for (int a = 0; a + 1 < stage.num_spatial(); ++a)
      order += fmt::format(", {}.i{}", stage.name, a);
    w.Emit(fmt::format("reorder({})", order));
  }
  const int count = stage.num_spatial();
  const auto axis = [&](int k) {
    return fmt::format("{}.i{}", stage.name, last_slowest ? (k + count - 1) % count : k);
  };
  std::string loop = axis(0);
  int64_t points = 1;
  for (const int64_t extent : stage.spatial) points *= extent;
  for (int k = 1; k < count; ++k) {
    const std::string fused = fmt::format("{}.f{}", stage.name, k - 1);
    w.Emit(fmt::format("{} = fuse({}, {})", fused, loop, axis(k)));
    loop = fused;
  }
  w.Emit(fmt::format("split({}, {}{})", loop, threads, points % threads == 0 ? "" : ", mask"));
  w.Emit(fmt::format("bind({}.0, block.x)", loop));
  w.Emit(fmt::format("bind({}.1, thread.x)", loop));
  w.Emit(fmt::format("{} = cache_write({}, register, at={}.1)", w.NextStage(), stage.name, loop));
}

Sketch GridSketch(const ir::Workload& workload) {
  static const GridRule rule;
  TraceWriter w(workload);
  FindClusters(w, -1, -1);
  auto form = std::make_shared<GridForm>();
  for (const int id : LiveStages(w.schedule())) {
    if (w.stage(id).scan >= 0) {
      form->scans.push_back(w.name(id));
      continue;
    }
    form->most_elements =
        std::max(form->most_elements, ElementsOf(w.workload(), w.stage(id), kGridElements));
  }
  DecisionTable threads{"threads", {"threads"}, {{64}, {128}, {kGridThreads}, {512}}};
  DecisionTable elements{"elements", {"elements"}, {}};
  for (int64_t e = 1; e <= form->most_elements; e *= 2) elements.rows.push_back({e});
  return {"grid", {std::move(threads), std::move(elements)}, &rule, std::move(form)};
}

}  // namespace hone::schedule
