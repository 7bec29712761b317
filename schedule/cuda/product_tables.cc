#include "schedule/cuda/product_tables.h"

namespace hone::schedule {

DecisionTable PartsTable(const TraceWriter& writer, const Product& product) {
  // Parts of a product's sum, each a product of its own.
  constexpr int64_t kMostParts = 16;
  DecisionTable table{"parts", {"parts"}, {}};
  // A part is one axis more.
  const bool cuts = writer.stage(product.stage).num_spatial() < ir::kMaxRank;
  for (int64_t count = 1; count <= (cuts ? kMostParts : 1); count *= 2) {
    if (PartsOfSum(product.axes, count) == count) table.rows.push_back({count});
  }
  return table;
}

DecisionTable StagesTable() { return {"stages", {"stages"}, {{1}, {2}, {3}, {4}}}; }

double PointsOf(const TraceWriter& writer, const Product& product) {
  const ir::Stage& stage = writer.stage(product.stage);
  double points = 1;
  for (int a = 0; a < stage.num_axes(); ++a) points *= static_cast<double>(stage.Extent(a));
  return points;
}

ProductAxes AxesOfPart(ProductAxes axes, int64_t parts) {
  axes.depth /= parts;
  axes.batches *= parts;
  return axes;
}

}  // namespace hone::schedule
