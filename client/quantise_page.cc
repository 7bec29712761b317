#include <string>

#include "fmt/format.h"

#include "client/quantise_report.h"
#include "client/rewrite_page.h"

namespace hone::client {

std::string QuantisePage(const QuantiseReport& report) {
  RewritePage page;
  page.title = fmt::format("{} as {}", report.model, report.scheme);
  page.written_by = fmt::format("hone quantize, from {}{}", RunsText(report),
                                report.method.empty() ? "" : ", ranges by " + report.method);
  page.changed = fmt::format("layers are {}", report.scheme);
  page.detail_heading = "range of data";
  page.kept_mark = "in f32";
  for (const QuantisedLayer& layer : report.layers) {
    page.layers.push_back(&layer);
    page.details.push_back(layer.alone_db ? fmt::format("{:.4g} to {:.4g}", layer.low, layer.high)
                                          : "–");
  }
  return PageText(report, page);
}

}  // namespace hone::client
