#include "schedule/cuda/windows.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "schedule/cuda/parts.h"

namespace hone::schedule {

namespace {

/// Columns.
constexpr size_t kX = 0, kY = 1, kColumns = 2, kRows = 3;

struct WindowsForm : SketchForm {
  WindowTile nominal;
  std::string stage;  ///< the window with most to do
  WindowAxes axes;    ///< of that one
  ir::CudaTarget card;
};

WindowTile TileOf(const Values& v) { return {v[kX], v[kY], v[kColumns], v[kRows]}; }

class WindowsRule final : public SketchRule {
 public:
  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    const auto& form = static_cast<const WindowsForm&>(*sketch.form);
    const CudaParts parts = PartsOf(w);
    for (const Window& window : parts.windows) {
      const WindowTile tile = TileOf(v);
      if (tile.Misfit(window.axes, form.card.block_shared_bytes).empty())
        ScheduleWindow(w, window, tile);
      else
        ScheduleNominal(w, window, form.card);
    }
    ScheduleProducts(w, parts, form.card);
    ScheduleRows(w, parts);
    ScheduleRest(w, parts);
    return w.status();
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const auto& form = static_cast<const WindowsForm&>(*sketch.form);
    const WindowTile tile = ReadWindow(trace, form.stage, form.axes).value_or(form.nominal);
    return Values{tile.threads_x, tile.threads_y, tile.columns, tile.rows};
  }

  std::string_view Refusal(const Sketch& sketch, const Values& v) const override {
    const auto& form = static_cast<const WindowsForm&>(*sketch.form);
    return TileOf(v).Misfit(form.axes, form.card.block_shared_bytes);
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    const WindowTile& tile = static_cast<const WindowsForm&>(*sketch.form).nominal;
    return Values{tile.threads_x, tile.threads_y, tile.columns, tile.rows};
  }
};

}  // namespace

std::optional<Sketch> WindowsSketch(const ir::Workload& workload, const ir::Target& target) {
  static const WindowsRule rule;
  TraceWriter w(workload);
  const CudaParts parts = PartsOf(w);
  auto form = std::make_shared<WindowsForm>();
  form->card = target.As<ir::CudaTarget>();
  double most = 0;
  for (const Window& window : parts.windows) {
    const ir::Stage& stage = w.stage(window.stage);
    double points = 1;
    for (int a = 0; a < stage.num_axes(); ++a) points *= static_cast<double>(stage.Extent(a));
    const auto nominal = NominalWindow(window.axes, form->card.multiprocessors);
    if (points <= most || !nominal) continue;
    most = points;
    form->nominal = *nominal;
    form->stage = stage.name;
    form->axes = window.axes;
  }
  if (most == 0) return std::nullopt;
  DecisionTable threads{"window_threads", {"window_x", "window_y"}, {}};
  for (const WindowThreads& t : WindowBlocks()) threads.rows.push_back({t.x, t.y});
  DecisionTable points{"window_points", {"window_columns", "window_rows"}, {}};
  for (const int64_t columns : {1, 2, 4}) {
    for (const int64_t rows : {1, 2, 4}) points.rows.push_back({columns, rows});
  }
  return Sketch{"windows", {std::move(threads), std::move(points)}, &rule, std::move(form)};
}

}  // namespace hone::schedule
