#pragma once

#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"

#include "client/rewrite_report.h"

namespace hone::client {

/// A line of the report of `hone prune`; kept is dense.
struct PrunedLayer : RewrittenLayer {
  double sparsity = 0;  ///< the share of the source's weights that are zero or gone
};

/// What `hone prune` did.
struct PruneReport : RewriteReport {
  std::string structure;
  double asked = 0;                 ///< the sparsity that was asked for
  double sparsity = 0;              ///< of all layers together
  std::vector<PrunedLayer> layers;  ///< in the model's order
};

std::string ReportText(const PruneReport& report);
nlohmann::ordered_json ReportJson(const PruneReport& report);
/// One HTML page with the front drawn, nothing from outside.
std::string PrunePage(const PruneReport& report);

}  // namespace hone::client
