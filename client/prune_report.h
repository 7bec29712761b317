#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"

#include "client/rewrite_report.h"

namespace hone::client {

/// A line of the report of `hone prune`; kept is dense.
struct PrunedLayer : RewrittenLayer {
  double sparsity = 0;  ///< the share of the source's weights that are zero or gone
  bool updated = false;
  std::string why_not_updated;  ///< empty: nobody asked
};

/// A line for each head of an attention.
struct PrunedHead {
  std::string layer;    ///< that reads it
  int64_t head = 0;     ///< from 0
  double saliency = 0;  ///< the share of all heads of the layer
  bool gone = false;
};

/// What `hone prune` did.
struct PruneReport : RewriteReport {
  std::string structure;
  double asked = 0;                 ///< the sparsity that was asked for
  double sparsity = 0;              ///< of all layers together
  std::vector<PrunedLayer> layers;  ///< in the model's order
  /// Without and with what was updated, where anything was tried.
  std::optional<ModelScore> before_update, after_update;
  std::vector<PrunedHead> heads;  ///< of --structure head, in their order
};

std::string ReportText(const PruneReport& report);
nlohmann::ordered_json ReportJson(const PruneReport& report);
/// One HTML page with the front drawn, nothing from outside.
std::string PrunePage(const PruneReport& report);

}  // namespace hone::client
