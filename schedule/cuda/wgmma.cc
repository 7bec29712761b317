#include "schedule/cuda/wgmma.h"

#include <memory>
#include <string>
#include <utility>

#include "schedule/cuda/group_tile.h"
#include "schedule/cuda/parts.h"
#include "schedule/cuda/product_tables.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

/// Columns.
constexpr size_t kGroups = 0, kRows = 1, kColumns = 2, kParts = 3, kStages = 4, kBoxes = 5;
/// Sums that a lane keeps in registers.
constexpr int64_t kMostSums = 128;

GroupTile TileOf(const Values& v) {
  return {v[kGroups], v[kRows], v[kColumns], v[kStages], v[kBoxes] != 0};
}

Values ValuesOf(const GroupTile& t, int64_t parts) {
  return {t.groups, t.rows, t.columns, parts, t.stages, t.boxes ? 1 : 0};
}

struct WgmmaForm : SketchForm {
  GroupTile nominal;
  std::string stage;   ///< the sum with most to do of those that suit
  ProductAxes axes;    ///< of that sum
  bool boxes = false;  ///< ComeAsBoxes
  ir::CudaTarget card;
};

class WgmmaRule final : public SketchRule {
 public:
  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    const auto& form = static_cast<const WgmmaForm&>(*sketch.form);
    const CudaParts parts = PartsOf(w, 0, v[kParts]);
    for (const Product& product : parts.products) {
      GroupTile tile = TileOf(v);
      tile.boxes = tile.boxes && ComeAsBoxes(w.workload(), w.stage(product.stage), product.axes);
      if (SuitsGroups(product.axes, form.card) && tile.Misfit(product.axes).empty())
        ScheduleGroupTile(w, product.stage, product.axes, tile);
      else
        ScheduleNominal(w, product, form.card);
    }
    ScheduleRows(w, parts);
    ScheduleOthers(w, parts, form.card);
    return w.status();
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const auto& form = static_cast<const WgmmaForm&>(*sketch.form);
    const Instruction* const cut = FindInstruction(trace, "rfactor", form.stage);
    const std::string& stage = cut == nullptr ? form.stage : cut->result;
    return ValuesOf(ReadGroupTile(trace, stage).value_or(form.nominal), PartialsIn(cut, 1));
  }

  std::string_view Refusal(const Sketch& sketch, const Values& v) const override {
    const auto& form = static_cast<const WgmmaForm&>(*sketch.form);
    const GroupTile tile = TileOf(v);
    if (tile.shared_bytes() > form.card.block_shared_bytes)
      return "slices larger than a block's shared memory";
    if (tile.sums() > kMostSums) return "too many registers";
    if (tile.boxes && !form.boxes) return "its slices are no boxes of tensors";
    if (form.axes.depth % v[kParts] != 0) return "a part of the sum is no whole slices";
    return tile.Misfit(AxesOfPart(form.axes, v[kParts]));
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    return ValuesOf(static_cast<const WgmmaForm&>(*sketch.form).nominal, 1);
  }
};

}  // namespace

bool IsDefaultWgmma(const Sketch& sketch) {
  constexpr int64_t kLeastStages = 4, kLeastResults = 64 * 64;
  const auto& form = static_cast<const WgmmaForm&>(*sketch.form);
  return form.nominal.boxes && form.nominal.stages >= kLeastStages &&
         form.nominal.block_rows() * form.nominal.columns >= kLeastResults &&
         4 * BlocksOf(form.axes, form.nominal) >= 3 * form.card.multiprocessors;
}

std::optional<Sketch> WgmmaSketch(const ir::Workload& workload, const ir::Target& target) {
  static const WgmmaRule rule;
  TraceWriter w(workload);
  const CudaParts parts = PartsOf(w);
  if (parts.products.empty()) return std::nullopt;
  auto form = std::make_shared<WgmmaForm>();
  form->card = target.As<ir::CudaTarget>();
  const Product* main = nullptr;
  double most = 0;
  for (const Product& product : parts.products) {
    const auto nominal = NominalGroupTile(product.axes, form->card);
    const double points = PointsOf(w, product);
    if (!nominal || points <= most) continue;
    most = points;
    main = &product;
    form->boxes = ComeAsBoxes(w.workload(), w.stage(product.stage), product.axes);
    form->nominal = *nominal;
    form->nominal.boxes = form->boxes && nominal->stages > 1;
    form->stage = w.name(product.stage);
    form->axes = product.axes;
  }
  if (main == nullptr) return std::nullopt;
  DecisionTable tiles{"group_tile", {"groups", "group_rows", "group_columns"}, {}};
  for (const GroupTile& t : GroupTiles()) tiles.rows.push_back({t.groups, t.rows, t.columns});
  DecisionTable stages{"stages", {"stages"}, {}};
  for (int64_t count = 1; count <= 8; ++count) stages.rows.push_back({count});
  return Sketch{
      "wgmma",
      {std::move(tiles), PartsTable(w, *main), std::move(stages), {"boxes", {"boxes"}, {{0}, {1}}}},
      &rule,
      std::move(form)};
}

}  // namespace hone::schedule
