#include "client/model_rewrite.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "fmt/format.h"

#include "base/file.h"
#include "base/status.h"
#include "client/exit_code.h"
#include "client/model_loader.h"
#include "client/output_path.h"

namespace hone::client {

using graph::onnx_quantise::Assignment;
using graph::onnx_quantise::Layer;

namespace {

/// Runs on drawn inputs, where nobody gave any.
constexpr int kDrawnRuns = 4;
/// Kept layers whose cost is looked up, and points of the front that are timed.
constexpr size_t kMostCosts = 16;
constexpr size_t kMostPoints = 5;

bool Has(const RewriteReport& report, size_t kept) {
  return std::ranges::find(report.front, kept, &RewrittenPoint::kept) != report.front.end();
}

}  // namespace

absl::Status UsageOf(const std::string& message) {
  return WithExitCode(absl::InvalidArgumentError(message), ExitCode::kUsage);
}

absl::StatusOr<KeepRequest> ModelRewrite::ReadKeep() const {
  KeepRequest request;
  request.keep = arguments_.List("keep");
  if (arguments_.Given("target-sqnr")) request.target_sqnr = arguments_.Number("target-sqnr");
  if (arguments_.Given("max-drop")) request.max_drop = arguments_.Number("max-drop");
  if (request.max_drop && !arguments_.Given("labels"))
    return UsageOf("--max-drop needs the right answers: --labels L.npz");
  return request;
}

absl::Status ModelRewrite::Read(const std::string& ending, graph::onnx_quantise::SourceUse use) {
  output_ = arguments_.TextOr(
      "output", std::filesystem::path(path_).replace_extension(ending + ".onnx").string());
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
  HONE_ASSIGN_OR_RETURN(source_, graph::onnx_quantise::ReadSourceModel(path_, use));
  data_ = DrawCalibration(specs_, kDrawnRuns);
  if (arguments_.Given("calibrate")) {
    HONE_ASSIGN_OR_RETURN(data_, ReadCalibration(arguments_.List("calibrate"), specs_));
  }
  return absl::OkStatus();
}

absl::Status ModelRewrite::SetLabels(LayerSearch& search) {
  if (!arguments_.Given("labels")) return absl::OkStatus();
  const std::string path = arguments_.Text("labels");
  HONE_ASSIGN_OR_RETURN(LabelSet labels, ReadLabels(path));
  if (!labels.has_data && data_.drawn)
    return UsageOf("--labels has no inputs of its own, so it needs those of --calibrate");
  if (labels.has_data) {
    HONE_ASSIGN_OR_RETURN(labelled_, ReadCalibration({path}, specs_));
  }
  return search.SetLabels(std::move(labels.labels), labels.has_data ? labelled_ : data_);
}

absl::Status ModelRewrite::SearchAndWrite(LayerSearch& search, const KeepRequest& keep,
                                          RewriteReport* report) {
  HONE_RETURN_IF_ERROR(SetLabels(search));
  Tell(fmt::format("measuring {} layers one by one", search.order().size()));
  HONE_RETURN_IF_ERROR(search.MeasureLayers());
  if (keep.target_sqnr || keep.max_drop) HONE_RETURN_IF_ERROR(search.MeetTarget());
  return Write(search, report);
}

absl::StatusOr<graph::Graph> ModelRewrite::Import(const Assignment& assignment,
                                                  std::string* bytes) const {
  HONE_ASSIGN_OR_RETURN(*bytes, ModelOf(assignment));
  return ImportBytes(arguments_, *bytes, source_.folder);
}

absl::Status ModelRewrite::Write(LayerSearch& search, RewriteReport* report) {
  HONE_ASSIGN_OR_RETURN(report->predicted, search.Score());
  std::string bytes;
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, Import(search.assignment(), &bytes));
  Tell("compiling what is written");
  HONE_ASSIGN_OR_RETURN(report->written, ScoreModel(context_, std::move(graph), search.terms()));
  HONE_RETURN_IF_ERROR(WriteFileAtomically(output_, bytes));
  report->model = path_;
  report->output = output_;
  report->model_bytes = SourceBytes();
  report->output_bytes = static_cast<int64_t>(bytes.size());
  report->runs = static_cast<int64_t>(data_.runs.size());
  report->drawn = data_.drawn;
  report->corrects_bias = search.corrects_bias();
  report->top1_in_f32 = search.top1_in_f32();
  return absl::OkStatus();
}

/// With its external data.
int64_t ModelRewrite::SourceBytes() const {
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

RewrittenLayer ModelRewrite::LineOf(const LayerSearch& search, size_t layer) const {
  const Layer& own = source_.layers[layer];
  const std::vector<size_t>& order = search.order();
  const LayerScore& score = search.scores()[layer];
  RewrittenLayer line = {.name = own.name,
                         .op = own.op,
                         .columns = own.columns,
                         .terms = own.terms,
                         .alone_db = {},
                         .share = score.share,
                         .why_kept = search.assignment().layers[layer].why_kept,
                         .cost_ms = {}};
  if (std::ranges::find(order, layer) != order.end()) line.alone_db = score.alone.Decibels();
  return line;
}

absl::Status ModelRewrite::FillFront(LayerSearch& search,
                                     const std::vector<RewrittenLayer*>& layers,
                                     RewriteReport* report) {
  if (!arguments_.Given("target-sqnr") && !arguments_.Given("max-drop") &&
      !arguments_.Given("report"))
    return absl::OkStatus();
  HONE_RETURN_IF_ERROR(TimeFront(search, report));
  return AskLog(search, layers, report);
}

absl::Status ModelRewrite::TimeFront(LayerSearch& search, RewriteReport* report) {
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
    if (point == all || point == kept || Has(*report, point)) continue;
    const auto& front = search.front();
    const auto found = std::ranges::find(front, point, &FrontPoint::kept);
    report->front.push_back({point, found->score, {}, false});
    HONE_RETURN_IF_ERROR(add(search.WithKept(point)));
  }
  report->front.push_back({kept, report->predicted, {}, true});
  HONE_RETURN_IF_ERROR(add(search.assignment()));
  Tell(fmt::format("timing {} models in turns", graphs.size()));
  HONE_ASSIGN_OR_RETURN(const std::vector<WholeTime> times,
                        TimeInTurns(context_, choice_, std::move(graphs), data_.runs[0],
                                    arguments_.Number("seconds")));
  for (size_t i = 1; i < times.size(); ++i) report->front[i - 1].time = times[i];
  const auto& front = search.front();
  report->front.push_back(
      {all, std::ranges::find(front, all, &FrontPoint::kept)->score, times[0], false});
  std::ranges::stable_sort(report->front, {}, &RewrittenPoint::kept);
  return absl::OkStatus();
}

// What each layer that is kept for the target costs, by the log's records of the kernels of both
// models.
absl::Status ModelRewrite::AskLog(const LayerSearch& search,
                                  const std::vector<RewrittenLayer*>& layers,
                                  RewriteReport* report) {
  if (!choice_.HasLog()) {
    report->logged = "no tuning log: what a kept layer costs is not known (hone tune makes one)";
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
    HONE_ASSIGN_OR_RETURN(const LoggedTime changed, time_of(other));
    if (changed.unknown == 0 && written.unknown == 0) layers[i]->cost_ms = written.ms - changed.ms;
  }
  report->logged =
      written.unknown == 0
          ? fmt::format("by the log the written model takes {:.3f} ms", written.ms)
          : fmt::format("the log does not know {} kernels of the written model: hone tune {}",
                        written.unknown, output_);
  return absl::OkStatus();
}

}  // namespace hone::client
