#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "base/status.h"
#include "client/calibration_set.h"
#include "client/command.h"
#include "client/exit_code.h"
#include "client/json_text.h"
#include "client/model_inputs.h"
#include "client/model_loader.h"
#include "client/output_path.h"
#include "client/quantise_probe.h"
#include "client/quantise_report.h"
#include "client/quantise_search.h"
#include "client/quantise_timing.h"
#include "client/remove_on_signal.h"
#include "client/trace_choice.h"
#include "graph/onnx_quantise/quantised_model.h"
#include "graph/onnx_quantise/source_model.h"

namespace hone::client {
namespace {

using graph::onnx_quantise::Assignment;
using graph::onnx_quantise::Layer;
using graph::onnx_quantise::Scheme;
using graph::onnx_quantise::SourceModel;

/// Runs on drawn inputs, where nobody gave any.
constexpr int kDrawnRuns = 4;
/// Kept layers whose cost is looked up, and points of the front that are timed.
constexpr size_t kMostCosts = 16;
constexpr size_t kMostPoints = 5;

absl::Status Usage(const std::string& message) {
  return WithExitCode(absl::InvalidArgumentError(message), ExitCode::kUsage);
}

absl::StatusOr<QuantiseRequest> ReadRequest(const Arguments& arguments) {
  QuantiseRequest request;
  request.scheme = *graph::onnx_quantise::ParseScheme(arguments.Text("scheme"));
  request.method = *graph::onnx_quantise::ParseRangeMethod(arguments.Text("method"));
  request.percentile = arguments.Number("percentile");
  request.keep = arguments.List("keep");
  if (arguments.Given("group")) request.group_size = arguments.Integer("group");
  if (arguments.Given("target-sqnr")) request.target_sqnr = arguments.Number("target-sqnr");
  if (arguments.Given("max-drop")) request.max_drop = arguments.Number("max-drop");
  const std::string scheme = arguments.Text("scheme");
  if (request.scheme == Scheme::kInt8 && !arguments.Given("calibrate")) {
    return Usage(
        "--scheme int8 needs data that the model meets, to learn ranges from: --calibrate X.npz "
        "or a folder of them; int8-dynamic and int8-weights do without");
  }
  if (request.scheme != Scheme::kInt8 && arguments.GivenOnLine("method"))
    return Usage(
        fmt::format("--method has no meaning for --scheme {}: no range is stored", scheme));
  if (request.scheme != Scheme::kInt4Weights && arguments.GivenOnLine("group"))
    return Usage(fmt::format("--group has no meaning for --scheme {}", scheme));
  if ((request.group_size & (request.group_size - 1)) != 0)
    return Usage(fmt::format("--group {} is no power of two", request.group_size));
  if (request.max_drop && !arguments.Given("labels"))
    return Usage("--max-drop needs --labels L.npz: the right answers");
  return request;
}

/// A group that was asked for must divide every layer that is not kept.
absl::Status CheckGroup(const Arguments& arguments, const SourceModel& source,
                        const QuantiseRequest& request) {
  if (!arguments.GivenOnLine("group")) return absl::OkStatus();
  for (const Layer& layer : source.layers) {
    const bool kept = std::ranges::find(request.keep, layer.name) != request.keep.end();
    if (kept || layer.op == "Conv" || layer.terms % request.group_size == 0) continue;
    return absl::InvalidArgumentError(
        fmt::format("--group {}: {} {} has sums of {} terms, which it does not divide; choose "
                    "another, or --keep {}",
                    request.group_size, layer.op, layer.name, layer.terms, layer.name));
  }
  return absl::OkStatus();
}

/// One call of the command: what its parts share.
class QuantiseRun {
 public:
  explicit QuantiseRun(CommandContext& context)
      : context_(context), arguments_(context.arguments), path_(arguments_.Text("MODEL")) {}

  absl::Status Run() {
    const RemoveOnSignal on_signal("quantize", context_.json());
    HONE_RETURN_IF_ERROR(Read());
    auto probe = QuantiseProbe::Create(context_, source_, request_.scheme);
    if (!probe.ok()) return CompileError(probe.status());
    QuantiseSearch search(source_, **probe, data_, request_,
                          [this](const std::string& text) { Tell(text); });
    HONE_RETURN_IF_ERROR(search.Calibrate());
    HONE_RETURN_IF_ERROR(SetLabels(search));
    Tell(fmt::format("measuring {} layers one by one", search.order().size()));
    HONE_RETURN_IF_ERROR(search.MeasureLayers());
    if (request_.target_sqnr || request_.max_drop) HONE_RETURN_IF_ERROR(search.MeetTarget());
    HONE_RETURN_IF_ERROR(Write(search));
    FillLayers(search);
    if (WantsFront()) {
      HONE_RETURN_IF_ERROR(TimeFront(search));
      HONE_RETURN_IF_ERROR(AskLog(search));
    }
    if (arguments_.Given("report"))
      HONE_RETURN_IF_ERROR(WriteFileAtomically(arguments_.Text("report"), QuantisePage(report_)));
    context_.json_result = JsonText(ReportJson(report_));
    if (!context_.json()) context_.out << ReportText(report_);
    return absl::OkStatus();
  }

