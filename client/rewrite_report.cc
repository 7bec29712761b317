#include "client/rewrite_report.h"

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "client/text_table.h"

namespace hone::client {
namespace {

using nlohmann::ordered_json;

constexpr double kHundred = 100, kMega = 1e6;

ordered_json OrNull(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json ScoreJson(const ModelScore& score) {
  return {{"sqnr_db", score.Decibels()}, {"noise", score.noise}, {"top1", OrNull(score.top1)}};
}

ordered_json PointJson(const RewrittenPoint& point) {
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

std::string ScoreText(const ModelScore& score) {
  std::string text = fmt::format("{:.1f} dB", score.Decibels());
  if (score.top1) text += fmt::format(", top-1 {:.2f} %", kHundred * *score.top1);
  return text;
}

std::string KeptText(const RewrittenLayer& layer) {
  if (layer.why_kept.empty()) return "";
  if (!layer.cost_ms) return layer.why_kept;
  return fmt::format("{}; costs {:+.3f} ms", layer.why_kept, *layer.cost_ms);
}

std::string FrontText(const RewriteReport& report, const std::string& kept_heading) {
  if (report.front.empty()) return "";
  TextTable table({kept_heading, "SQNR", "TOP-1", "TIME", "SPEED", ""});
  for (const RewrittenPoint& point : report.front) {
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

std::string RunsText(const RewriteReport& report) {
  return fmt::format("{} {} {}", report.runs, report.drawn ? "drawn" : "calibration",
                     report.runs == 1 ? "run" : "runs");
}

std::string ClosingText(const RewriteReport& report) {
  return fmt::format(
      "predicted {}; as compiled from the file {}{}\nwrote {}: {:.2f} MB of {:.2f} MB {}\n",
      ScoreText(report.predicted), ScoreText(report.written),
      report.top1_in_f32
          ? fmt::format(" ({} {:.2f} %)", report.source_is, kHundred * *report.top1_in_f32)
          : "",
      report.output, static_cast<double>(report.output_bytes) / kMega,
      static_cast<double>(report.model_bytes) / kMega, report.source_is);
}

ordered_json LayerJson(const RewrittenLayer& layer) {
  return {{"name", layer.name},
          {"op", layer.op},
          {"columns", layer.columns},
          {"terms", layer.terms},
          {"alone_db", OrNull(layer.alone_db)},
          {"share", layer.share},
          {"kept", !layer.why_kept.empty()},
          {"why", layer.why_kept.empty() ? ordered_json(nullptr) : ordered_json(layer.why_kept)},
          {"cost_ms", OrNull(layer.cost_ms)}};
}

ordered_json FilesJson(const RewriteReport& report) {
  return {{"model", report.model},
          {"output", report.output},
          {"model_bytes", report.model_bytes},
          {"output_bytes", report.output_bytes},
          {"runs", report.runs},
          {"drawn", report.drawn},
          {"bias_corrected", report.corrects_bias}};
}

ordered_json ScoresJson(const RewriteReport& report) {
  return {{"predicted", ScoreJson(report.predicted)},
          {"written", ScoreJson(report.written)},
          {"top1_in_f32", OrNull(report.top1_in_f32)}};
}

ordered_json FrontJson(const RewriteReport& report) {
  auto front = ordered_json::array();
  for (const RewrittenPoint& point : report.front) front.push_back(PointJson(point));
  return {{"front", std::move(front)}, {"log", report.logged}};
}

}  // namespace hone::client
