#include "schedule/cuda/mma.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "schedule/cuda/parts.h"
#include "schedule/cuda/product_tables.h"
#include "schedule/cuda/warp_tile.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

/// Columns.
constexpr size_t kWarpsY = 0, kRows = 1, kWarpsX = 2, kColumns = 3, kDepth = 4, kParts = 5,
                 kStages = 6, kThrough = 7;
/// Sums that a lane keeps in registers.
constexpr int64_t kMostSums = 128;

WarpTile TileOf(const Values& v, const ProductAxes& axes) {
  return {v[kWarpsY], v[kRows],   v[kWarpsX],        v[kColumns],
          v[kDepth],  v[kStages], axes.number_bytes, v[kThrough] != 0};
}

Values ValuesOf(const WarpTile& t, int64_t parts) {
  return {t.warps_y, t.rows, t.warps_x, t.columns, t.depth, parts, t.stages, t.through ? 1 : 0};
}

struct MmaForm : SketchForm {
  WarpTile nominal;
  std::string stage;  ///< the sum with most to do of those that suit
  ProductAxes axes;   ///< of that sum
  ir::CudaTarget card;
};

class MmaRule final : public SketchRule {
 public:
  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    const auto& form = static_cast<const MmaForm&>(*sketch.form);
    const CudaParts parts = PartsOf(w, 0, v[kParts]);
    for (const Product& product : parts.products) {
      WarpTile tile = TileOf(v, product.axes);
      tile.depth = WarpSliceDepth(product.axes, tile.depth);
      if (SuitsTensorCores(product.axes) && tile.Misfit(product.axes).empty())
        ScheduleWarpTile(w, product.stage, product.axes, tile);
      else
        ScheduleNominal(w, product, form.card);
    }
    ScheduleRows(w, parts);
    ScheduleOthers(w, parts, form.card);
    return w.status();
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const auto& form = static_cast<const MmaForm&>(*sketch.form);
    const Instruction* const cut = FindInstruction(trace, "rfactor", form.stage);
    const std::string& stage = cut == nullptr ? form.stage : cut->result;
    return ValuesOf(ReadWarpTile(trace, stage).value_or(form.nominal), PartialsIn(cut, 1));
  }

  std::string_view Refusal(const Sketch& sketch, const Values& v) const override {
    const auto& form = static_cast<const MmaForm&>(*sketch.form);
    const WarpTile tile = TileOf(v, form.axes);
    if (tile.shared_bytes() > form.card.block_shared_bytes)
      return "slices larger than a block's shared memory";
    if (tile.rows * tile.columns * 4 > kMostSums) return "too many registers";
    if (form.axes.depth % v[kParts] != 0) return "a part of the sum is no whole slices";
    const ProductAxes axes = AxesOfPart(form.axes, v[kParts]);
    if (const std::string_view why = tile.Misfit(axes); !why.empty()) return why;
    if (axes.depth / tile.depth < tile.stages) return "fewer slices than are on their way";
    return {};
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    return ValuesOf(static_cast<const MmaForm&>(*sketch.form).nominal, 1);
  }
};

}  // namespace

std::optional<Sketch> MmaSketch(const ir::Workload& workload, const ir::Target& target) {
  static const MmaRule rule;
  TraceWriter w(workload);
  const CudaParts parts = PartsOf(w);
  auto form = std::make_shared<MmaForm>();
  const Product* main = nullptr;
  double most = 0;
  for (const Product& product : parts.products) {
    if (!SuitsTensorCores(product.axes)) continue;
    form->card = target.As<ir::CudaTarget>();
    const auto nominal = NominalWarpTile(product.axes, form->card);
    if (!nominal) continue;
    const double points = PointsOf(w, product);
    if (points <= most) continue;
    most = points;
    main = &product;
    form->nominal = *nominal;
    form->stage = w.name(product.stage);
    form->axes = product.axes;
  }
  if (main == nullptr) return std::nullopt;
  DecisionTable tiles{"warp_tile", {"warps_y", "warp_rows", "warps_x", "warp_columns"}, {}};
  for (const WarpTile& t : WarpTiles())
    tiles.rows.push_back({t.warps_y, t.rows, t.warps_x, t.columns});
  DecisionTable depths{"warp_depth", {"warp_depth"}, {}};
  // So many bytes of a row.
  for (const int64_t bytes : {32, 64, 128}) {
    const int64_t depth = bytes / form->axes.number_bytes;
    if (form->axes.depth % depth == 0) depths.rows.push_back({depth});
  }
  return Sketch{"mma",
                {std::move(tiles),
                 std::move(depths),
                 PartsTable(w, *main),
                 StagesTable(),
                 {"through", {"warp_through"}, {{0}, {1}}}},
                &rule,
                std::move(form)};
}

}  // namespace hone::schedule