 private:
  void Tell(const std::string& text) const {
    if (!context_.json()) context_.err << text << '\n';
  }
  bool WantsFront() const {
    return request_.target_sqnr || request_.max_drop || arguments_.Given("report");
  }

  absl::Status Read() {
    HONE_ASSIGN_OR_RETURN(request_, ReadRequest(arguments_));
    const std::string scheme = arguments_.Text("scheme");
    output_ = arguments_.TextOr(
        "output", std::filesystem::path(path_).replace_extension(scheme + ".onnx").string());
    std::vector<std::string> inputs = InputFiles(arguments_);
    for (const std::string& path : arguments_.List("calibrate")) inputs.push_back(path);
    if (arguments_.Given("labels")) inputs.push_back(arguments_.Text("labels"));
    HONE_RETURN_IF_ERROR(CheckOutput(output_, inputs));
    if (arguments_.Given("report")) {
      inputs.push_back(output_);
      HONE_RETURN_IF_ERROR(CheckOutput(arguments_.Text("report"), inputs));
    }
    HONE_ASSIGN_OR_RETURN(choice_, ChooseTraces(arguments_, context_.environment));
    HONE_ASSIGN_OR_RETURN(const bool package, IsPackage(path_));
    if (package) {
      return absl::InvalidArgumentError(fmt::format(
          "'{}' is a package, compiled already: name the model that it was made of", path_));
    }
    {
      HONE_ASSIGN_OR_RETURN(const graph::Graph graph, ImportModel(arguments_, path_, &files_));
      specs_ = InputsOf(graph);
    }
    HONE_ASSIGN_OR_RETURN(source_, graph::onnx_quantise::ReadSourceModel(path_));
    HONE_RETURN_IF_ERROR(CheckGroup(arguments_, source_, request_));
    data_ = DrawCalibration(specs_, kDrawnRuns);
    if (arguments_.Given("calibrate")) {
      HONE_ASSIGN_OR_RETURN(data_, ReadCalibration(arguments_.List("calibrate"), specs_));
    }
    return absl::OkStatus();
  }

  absl::Status SetLabels(QuantiseSearch& search) {
    if (!arguments_.Given("labels")) return absl::OkStatus();
    const std::string path = arguments_.Text("labels");
    HONE_ASSIGN_OR_RETURN(LabelSet labels, ReadLabels(path));
    if (!labels.has_data && data_.drawn)
      return Usage("--labels without data of its own needs --calibrate, whose rows it names");
    if (labels.has_data) {
      HONE_ASSIGN_OR_RETURN(labelled_, ReadCalibration({path}, specs_));
    }
    return search.SetLabels(std::move(labels.labels), labels.has_data ? labelled_ : data_);
  }

  absl::StatusOr<graph::Graph> Import(const Assignment& assignment, std::string* bytes) const {
    HONE_ASSIGN_OR_RETURN(*bytes, graph::onnx_quantise::QuantisedModel(source_, assignment));
    return ImportBytes(arguments_, *bytes, source_.folder);
  }

  absl::Status Write(QuantiseSearch& search) {
    HONE_ASSIGN_OR_RETURN(report_.predicted, search.Score());
    std::string bytes;
    HONE_ASSIGN_OR_RETURN(graph::Graph graph, Import(search.assignment(), &bytes));
    Tell("compiling what is written");
    HONE_ASSIGN_OR_RETURN(report_.written, ScoreModel(context_, std::move(graph), search.terms()));
    HONE_RETURN_IF_ERROR(WriteFileAtomically(output_, bytes));
    report_.model = path_;
    report_.output = output_;
    report_.scheme = arguments_.Text("scheme");
    if (request_.scheme == Scheme::kInt8) report_.method = arguments_.Text("method");
    report_.model_bytes = SourceBytes();
    report_.output_bytes = static_cast<int64_t>(bytes.size());
    report_.runs = static_cast<int64_t>(data_.runs.size());
    report_.drawn = data_.drawn;
    report_.corrects_bias = search.corrects_bias();
    report_.equalises = search.equalises();
    report_.top1_in_f32 = search.top1_in_f32();
    return absl::OkStatus();
  }

  /// With its external data.
  int64_t SourceBytes() const {
    int64_t bytes = 0;
    std::vector<std::string> files = files_;
    files.push_back(path_);
    for (const std::string& file : files) {
      std::error_code error;
      const auto size = std::filesystem::file_size(file, error);
      if (!error) bytes += static_cast<int64_t>(size);
    }
    return bytes;
  }

