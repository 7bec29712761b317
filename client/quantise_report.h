#pragma once

#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"

#include "client/rewrite_report.h"

namespace hone::client {

/// A line of the report of `hone quantize`; kept is in f32.
struct QuantisedLayer : RewrittenLayer {
  double low = 0, high = 0;  ///< of the data that it reads, smoothed
  bool smoothed = false;
};

/// What `hone quantize` did.
struct QuantiseReport : RewriteReport {
  std::string scheme, method;
  bool equalises = false;
  std::vector<QuantisedLayer> layers;  ///< in the model's order
};

std::string ReportText(const QuantiseReport& report);
nlohmann::ordered_json ReportJson(const QuantiseReport& report);
/// One HTML page with the front drawn, nothing from outside.
std::string QuantisePage(const QuantiseReport& report);

}  // namespace hone::client
