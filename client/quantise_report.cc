#include "client/quantise_report.h"

#include <algorithm>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "client/text_table.h"

namespace hone::client {
namespace {

using nlohmann::ordered_json;

constexpr double kHundred = 100;

std::string LayersText(const QuantiseReport& report) {
  TextTable table({"LAYER", "OP", "SUM", "RANGE", "ALONE", "SHARE", "IN F32 BECAUSE"});
  for (const QuantisedLayer& layer : report.layers) {
    table.Add({layer.name, layer.op, fmt::format("{}x{}", layer.columns, layer.terms),
               layer.alone_db ? fmt::format("{:.4g} .. {:.4g}{}", layer.low, layer.high,
                                            layer.smoothed ? " smoothed" : "")
                              : "-",
               layer.alone_db ? fmt::format("{:.1f} dB", *layer.alone_db) : "-",
               layer.alone_db ? fmt::format("{:.1f} %", kHundred * layer.share) : "-",
               KeptText(layer)});
  }
  return table.Text();
}

}  // namespace

std::string ReportText(const QuantiseReport& report) {
  const auto kept = std::ranges::count_if(
      report.layers, [](const QuantisedLayer& layer) { return !layer.why_kept.empty(); });
  std::string text = LayersText(report) + FrontText(report, "LAYERS IN F32") + '\n';
  if (!report.logged.empty()) text += report.logged + '\n';
  text += fmt::format("{} of {} layers are {}, {} stay in f32; ranges from {}{}{}{}\n",
                      static_cast<int64_t>(report.layers.size()) - kept, report.layers.size(),
                      report.scheme, kept, RunsText(report),
                      report.method.empty() ? "" : fmt::format(" by {}", report.method),
                      report.corrects_bias ? ", bias corrected" : "",
                      report.equalises ? ", channels equalised" : "");
  return text + ClosingText(report);
}

ordered_json ReportJson(const QuantiseReport& report) {
  auto layers = ordered_json::array();
  for (const QuantisedLayer& layer : report.layers) {
    ordered_json object = LayerJson(layer);
    object["low"] = layer.low;
    object["high"] = layer.high;
    object["smoothed"] = layer.smoothed;
    layers.push_back(std::move(object));
  }
  ordered_json object = FilesJson(report);
  object["scheme"] = report.scheme;
  object["method"] = report.method.empty() ? ordered_json(nullptr) : ordered_json(report.method);
  object["equalised"] = report.equalises;
  object.update(ScoresJson(report));
  object["layers"] = std::move(layers);
  object.update(FrontJson(report));
  return object;
}

}  // namespace hone::client
