#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"

#include "client/model_score.h"
#include "client/written_model.h"

namespace hone::client {

/// What a report says of a layer, whatever was done to it.
struct RewrittenLayer {
  std::string name, op;
  int64_t columns = 0, terms = 0;
  std::optional<double> alone_db;  ///< SQNR of the model with it alone changed; none: it cannot be
  double share = 0;                ///< of the noise of all layers
  std::string why_kept;            ///< as it was; empty: it is changed
  /// What a layer kept for a target costs by the log; none: it does not know.
  std::optional<double> cost_ms;
};

/// A point of the front: so many layers kept, most noise first.
struct RewrittenPoint {
  size_t kept = 0;
  ModelScore score;
  std::optional<WholeTime> time;
  bool chosen = false;
};

/// What a command that changes layers did.
struct RewriteReport {
  std::string model, output;
  std::string source_is = "in f32";  ///< as what the model was given
  int64_t model_bytes = 0, output_bytes = 0;
  int64_t runs = 0;
  bool drawn = false, corrects_bias = false;
  ModelScore predicted, written;  ///< by the probe; as compiled from the file
  std::optional<double> top1_in_f32;
  std::vector<RewrittenPoint> front;  ///< by layers kept
  std::string logged;                 ///< what the log says of the times, or why nothing
};

std::string ScoreText(const ModelScore& score);
/// Why a layer was kept and what that costs; empty: it is changed.
std::string KeptText(const RewrittenLayer& layer);
/// The table of the front below the heading of its first column; empty without one.
std::string FrontText(const RewriteReport& report, const std::string& kept_heading);
/// "1 calibration run", or "8 drawn runs".
std::string RunsText(const RewriteReport& report);
/// How near the written model is, and how large.
std::string ClosingText(const RewriteReport& report);

/// The keys of a layer of each report.
nlohmann::ordered_json LayerJson(const RewrittenLayer& layer);
/// The keys of each report before those of its own, and after them.
nlohmann::ordered_json FilesJson(const RewriteReport& report);
nlohmann::ordered_json ScoresJson(const RewriteReport& report);
nlohmann::ordered_json FrontJson(const RewriteReport& report);

}  // namespace hone::client
