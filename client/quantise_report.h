#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"

#include "client/quantise_score.h"
#include "client/quantise_timing.h"

namespace hone::client {

/// A line of the report of `hone quantize`.
struct QuantisedLayer {
  std::string name, op;
  int64_t columns = 0, terms = 0;
  double low = 0, high = 0;        ///< of the data that it reads, smoothed
  std::optional<double> alone_db;  ///< SQNR of the model with it alone narrowed; none: it cannot be
  double share = 0;                ///< of the noise of all layers
  bool smoothed = false;
  std::string why_kept;  ///< in f32; empty: it is narrowed
  /// What a layer kept for a target costs by the log; none: it does not know.
  std::optional<double> cost_ms;
};

/// A point of the front: so many layers kept, most noise first.
struct QuantisedPoint {
  size_t kept = 0;
  QuantiseScore score;
  std::optional<WholeTime> time;
  bool chosen = false;
};

/// What `hone quantize` did.
struct QuantiseReport {
  std::string model, output, scheme, method;
  int64_t model_bytes = 0, output_bytes = 0;
  int64_t runs = 0;
  bool drawn = false, corrects_bias = false, equalises = false;
  QuantiseScore predicted, written;  ///< by the probe; as compiled from the file
  std::optional<double> top1_in_f32;
  std::vector<QuantisedLayer> layers;  ///< in the model's order
  std::vector<QuantisedPoint> front;   ///< by layers kept
  std::string logged;                  ///< what the log says of the times, or why nothing
};

std::string ReportText(const QuantiseReport& report);
nlohmann::ordered_json ReportJson(const QuantiseReport& report);
/// One HTML page with the front drawn, nothing from outside.
std::string QuantisePage(const QuantiseReport& report);

}  // namespace hone::client