  void FillLayers(const QuantiseSearch& search) {
    const std::vector<size_t>& order = search.order();
    for (size_t i = 0; i < source_.layers.size(); ++i) {
      const Layer& layer = source_.layers[i];
      const LayerFinding& finding = search.findings()[i];
      QuantisedLayer line = {.name = layer.name,
                             .op = layer.op,
                             .columns = layer.columns,
                             .terms = layer.terms,
                             .low = finding.low,
                             .high = finding.high,
                             .alone_db = {},
                             .share = finding.share,
                             .smoothed = !search.assignment().groups[layer.group].smooth.empty(),
                             .why_kept = search.assignment().layers[i].why_kept,
                             .cost_ms = {}};
      if (std::ranges::find(order, i) != order.end()) line.alone_db = finding.alone.Decibels();
      report_.layers.push_back(std::move(line));
    }
    for (const graph::onnx_quantise::LeftOut& left : source_.left_out) {
      QuantisedLayer line;
      line.name = left.name;
      line.op = left.op;
      line.why_kept = left.why;
      report_.layers.push_back(std::move(line));
    }
  }

  /// Models with no layer kept, some, and all of them, and the one that was written.
  absl::Status TimeFront(QuantiseSearch& search) {
    const size_t all = search.order().size();
    for (size_t i = 0; i < kMostPoints; ++i)
      HONE_RETURN_IF_ERROR(search.AddFrontPoint(i * all / (kMostPoints - 1)));
    std::vector<graph::Graph> graphs;
    std::string bytes;
    const auto add = [&](const Assignment& assignment) -> absl::Status {
      HONE_ASSIGN_OR_RETURN(graphs.emplace_back(), Import(assignment, &bytes));
      return absl::OkStatus();
    };
    HONE_RETURN_IF_ERROR(add(search.WithKept(all)));
    const size_t kept = search.NumKept();
    for (size_t i = 0; i < kMostPoints; ++i) {
      const size_t point = i * all / (kMostPoints - 1);
      if (point == all || point == kept || Has(point)) continue;
      const auto& front = search.front();
      const auto found = std::ranges::find(front, point, &FrontPoint::kept);
      report_.front.push_back({point, found->score, {}, false});
      HONE_RETURN_IF_ERROR(add(search.WithKept(point)));
    }
    report_.front.push_back({kept, report_.predicted, {}, true});
    HONE_RETURN_IF_ERROR(add(search.assignment()));
    Tell(fmt::format("timing {} models in turns", graphs.size()));
    HONE_ASSIGN_OR_RETURN(const std::vector<WholeTime> times,
                          TimeInTurns(context_, choice_, std::move(graphs), data_.runs[0],
                                      arguments_.Number("seconds")));
    for (size_t i = 1; i < times.size(); ++i) report_.front[i - 1].time = times[i];
    const auto& front = search.front();
    report_.front.push_back(
        {all, std::ranges::find(front, all, &FrontPoint::kept)->score, times[0], false});
    std::ranges::stable_sort(report_.front, {}, &QuantisedPoint::kept);
    return absl::OkStatus();
  }
  bool Has(size_t kept) const {
    return std::ranges::find(report_.front, kept, &QuantisedPoint::kept) != report_.front.end();
  }

  /// What each layer that is kept for the target costs, by the log's records of the kernels of both
  /// models.
  absl::Status AskLog(const QuantiseSearch& search) {
    if (!choice_.HasLog()) {
      report_.logged = "no tuning log: what a kept layer costs is not known (hone tune makes one)";
      return absl::OkStatus();
    }
    const auto time_of = [&](const Assignment& assignment) -> absl::StatusOr<LoggedTime> {
      std::string bytes;
      HONE_ASSIGN_OR_RETURN(graph::Graph graph, Import(assignment, &bytes));
      return TimeByLog(context_, choice_, std::move(graph));
    };
    HONE_ASSIGN_OR_RETURN(const LoggedTime written, time_of(search.assignment()));
    size_t asked = 0;
    for (const size_t i : search.order()) {
      if (!search.assignment().layers[i].kept() || asked++ >= kMostCosts) continue;
      Assignment other = search.assignment();
      other.layers[i].why_kept.clear();
      HONE_ASSIGN_OR_RETURN(const LoggedTime narrowed, time_of(other));
      if (narrowed.unknown == 0 && written.unknown == 0)
        report_.layers[i].cost_ms = written.ms - narrowed.ms;
    }
    report_.logged =
        written.unknown == 0
            ? fmt::format("by the log the written model takes {:.3f} ms", written.ms)
            : fmt::format("the log does not know {} kernels of the written model: hone tune {}",
                          written.unknown, output_);
    return absl::OkStatus();
  }

  CommandContext& context_;
  const Arguments& arguments_;
  const std::string path_;
  std::string output_;
  QuantiseRequest request_;
  TraceChoice choice_;
  std::vector<std::string> files_;  ///< of the source's external data
  std::vector<InputSpec> specs_;
  SourceModel source_;
  CalibrationSet data_, labelled_;
  QuantiseReport report_;
};

}  // namespace

absl::Status RunQuantise(CommandContext& context) { return QuantiseRun(context).Run(); }

}  // namespace hone::client
