#include "schedule/cuda/products.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "schedule/cuda/parts.h"
#include "schedule/cuda/product_tables.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

/// Columns.
constexpr size_t kThreadsY = 0, kRows = 1, kThreadsX = 2, kVectors = 3, kDepth = 4, kParts = 5,
                 kStages = 6;

BlockTile TileOf(const Values& v) {
  return {v[kThreadsY], v[kRows], v[kThreadsX], v[kVectors], v[kDepth], v[kStages]};
}

Values ValuesOf(const BlockTile& t, int64_t parts) {
  return {t.threads_y, t.rows, t.threads_x, t.vectors, t.depth, parts, t.stages};
}

struct ProductsForm : SketchForm {
  BlockTile nominal;
  std::string stage;  ///< the sum with most to do
  int64_t rows = 1;   ///< of the product with most
  ProductAxes axes;   ///< of that sum
  ir::CudaTarget card;
};

class ProductsRule final : public SketchRule {
 public:
  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    const auto& form = static_cast<const ProductsForm&>(*sketch.form);
    const CudaParts parts = PartsOf(w, 0, v[kParts]);
    for (const Product& product : parts.products) {
      BlockTile tile = TileOf(v);
      tile.depth = SliceDepth(product.axes, tile.depth);
      ScheduleProduct(w, product.stage, product.axes, tile);
    }
    ScheduleRows(w, parts);
    ScheduleOthers(w, parts, form.card);
    return w.status();
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const auto& form = static_cast<const ProductsForm&>(*sketch.form);
    const Instruction* const cut = FindInstruction(trace, "rfactor", form.stage);
    const std::string& stage = cut == nullptr ? form.stage : cut->result;
    return ValuesOf(ReadProduct(trace, stage).value_or(form.nominal), PartialsIn(cut, 1));
  }

  std::string_view Refusal(const Sketch& sketch, const Values& v) const override {
    const auto& form = static_cast<const ProductsForm&>(*sketch.form);
    const BlockTile tile = TileOf(v);
    if (tile.shared_bytes() > form.card.block_shared_bytes)
      return "slices larger than a block's shared memory";
    if (tile.rows * tile.vectors * BlockTile::kLanes > 128) return "too many registers";
    if (!FitsGrid(form.axes, v[kParts], tile)) return "more blocks than a grid has";
    if (tile.WastesRows(form.rows)) return "half of the block has no rows";
    if (form.axes.depth / v[kParts] % tile.depth != 0)
      return "a part of the sum is no whole slices";
    if (form.axes.depth / v[kParts] / tile.depth < tile.stages)
      return "fewer slices than are on their way";
    return {};
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    return ValuesOf(static_cast<const ProductsForm&>(*sketch.form).nominal, 1);
  }
};

}  // namespace

std::optional<Sketch> ProductsSketch(const ir::Workload& workload, const ir::Target& target) {
  static const ProductsRule rule;
  TraceWriter w(workload);
  const Product* main = nullptr;
  double most = 0;
  int64_t rows = 1;
  const CudaParts parts = PartsOf(w);
  for (const Product& product : parts.products) {
    rows = std::max(rows, product.axes.rows);
    const double points = PointsOf(w, product);
    if (points <= most) continue;
    most = points;
    main = &product;
  }
  if (main == nullptr) return std::nullopt;
  const auto& card = target.As<ir::CudaTarget>();
  const auto nominal = NominalBlock(main->axes, card);
  if (!nominal) return std::nullopt;
  auto form = std::make_shared<ProductsForm>();
  form->nominal = *nominal;
  form->stage = w.name(main->stage);
  form->rows = rows;
  form->axes = main->axes;
  form->card = card;
  DecisionTable tiles{"tile", {"threads_y", "rows", "threads_x", "vectors"}, {}};
  for (const BlockTile& t : BlockTiles())
    tiles.rows.push_back({t.threads_y, t.rows, t.threads_x, t.vectors});
  DecisionTable depths{"depth", {"depth"}, {}};
  for (const int64_t depth : {4, 8, 16, 32}) {
    if (main->axes.depth % depth == 0) depths.rows.push_back({depth});
  }
  return Sketch{"products",
                {std::move(tiles), std::move(depths), PartsTable(w, *main), StagesTable()},
                &rule,
                std::move(form)};
}

}  // namespace hone::schedule
