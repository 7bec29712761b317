#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "base/status.h"
#include "client/command.h"
#include "client/json_text.h"
#include "client/model_loader.h"
#include "client/model_rewrite.h"
#include "client/quantise_report.h"
#include "client/quantise_search.h"
#include "client/remove_on_signal.h"
#include "graph/onnx_quantise/quantised_model.h"

namespace hone::client {
namespace {

using graph::onnx_quantise::Assignment;
using graph::onnx_quantise::Layer;
using graph::onnx_quantise::Scheme;
using graph::onnx_quantise::SourceModel;

absl::StatusOr<QuantiseRequest> ReadRequest(const Arguments& arguments) {
  QuantiseRequest request;
  request.scheme = *graph::onnx_quantise::ParseScheme(arguments.Text("scheme"));
  request.method = *graph::onnx_quantise::ParseRangeMethod(arguments.Text("method"));
  request.percentile = arguments.Number("percentile");
  if (arguments.Given("group")) request.group_size = arguments.Integer("group");
  const std::string scheme = arguments.Text("scheme");
  if (request.scheme == Scheme::kInt8 && !arguments.Given("calibrate")) {
    return UsageOf(
        "--scheme int8 needs typical inputs to calibrate ranges with: --calibrate X.npz or a "
        "folder of such files; int8-dynamic and int8-weights need none");
  }
  if (request.scheme != Scheme::kInt8 && arguments.GivenOnLine("method"))
    return UsageOf(
        fmt::format("--method has no meaning for --scheme {}: no range is stored", scheme));
  if (request.scheme != Scheme::kInt4Weights && arguments.GivenOnLine("group"))
    return UsageOf(fmt::format("--group has no meaning for --scheme {}", scheme));
  if ((request.group_size & (request.group_size - 1)) != 0)
    return UsageOf(fmt::format("--group {} is no power of two", request.group_size));
  return request;
}

/// A group that was asked for must divide every layer that is not kept.
absl::Status CheckGroup(const Arguments& arguments, const SourceModel& source,
                        const QuantiseRequest& request) {
  if (!arguments.GivenOnLine("group")) return absl::OkStatus();
  const std::vector<std::string>& keep = request.keep.keep;
  for (const Layer& layer : source.layers) {
    const bool kept = std::ranges::find(keep, layer.name) != keep.end();
    if (kept || layer.op == "Conv" || layer.terms % request.group_size == 0) continue;
    return absl::InvalidArgumentError(
        fmt::format("--group {}: {} {} has sums of {} terms, which it does not divide; choose "
                    "another, or --keep {}",
                    request.group_size, layer.op, layer.name, layer.terms, layer.name));
  }
  return absl::OkStatus();
}

/// One call of the command: what its parts share.
class QuantiseRun : private ModelRewrite {
 public:
  explicit QuantiseRun(CommandContext& context) : ModelRewrite(context) {}

  absl::Status Run() {
    const RemoveOnSignal on_signal("quantize", context_.json());
    HONE_ASSIGN_OR_RETURN(request_, ReadRequest(arguments_));
    HONE_ASSIGN_OR_RETURN(request_.keep, ReadKeep());
    HONE_RETURN_IF_ERROR(
        Read(arguments_.Text("scheme"), graph::onnx_quantise::SourceUse::kQuantise));
    HONE_RETURN_IF_ERROR(CheckGroup(arguments_, source_, request_));
    auto probe = LayerProbe::Create(context_, source_, request_.scheme);
    if (!probe.ok()) return CompileError(probe.status());
    QuantiseSearch search(source_, **probe, data_, request_,
                          [this](const std::string& text) { Tell(text); });
    HONE_RETURN_IF_ERROR(search.Calibrate());
    HONE_RETURN_IF_ERROR(SearchAndWrite(search, request_.keep, &report_));
    HONE_RETURN_IF_ERROR(FillReport(search));
    if (arguments_.Given("report"))
      HONE_RETURN_IF_ERROR(WriteFileAtomically(arguments_.Text("report"), QuantisePage(report_)));
    context_.json_result = JsonText(ReportJson(report_));
    if (!context_.json()) context_.out << ReportText(report_);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<std::string> ModelOf(const Assignment& assignment) const override {
    return graph::onnx_quantise::QuantisedModel(source_, assignment);
  }

  absl::Status FillReport(QuantiseSearch& search) {
    report_.scheme = arguments_.Text("scheme");
    if (request_.scheme == Scheme::kInt8) report_.method = arguments_.Text("method");
    report_.equalises = search.equalises();
    for (size_t i = 0; i < source_.layers.size(); ++i) {
      QuantisedLayer line;
      static_cast<RewrittenLayer&>(line) = LineOf(search, i);
      line.low = search.ranges()[i].low;
      line.high = search.ranges()[i].high;
      line.smoothed = !search.assignment().groups[source_.layers[i].group].smooth.empty();
      report_.layers.push_back(std::move(line));
    }
    for (const graph::onnx_quantise::LeftOut& left : source_.left_out) {
      QuantisedLayer line;
      line.name = left.name;
      line.op = left.op;
      line.why_kept = left.why;
      report_.layers.push_back(std::move(line));
    }
    std::vector<RewrittenLayer*> lines;
    for (QuantisedLayer& line : report_.layers) lines.push_back(&line);
    return FillFront(search, lines, &report_);
  }

  QuantiseRequest request_;
  QuantiseReport report_;
};

}  // namespace

absl::Status RunQuantise(CommandContext& context) { return QuantiseRun(context).Run(); }

}  // namespace hone::client
