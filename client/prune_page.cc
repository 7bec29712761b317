#include <string>

#include "fmt/format.h"

#include "client/prune_report.h"
#include "client/rewrite_page.h"

namespace hone::client {

std::string PrunePage(const PruneReport& report) {
  RewritePage page;
  page.title = fmt::format("{} pruned by {:.0f} %", report.model, 100 * report.asked);
  page.written_by =
      fmt::format("hone prune, structure {}, from {}", report.structure, RunsText(report));
  page.changed = "layers are pruned";
  page.detail_heading = "zero or gone";
  page.kept_mark = "dense";
  for (const PrunedLayer& layer : report.layers) {
    page.layers.push_back(&layer);
    page.details.push_back(fmt::format("{:.1f} %", 100 * layer.sparsity));
  }
  return PageText(report, page);
}

}  // namespace hone::client
