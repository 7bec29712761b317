#include "client/quantise_report.h"

#include <algorithm>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "client/text_table.h"

namespace hone::client {
namespace {

using nlohmann::ordered_json;

constexpr double kHundred = 100, kMega = 1e6;

std::string ScoreText(const QuantiseScore& score) {
  std::string text = fmt::format("{:.1f} dB", score.Decibels());
  if (score.top1) text += fmt::format(", top-1 {:.2f} %", kHundred * *score.top1);
  return text;
}

std::string CostText(const QuantisedLayer& layer) {
  if (layer.why_kept.empty()) return "";
  if (!layer.cost_ms) return layer.why_kept;
  return fmt::format("{}; costs {:+.3f} ms", layer.why_kept, *layer.cost_ms);
}

std::string LayersText(const QuantiseReport& report) {
  TextTable table({"LAYER", "OP", "SUM", "RANGE", "ALONE", "SHARE", "IN F32 BECAUSE"});
  for (const QuantisedLayer& layer : report.layers) {
    table.Add({layer.name, layer.op, fmt::format("{}x{}", layer.columns, layer.terms),
               layer.alone_db ? fmt::format("{:.4g} .. {:.4g}{}", layer.low, layer.high,
                                            layer.smoothed ? " smoothed" : "")
                              : "-",
               layer.alone_db ? fmt::format("{:.1f} dB", *layer.alone_db) : "-",
               layer.alone_db ? fmt::format("{:.1f} %", kHundred * layer.share) : "-",
               CostText(layer)});
  }
  return table.Text();
}

std::string FrontText(const QuantiseReport& report) {
  if (report.front.empty()) return "";
  TextTable table({"LAYERS IN F32", "SQNR", "TOP-1", "TIME", "SPEED", ""});
  for (const QuantisedPoint& point : report.front) {
    const std::optional<WholeTime>& time = point.time;
    table.Add({fmt::format("{}", point.kept), fmt::format("{:.1f} dB", point.score.Decibels()),
               point.score.top1 ? fmt::format("{:.2f} %", kHundred * *point.score.top1) : "-",
               time ? fmt::format("{:.3f} ms", time->median_ms) : "-",
               time ? fmt::format("{:.2f} x [{:.2f}, {:.2f}]", time->ratio, time->ratio_low,
                                  time->ratio_high)
                    : "-",
               point.chosen ? "written" : ""});
  }
  return '\n' + table.Text();
}

ordered_json OrNull(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json ScoreJson(const QuantiseScore& score) {
  return {{"sqnr_db", score.Decibels()}, {"noise", score.noise}, {"top1", OrNull(score.top1)}};
}

ordered_json LayerJson(const QuantisedLayer& layer) {
  return {{"name", layer.name},
          {"op", layer.op},
          {"columns", layer.columns},
          {"terms", layer.terms},
          {"low", layer.low},
          {"high", layer.high},
          {"smoothed", layer.smoothed},
          {"alone_db", OrNull(layer.alone_db)},
          {"share", layer.share},
          {"kept", !layer.why_kept.empty()},
          {"why", layer.why_kept.empty() ? ordered_json(nullptr) : ordered_json(layer.why_kept)},
          {"cost_ms", OrNull(layer.cost_ms)}};
}

ordered_json PointJson(const QuantisedPoint& point) {
  ordered_json object = {{"kept", point.kept}, {"chosen", point.chosen}};
  object.update(ScoreJson(point.score));
  object["time"] = nullptr;
  if (point.time) {
    object["time"] = {{"median_ms", point.time->median_ms},
                      {"ratio", point.time->ratio},
                      {"ratio_low", point.time->ratio_low},
                      {"ratio_high", point.time->ratio_high}};
  }
  return object;
}

}  // namespace

std::string ReportText(const QuantiseReport& report) {
  const auto kept = std::ranges::count_if(
      report.layers, [](const QuantisedLayer& layer) { return !layer.why_kept.empty(); });
  std::string text = LayersText(report) + FrontText(report) + '\n';
  if (!report.logged.empty()) text += report.logged + '\n';
  text += fmt::format("{} of {} layers are {}, {} stay in f32; ranges from {} {} runs{}{}{}\n",
                      static_cast<int64_t>(report.layers.size()) - kept, report.layers.size(),
                      report.scheme, kept, report.runs, report.drawn ? "drawn" : "calibration",
                      report.method.empty() ? "" : fmt::format(" by {}", report.method),
                      report.corrects_bias ? ", bias corrected" : "",
                      report.equalises ? ", channels equalised" : "");
  text += fmt::format(
      "predicted {}; as compiled from the file {}{}\n", ScoreText(report.predicted),
      ScoreText(report.written),
      report.top1_in_f32 ? fmt::format(" (in f32 {:.2f} %)", kHundred * *report.top1_in_f32) : "");
  text += fmt::format("wrote {}: {:.2f} MB of {:.2f} MB in f32\n", report.output,
                      static_cast<double>(report.output_bytes) / kMega,
                      static_cast<double>(report.model_bytes) / kMega);
  return text;
}

ordered_json ReportJson(const QuantiseReport& report) {
  auto layers = ordered_json::array();
  for (const QuantisedLayer& layer : report.layers) layers.push_back(LayerJson(layer));
  auto front = ordered_json::array();
  for (const QuantisedPoint& point : report.front) front.push_back(PointJson(point));
  return {{"model", report.model},
          {"output", report.output},
          {"scheme", report.scheme},
          {"method", report.method.empty() ? ordered_json(nullptr) : ordered_json(report.method)},
          {"model_bytes", report.model_bytes},
          {"output_bytes", report.output_bytes},
          {"runs", report.runs},
          {"drawn", report.drawn},
          {"bias_corrected", report.corrects_bias},
          {"equalised", report.equalises},
          {"predicted", ScoreJson(report.predicted)},
          {"written", ScoreJson(report.written)},
          {"top1_in_f32", OrNull(report.top1_in_f32)},
          {"layers", std::move(layers)},
          {"front", std::move(front)},
          {"log", report.logged}};
}

}  // namespace hone::client
