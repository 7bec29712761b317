#include "schedule/cpu/rewritten_product.h"

#include <fmt/format.h>

#include "base/status.h"

namespace hone::schedule {

absl::StatusOr<RewrittenProduct> RewriteProduct(TraceWriter& w, int stage,
                                                const std::string& algorithm, int new_stages,
                                                int keep) {
  const int first = static_cast<int>(w.workload().stages.size());
  const std::string name = w.name(stage);
  w.Emit(fmt::format("{} = algorithm({}, {})", w.NextStage(), name, algorithm));
  HONE_RETURN_IF_ERROR(w.status());
  RewrittenProduct product;
  for (const Cluster& c : FindClusters(w, keep, -1)) {
    if (c.owner >= first && c.owner < first + new_stages) continue;
    if (c.owner == stage || c.anchor == stage)
      product.main = c;
    else
      product.others.push_back(c);
  }
  HONE_RETURN_IF_ERROR(w.status());
  if (product.main.anchor == stage) return product;
  return absl::InvalidArgumentError(fmt::format("{} has no register tile", name));
}

}  // namespace hone::schedule
