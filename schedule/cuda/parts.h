#pragma once

#include <optional>
#include <vector>

#include "ir/cuda/cuda_target.h"
#include "schedule/cuda/product.h"
#include "schedule/cuda/rows.h"
#include "schedule/cuda/sums.h"
#include "schedule/cuda/tile.h"
#include "schedule/cuda/window_tile.h"

namespace hone::schedule {

/// The launches of a Workload by what they are, once Stages have been inlined and products
/// prepared.
struct CudaParts {
  std::vector<Cluster> rows;      ///< rows.h
  std::vector<Product> products;  ///< product.h
  std::vector<Window> windows;    ///< window_tile.h
  std::vector<int> others;        ///< a thread for each result
  /// sums.h; their Stages of partial results, and the sums of these, which are among the others.
  struct Partial {
    int stage = -1, sum = -1;
    int64_t count = 0;  ///< partial results of a sum
    bool along = true;  ///< LongSum
  };
  std::vector<Partial> partials;
};
/// `partials`: of each long sum; 0: as by default. `cuts`: parts of each product's sum
/// (PartsOfSum).
CudaParts PartsOf(TraceWriter& writer, int64_t partials = 0, int64_t cuts = 1);

/// How many partial results each result of a Stage among the others sums; 0: it sums none.
int64_t PartialsOf(const CudaParts& parts, int stage);

/// What a rule writes where it is about other parts: the nominal schedule of each.
void ScheduleNominal(TraceWriter& writer, const Product& product, const ir::CudaTarget& card);
void ScheduleNominal(TraceWriter& writer, const Window& window, const ir::CudaTarget& card);
void ScheduleProducts(TraceWriter& writer, const CudaParts& parts, const ir::CudaTarget& card);
void ScheduleRows(TraceWriter& writer, const CudaParts& parts);
/// What is neither a product, rows nor a window.
void ScheduleRest(TraceWriter& writer, const CudaParts& parts);
/// The rest and windows.
void ScheduleOthers(TraceWriter& writer, const CudaParts& parts, const ir::CudaTarget& card);

}  // namespace hone::schedule
