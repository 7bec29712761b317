#include "client/rewrite_page.h"

#include <cmath>
#include <string>
#include <vector>

#include "fmt/format.h"

#include "client/page_style.h"
#include "client/report_chart.h"

namespace hone::client {
namespace {

std::string Decibels(const ModelScore& score) {
  return std::isfinite(score.Decibels()) ? fmt::format("{:.1f} dB", score.Decibels()) : "exact";
}

std::string Card(const std::string& value, const std::string& meaning) {
  return fmt::format("<div class=\"card\"><b>{}</b><span>{}</span></div>", value, Escaped(meaning));
}

std::string Cards(const RewriteReport& report, const RewritePage& page) {
  size_t kept = 0;
  for (const RewrittenLayer* layer : page.layers) kept += layer->why_kept.empty() ? 0 : 1;
  const size_t layers = page.layers.size();
  std::string text = "<div class=\"cards\">";
  text += Card(Decibels(report.written), "against f32, as compiled from the file");
  text += Card(Decibels(report.predicted), "predicted");
  if (report.written.top1) {
    text += Card(fmt::format("{:.2f} %", 100 * *report.written.top1),
                 fmt::format("right answers; {:.2f} % {}", 100 * report.top1_in_f32.value_or(0),
                             report.source_is));
  }
  text += Card(fmt::format("{:.2f} MB", static_cast<double>(report.output_bytes) / 1e6),
               fmt::format("of {:.2f} MB {}", static_cast<double>(report.model_bytes) / 1e6,
                           report.source_is));
  text += Card(fmt::format("{} of {}", layers - kept, layers), page.changed);
  return text + "</div>";
}

/// The models of the front, drawn and as a table.
std::string Front(const RewriteReport& report, const std::string& kept_mark) {
  std::vector<PlottedModel> points;
  std::string rows;
  for (const RewrittenPoint& point : report.front) {
    if (!point.time) continue;
    const std::string kept = fmt::format("{} {}", point.kept, kept_mark);
    points.push_back({.ms = point.time->median_ms,
                      .decibels = point.score.Decibels(),
                      .label = kept,
                      .chosen = point.chosen});
    rows +=
        fmt::format("<tr{}><td>{}{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                    point.chosen ? " class=\"kept\"" : "", kept, point.chosen ? " (written)" : "",
                    Decibels(point.score), TimeText(1000 * point.time->median_ms));
  }
  std::string text = "<div class=\"panel\">" + FrontCurve(points) + "</div>";
  if (points.empty()) return text;
  return text +
         "<div class=\"panel\" style=\"margin-top:12px\"><table><thead><tr><th>layers</th>"
         "<th class=\"n\">against f32</th><th class=\"n\">time of a run</th></tr></thead><tbody>" +
         rows +
         "</tbody></table></div><p class=\"quiet\">Times are medians; the models ran in turns. The "
         "ring marks the model that was written.</p>";
}

std::string LayerRows(const RewritePage& page) {
  std::string rows;
  for (size_t i = 0; i < page.layers.size(); ++i) {
    const RewrittenLayer& layer = *page.layers[i];
    const bool tried = layer.alone_db.has_value(), kept = !layer.why_kept.empty();
    rows += fmt::format(
        "<tr{}><td class=\"name\">{}<small>{}{}{}</small></td><td class=\"n wide\">{} × {}</td>"
        "<td class=\"n wide\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
        "<td class=\"n extra\">{}</td></tr>\n",
        kept ? " class=\"kept\"" : "", Escaped(layer.name), Escaped(layer.op),
        kept ? fmt::format(", {}: ", page.kept_mark) : "", Escaped(layer.why_kept), layer.columns,
        layer.terms, Escaped(page.details[i]),
        tried ? fmt::format("{:.1f} dB", *layer.alone_db) : "–",
        tried ? fmt::format("{:.1f} %", 100 * layer.share) : "–",
        layer.cost_ms ? fmt::format("{:+.3f} ms", *layer.cost_ms) : "–");
  }
  return rows;
}

}  // namespace

std::string PageText(const RewriteReport& report, const RewritePage& page) {
  const std::string mark = Escaped(page.kept_mark);
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"><title>{0}</title><style>{1}</style>"
      "</head><body><main>\n<h1>{0}</h1><div class=\"quiet\">written by {2}</div>\n",
      Escaped(page.title), kPageStyle, Escaped(page.written_by));
  text += Cards(report, page);
  text += "\n<h2>Accuracy against measured time</h2>" + Front(report, page.kept_mark);
  text += fmt::format(
      "\n<h2>Layers</h2><div class=\"panel\"><table><thead><tr><th>layer</th>"
      "<th class=\"n wide\">columns × terms</th><th class=\"n wide\">{}</th>"
      "<th class=\"n\">alone</th><th class=\"n\">share of noise</th>"
      "<th class=\"n extra\">cost {}</th></tr></thead><tbody>\n{}"
      "</tbody></table></div><p class=\"quiet\">Alone: how near to f32 the model is with this "
      "layer "
      "alone changed; 20 dB more is a tenth of the error. Coloured layers stay {}.",
      Escaped(page.detail_heading), mark, LayerRows(page), mark);
  if (!report.logged.empty()) text += fmt::format(" Cost {}: {}.", mark, Escaped(report.logged));
  return text + "</p>\n</main></body></html>\n";
}

}  // namespace hone::client
