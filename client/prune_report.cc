#include "client/prune_report.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "client/text_table.h"

namespace hone::client {
namespace {

using nlohmann::ordered_json;

constexpr double kHundred = 100;

std::string LayersText(const PruneReport& report) {
  TextTable table({"LAYER", "OP", "SUM", "ZERO", "ALONE", "SHARE", "DENSE BECAUSE"});
  for (const PrunedLayer& layer : report.layers) {
    const bool tried = layer.alone_db.has_value();
    table.Add({layer.name, layer.op, fmt::format("{}x{}", layer.columns, layer.terms),
               fmt::format("{:.1f} %", kHundred * layer.sparsity),
               tried ? fmt::format("{:.1f} dB", *layer.alone_db) : "-",
               tried ? fmt::format("{:.1f} %", kHundred * layer.share) : "-", KeptText(layer)});
  }
  return table.Text();
}

std::string UpdateText(const PruneReport& report) {
  if (!report.after_update) return "";
  return fmt::format("the remaining weights of {} layers were updated: {} after, {} before\n",
                     std::ranges::count_if(report.layers, &PrunedLayer::updated),
                     ScoreText(*report.after_update), ScoreText(*report.before_update));
}

std::string HeadsText(const PruneReport& report) {
  if (report.heads.empty()) return "";
  TextTable table({"HEAD OF", "", "SALIENCY", ""});
  for (const PrunedHead& head : report.heads)
    table.Add({head.layer, fmt::format("{}", head.head),
               fmt::format("{:.1f} %", kHundred * head.saliency), head.gone ? "gone" : ""});
  return '\n' + table.Text();
}

}  // namespace

std::string ReportText(const PruneReport& report) {
  const auto kept = std::ranges::count_if(
      report.layers, [](const PrunedLayer& layer) { return !layer.why_kept.empty(); });
  std::string text =
      LayersText(report) + HeadsText(report) + FrontText(report, "LAYERS DENSE") + '\n';
  if (!report.logged.empty()) text += report.logged + '\n';
  text += fmt::format(
      "{} of {} layers are pruned ({}), {} stay dense; {:.1f} % of all weights are zero or gone, "
      "by {}{}\n",
      static_cast<int64_t>(report.layers.size()) - kept, report.layers.size(),
      report.structure == "none" ? "single weights" : report.structure, kept,
      kHundred * report.sparsity,
      report.drawn ? std::string("size") : "size and data of " + RunsText(report),
      report.corrects_bias ? ", bias corrected" : "");
  return text + UpdateText(report) + ClosingText(report);
}

ordered_json ReportJson(const PruneReport& report) {
  auto layers = ordered_json::array();
  for (const PrunedLayer& layer : report.layers) {
    ordered_json object = LayerJson(layer);
    object["sparsity"] = layer.sparsity;
    object["updated"] = layer.updated;
    object["why_not_updated"] =
        layer.why_not_updated.empty() ? ordered_json(nullptr) : ordered_json(layer.why_not_updated);
    layers.push_back(std::move(object));
  }
  ordered_json object = FilesJson(report);
  object["structure"] = report.structure;
  object["asked"] = report.asked;
  object["sparsity"] = report.sparsity;
  object.update(ScoresJson(report));
  object["layers"] = std::move(layers);
  if (report.after_update) {
    object["update"] = {{"before_db", report.before_update->Decibels()},
                        {"after_db", report.after_update->Decibels()}};
  }
  auto heads = ordered_json::array();
  for (const PrunedHead& head : report.heads) {
    heads.push_back({{"layer", head.layer},
                     {"head", head.head},
                     {"saliency", head.saliency},
                     {"gone", head.gone}});
  }
  if (!heads.empty()) object["heads"] = std::move(heads);
  object.update(FrontJson(report));
  return object;
}

}  // namespace hone::client
