#include <algorithm>
#include <cmath>

#include "fmt/format.h"

#include "client/quantise_report.h"
#include "client/report_chart.h"

namespace hone::client {
namespace {

constexpr const char* kStyle =
    "body{font:15px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:right;"
    "border-bottom:1px solid #ddd}td:first-child,th:first-child,td:last-child{text-align:left}"
    ".kept{background:#fff4e0}";

struct Span {
  double low = HUGE_VAL, high = -HUGE_VAL;
  void Take(double x) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
  /// From 0 to 1, with some room at both ends.
  double At(double x) const {
    constexpr double kRoom = 0.08;
    return high > low ? kRoom + (1 - 2 * kRoom) * (x - low) / (high - low) : 0.5;
  }
};

/// Accuracy against measured time; in f32 the accuracy has no bound and stands at the top.
std::string FrontChart(const QuantiseReport& report) {
  constexpr double kWidth = 720, kHeight = 300, kMost = 100;
  Span times, decibels;
  std::vector<const QuantisedPoint*> points;
  for (const QuantisedPoint& point : report.front) {
    if (!point.time) continue;
    points.push_back(&point);
    times.Take(point.time->median_ms);
    decibels.Take(std::min(point.score.Decibels(), kMost));
  }
  if (points.empty()) return "<p>No models were timed.</p>";
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"none\" stroke=\"#999\"/>"
      "<text x=\"{2}\" y=\"{3}\" text-anchor=\"end\" font-size=\"12\">ms a run, measured</text>"
      "<text x=\"8\" y=\"16\" font-size=\"12\">SQNR, dB</text>",
      kWidth, kHeight, kWidth - 8, kHeight - 8);
  std::string line;
  for (const QuantisedPoint* point : points) {
    const double x = kWidth * times.At(point->time->median_ms);
    const double y = kHeight * (1 - decibels.At(std::min(point->score.Decibels(), kMost)));
    line += fmt::format("{:.1f},{:.1f} ", x, y);
    svg += fmt::format(
        "<circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"{2}\" fill=\"{3}\"/>"
        "<text x=\"{0:.1f}\" y=\"{4:.1f}\" font-size=\"11\" text-anchor=\"middle\">{5} kept, "
        "{6:.1f} dB, {7:.3g} ms</text>",
        x, y, point->chosen ? 7 : 4, point->chosen ? "#c33" : "#36c", y - 10, point->kept,
        point->score.Decibels(), point->time->median_ms);
  }
  return svg + fmt::format(
                   "<polyline points=\"{}\" fill=\"none\" stroke=\"#36c\" "
                   "stroke-dasharray=\"4 3\"/></svg>",
                   line);
}

std::string LayerRows(const QuantiseReport& report) {
  std::string rows;
  for (const QuantisedLayer& layer : report.layers) {
    const bool tried = layer.alone_db.has_value();
    rows += fmt::format(
        "<tr{}><td>{}</td><td>{}</td><td>{} × {}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{}</td></tr>",
        layer.why_kept.empty() ? "" : " class=\"kept\"", Escaped(layer.name), Escaped(layer.op),
        layer.columns, layer.terms,
        tried ? fmt::format("{:.4g} … {:.4g}", layer.low, layer.high) : "",
        tried ? fmt::format("{:.1f}", *layer.alone_db) : "",
        tried ? fmt::format("{:.1f} %", 100 * layer.share) : "",
        layer.cost_ms ? fmt::format("{:+.3f}", *layer.cost_ms) : "", Escaped(layer.why_kept));
  }
  return rows;
}

}  // namespace

std::string QuantisePage(const QuantiseReport& report) {
  return fmt::format(
      "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0} as {1}</title>"
      "<style>{2}</style></head><body><h1>{0} as {1}</h1>"
      "<p>{3:.1f} dB against f32 as compiled from the file{4}; {5:.2f} MB of {6:.2f} MB; {7} {8} "
      "runs{9}.</p><h2>Accuracy against measured time</h2>{10}"
      "<h2>Layers</h2><table><tr><th>layer</th><th>operator</th><th>columns × terms</th>"
      "<th>range of data</th><th>dB alone</th><th>share of noise</th><th>ms in f32</th>"
      "<th>in f32 because</th></tr>{11}</table><p>{12}</p></body></html>\n",
      Escaped(report.model), Escaped(report.scheme), kStyle, report.written.Decibels(),
      report.written.top1
          ? fmt::format(", top-1 {:.2f} % (in f32 {:.2f} %)", 100 * *report.written.top1,
                        100 * report.top1_in_f32.value_or(0))
          : "",
      static_cast<double>(report.output_bytes) / 1e6, static_cast<double>(report.model_bytes) / 1e6,
      report.runs, report.drawn ? "drawn" : "calibration",
      report.method.empty() ? "" : ", ranges by " + report.method, FrontChart(report),
      LayerRows(report), Escaped(report.logged));
}

}  // namespace hone::client
