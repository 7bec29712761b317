#include "schedule/cuda/products.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "schedule/cuda/grid.h"
#include "schedule/cuda/tile.h"
#include "schedule/nest_builder.h"
#include "schedule/structure.h"

namespace hone::schedule {

namespace {

/// Columns.
constexpr size_t kThreadsY = 0, kRows = 1, kThreadsX = 2, kVectors = 3, kDepth = 4;
constexpr int64_t kMostSharedBytes = 48 << 10;

BlockTile TileOf(const Values& v) {
  return {v[kThreadsY], v[kRows], v[kThreadsX], v[kVectors], v[kDepth]};
}

Values ValuesOf(const BlockTile& t) {
  return {t.threads_y, t.rows, t.threads_x, t.vectors, t.depth};
}

struct ProductsForm : SketchForm {
  BlockTile nominal;
  int64_t rows = 1;  ///< of the product with most
};

class ProductsRule final : public SketchRule {
 public:
  absl::Status Emit(const Sketch&, const Values& v, TraceWriter& w) const override {
    FindClusters(w, -1, -1);  // inlines
    for (const int id : LiveStages(w.schedule())) {
      const auto axes = FindProduct(w.workload(), w.stage(id));
      // The slices of all must come out even: some may be of another depth.
      if (axes && axes->depth % v[kDepth] == 0)
        ScheduleProduct(w, id, *axes, TileOf(v));
      else
        ScheduleOnGrid(w, id, kGridThreads, kGridElements);
    }
    return w.status();
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const auto& form = static_cast<const ProductsForm&>(*sketch.form);
    for (const Instruction& i : trace.instructions) {
      if (i.primitive != "cache_read" || i.positional.empty()) continue;
      if (auto tile = ReadProduct(trace, i.positional[0])) return ValuesOf(*tile);
    }
    return ValuesOf(form.nominal);
  }

  std::string_view Refusal(const Sketch& sketch, const Values& v) const override {
    const auto& form = static_cast<const ProductsForm&>(*sketch.form);
    const BlockTile tile = TileOf(v);
    if (tile.shared_bytes() > kMostSharedBytes) return "slices larger than a block's shared memory";
    if (tile.rows * tile.vectors * BlockTile::kLanes > 128) return "too many registers";
    if (tile.WastesRows(form.rows)) return "half of the block has no rows";
    return {};
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    return ValuesOf(static_cast<const ProductsForm&>(*sketch.form).nominal);
  }
};

}  // namespace

std::optional<Sketch> ProductsSketch(const ir::Workload& workload, const ir::Target& target) {
  static const ProductsRule rule;
  TraceWriter w(workload);
  FindClusters(w, -1, -1);
  std::optional<ProductAxes> main;
  double most = 0;
  int64_t rows = 1;
  for (const int id : LiveStages(w.schedule())) {
    const auto axes = FindProduct(w.workload(), w.stage(id));
    if (!axes) continue;
    rows = std::max(rows, axes->rows);
    double points = 1;
    for (int a = 0; a < w.stage(id).num_axes(); ++a)
      points *= static_cast<double>(w.stage(id).Extent(a));
    if (points <= most) continue;
    most = points;
    main = axes;
  }
  if (!main) return std::nullopt;
  const auto nominal = NominalBlock(*main, target.As<ir::CudaTarget>());
  if (!nominal) return std::nullopt;
  auto form = std::make_shared<ProductsForm>();
  form->nominal = *nominal;
  form->rows = rows;
  DecisionTable tiles{"tile", {"threads_y", "rows", "threads_x", "vectors"}, {}};
  for (const BlockTile& t : BlockTiles())
    tiles.rows.push_back({t.threads_y, t.rows, t.threads_x, t.vectors});
  DecisionTable depths{"depth", {"depth"}, {}};
  for (const int64_t depth : {4, 8, 16, 32}) {
    if (main->depth % depth == 0) depths.rows.push_back({depth});
  }
  return Sketch{"products", {std::move(tiles), std::move(depths)}, &rule, std::move(form)};
}

}  // namespace hone::schedule
