#pragma once

#include "schedule/cuda/product.h"
#include "schedule/sketch.h"

// Decisions that tiles of threads and tiles of tensor cores share.
namespace hone::schedule {

/// "parts": into how many parts a product's sum may be cut, 1 first. `writer`: its Workload.
DecisionTable PartsTable(const TraceWriter& writer, const Product& product);
/// "stages": how many slices may be on their way at once.
DecisionTable StagesTable();
/// The axes of one of so many parts of a sum.
ProductAxes AxesOfPart(ProductAxes axes, int64_t parts);
/// How many points the product's sum has, its terms included.
double PointsOf(const TraceWriter& writer, const Product& product);

}  // namespace hone::schedule
