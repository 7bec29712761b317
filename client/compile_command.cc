#include <algorithm>
#include <filesystem>
#include <map>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/status.h"
#include "client/bf16_gain.h"
#include "client/command.h"
#include "client/dependency_file.h"
#include "client/emit.h"
#include "client/json_text.h"
#include "client/model_inputs.h"
#include "client/model_loader.h"
#include "client/model_options.h"
#include "client/output_path.h"
#include "client/precision_error.h"
#include "compiler/package_variants.h"
#include "runtime/package.h"

namespace hone::client {
namespace {

/// How many kernels each rung of the look-up ladder answered.
std::map<std::string, int> RungCounts(const compiler::CompileReport& report) {
  std::map<std::string, int> counts;
  for (const compiler::KernelReport& kernel : report.kernels) ++counts[kernel.rung];
  return counts;
}

/// Which rung answered for each kernel and why, where a log was asked; why batch, branches
/// and cascades run as they do.
std::string RungsText(const compiler::CompileReport& report) {
  std::string text;
  for (const compiler::KernelReport& kernel : report.kernels) {
    if (kernel.why.empty()) continue;
    text += fmt::format("{}  x{:<3} {:<8} {}\n    {}\n", kernel.workload_hash.substr(0, 12),
                        kernel.count, kernel.rung, kernel.name, kernel.why);
  }
  if (!report.batch_why.empty()) {
    text += fmt::format("batch: its images run {}: {}\n",
                        report.images > 1 ? "one after the other" : "together", report.batch_why);
  }
  if (!report.branches_why.empty()) {
    text += fmt::format("branches: {} of {} forks run side by side: {}\n", report.forks,
                        report.possible_forks, report.branches_why);
  }
  if (!report.cascades.why.empty()) {
    text += fmt::format("cascades: {} of {} chains of layers run in bands: {}\n",
                        report.cascades.joined, report.cascades.possible, report.cascades.why);
  }
  return text;
}

/// Where kernels rest on times that other programs disturbed; empty where none does.
std::string NoisyText(const compiler::CompileReport& report) {
  const auto noisy = std::ranges::count_if(
      report.kernels, [](const compiler::KernelReport& kernel) { return kernel.noisy; });
  if (noisy == 0) return "";
  return fmt::format(
      "{} of {} kernels were measured while other programs ran; `hone tune` on a quiet machine "
      "measures them again\n",
      noisy, report.kernels.size());
}

/// How the images of a batch run, where that is worth a word.
std::string BatchText(const compiler::CompileReport& report) {
  const char* const judged = report.batch_judged ? ", as measured" : "";
  if (report.images > 1)
    return fmt::format("; {} images one after the other{}", report.images, judged);
  return report.batch_judged ? fmt::format("; its images together{}", judged) : "";
}

nlohmann::ordered_json BatchJson(const compiler::CompileReport& report) {
  if (report.batch_why.empty()) return nullptr;
  return {{"run", report.images > 1 ? "each" : "together"},
          {"judged", report.batch_judged},
          {"why", report.batch_why}};
}

nlohmann::ordered_json BranchesJson(const compiler::CompileReport& report) {
  if (report.branches_why.empty()) return nullptr;
  return {{"run", report.forks > 0 ? "beside" : "turn"},
          {"judged", report.branches_judged},
          {"why", report.branches_why},
          {"possible_forks", report.possible_forks},
          {"forks", report.forks}};
}

nlohmann::ordered_json CascadesJson(const compiler::CascadeChoice& cascades) {
  if (cascades.why.empty()) return nullptr;
  return {{"run", cascades.joined > 0 ? "on" : "off"},
          {"judged", cascades.judged},
          {"why", cascades.why},
          {"possible", cascades.possible},
          {"joined", cascades.joined}};
}

/// What kernels have to do with predictions: those that rest on some, those that could.
std::string PredictedText(const compiler::CompileReport& report) {
  const auto predicted = std::ranges::count_if(
      report.kernels, [](const auto& kernel) { return kernel.rung == "predicted"; });
  const auto unused = std::ranges::count_if(
      report.kernels, [](const auto& kernel) { return kernel.unused_prediction; });
  std::string text;
  if (predicted > 0) {
    text += fmt::format(
        "{} of {} kernels have schedules that the analytic model predicted; none of them was "
        "measured\n",
        predicted, report.kernels.size());
  }
  if (unused > 0) {
    text += fmt::format(
        "the log has predicted schedules for {} of {} kernels; --allow-predicted uses them\n",
        unused, report.kernels.size());
  }
  return text;
}

std::string ReportText(const compiler::CompiledModel& model) {
  const compiler::CompileReport& report = model.report;
  std::string rungs;
  for (const auto& [rung, count] : RungCounts(report)) {
    rungs += fmt::format("{}{} {}", rungs.empty() ? "" : ", ", count, rung);
  }
  return fmt::format(
      "{} kernels ({}), {} steps, code {:.2f} MB, constants {:.1f} MB, memory {:.1f} MB{}{}",
      report.kernels.size(), rungs.empty() ? "none" : rungs, report.num_steps,
      static_cast<double>(report.code_bytes) * 1e-6,
      static_cast<double>(report.constant_bytes) * 1e-6,
      static_cast<double>(report.arena_bytes) * 1e-6, BatchText(report),
      model.package.info.precision == "f32" ? "" : "; " + PrecisionText(model.package.info));
}

std::string ReportText(const std::string& path, const std::vector<compiler::CompiledModel>& models,
                       size_t shared_bytes, double seconds) {
  if (models.size() == 1) {
    return fmt::format("wrote {} for {}\n{}; {:.1f} s\n", path, models[0].package.info.target,
                       ReportText(models[0]), seconds);
  }
  std::string text = fmt::format("wrote {} for {} targets\n", path, models.size());
  for (const compiler::CompiledModel& model : models) {
    text += fmt::format("{}: {}\n", model.package.info.target, ReportText(model));
  }
  return text + fmt::format("constants of all {:.1f} MB; {:.1f} s\n",
                            static_cast<double>(shared_bytes) * 1e-6, seconds);
}

nlohmann::ordered_json ReportJson(const compiler::CompiledModel& model) {
  const compiler::CompileReport& report = model.report;
  auto kernels = nlohmann::ordered_json::array();
  for (const compiler::KernelReport& kernel : report.kernels) {
    kernels.push_back({{"name", kernel.name},
                       {"workload", kernel.workload_hash},
                       {"count", kernel.count},
                       {"rung", kernel.rung},
                       {"why", kernel.why},
                       {"noisy", kernel.noisy}});
  }
  return {{"target", model.package.info.target},
          {"numbers", PrecisionJson(model.package.info)},
          {"kernels", std::move(kernels)},
          {"steps", report.num_steps},
          {"images", report.images},
          {"batch", BatchJson(report)},
          {"branches", BranchesJson(report)},
          {"cascades", CascadesJson(report.cascades)},
          {"stale_attention", report.stale_attention},
          {"code_bytes", report.code_bytes},
          {"constant_bytes", report.constant_bytes},
          {"arena_bytes", report.arena_bytes}};
}

/// The first target's facts at the top, as where there is one; those of others beside them.
nlohmann::ordered_json ReportJson(const std::string& path,
                                  const std::vector<compiler::CompiledModel>& models,
                                  double seconds) {
  nlohmann::ordered_json object = {{"package", path}};
  object.update(ReportJson(models[0]));
  object["seconds"] = seconds;
  for (size_t i = 1; i < models.size(); ++i) object["also"].push_back(ReportJson(models[i]));
  return object;
}

/// Beside the package, whose disk must have room for as many bytes anyway. A pipe or a device has
/// none beside it.
std::string ScratchFolder(const std::string& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type != std::filesystem::file_type::regular && type != std::filesystem::file_type::not_found)
    return "";
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

/// One process, which maps a model as large as memory allows.
measure::BuilderOptions LinkBuilder() {
  measure::BuilderOptions options;
  options.address_space_bytes.reset();
  options.named_files = true;
  return options;
}

/// The model compiled for each target.
absl::StatusOr<std::vector<compiler::CompiledModel>> CompileAll(
    CommandContext& context, const std::vector<std::string>& targets, const TraceChoice& traces,
    const std::string& path, std::vector<std::string>* data_files) {
  std::vector<compiler::CompiledModel> models;
  for (const std::string& target : targets) {
    data_files->clear();
    HONE_ASSIGN_OR_RETURN(
        graph::Graph graph,
        ImportModel(context.arguments, context.arguments.Text("MODEL"), data_files));
    HONE_ASSIGN_OR_RETURN(models.emplace_back(),
                          CompileGraph(context.arguments, traces, std::move(graph),
                                       context.environment, ScratchFolder(path), target));
    runtime::PackageInfo& info = models.back().package.info;
    if (info.precision == "f32") continue;
    HONE_ASSIGN_OR_RETURN(info.error, MeasurePrecisionError(context, models.back(), target));
  }
  return models;
}

/// What was made, said.
void Tell(CommandContext& context, const TraceChoice& traces,
          const std::vector<std::string>& targets,
          const std::vector<compiler::CompiledModel>& models,
          const std::vector<std::string>& emitted, const std::string& report) {
  const std::string nothing = NothingKnownText(context.arguments, traces, models[0].report);
  context.err << EmptyInputsNote(context.arguments, InputsOf(models[0].package.plan))
              << (nothing.empty() ? ChosenLogText(traces, models[0].report) : nothing)
              << NoisyText(models[0].report) << PredictedText(models[0].report)
              << StaleAttentionText(models[0].report.stale_attention,
                                    models[0].report.kernels.size());
  for (const std::string& target : targets) context.err << KeptInF32Note(context.arguments, target);
  if (context.arguments.Flag("verbose")) {
    for (const compiler::CompiledModel& model : models) context.out << RungsText(model.report);
  }
  context.out << report;
  if (!emitted.empty()) context.out << fmt::format("also wrote {}\n", fmt::join(emitted, ", "));
}

}  // namespace

absl::Status RunCompile(CommandContext& context) {
  const Arguments& arguments = context.arguments;
  const MonotonicClock& clock = *context.environment.clock;
  const std::string source = arguments.Text("MODEL");
  // Its own name would be that of the output.
  if (const auto package = IsPackage(source); package.ok() && *package) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is a package, compiled already; name the model that it was made of (an "
                    ".onnx file)",
                    source));
  }
  const std::string path =
      arguments.TextOr("output", std::filesystem::path(source).replace_extension(".hone").string());
  const std::vector<std::string> inputs = InputFiles(arguments);
  HONE_RETURN_IF_ERROR(CheckOutput(path, inputs));
  HONE_ASSIGN_OR_RETURN(const EmitOptions emit, ReadEmit(arguments));
  HONE_RETURN_IF_ERROR(CheckEmit(emit, path, inputs));
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> targets, ReadTargets(arguments));
  HONE_RETURN_IF_ERROR(CheckDependencyFile(arguments, path, inputs));
  HONE_ASSIGN_OR_RETURN(const TraceChoice traces, ChooseTraces(arguments, context.environment));
  const int64_t begin = clock.NowNs();
  std::vector<std::string> data_files;
  HONE_ASSIGN_OR_RETURN(const std::vector<compiler::CompiledModel> models,
                        CompileAll(context, targets, traces, path, &data_files));
  HONE_ASSIGN_OR_RETURN(const compiler::PackageVariants variants, compiler::ShareConstants(models));
  if (const Status status = runtime::WritePackages(variants.packages, path); !status.ok()) {
    return ToAbsl(status);
  }
  measure::BuilderClient builder(LinkBuilder(), clock);
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> emitted,
                        EmitFiles(emit, path, targets[0], variants.packages[0].plan, builder));
  if (arguments.Given("depfile")) {
    HONE_RETURN_IF_ERROR(WriteDependencyFile(arguments, path, traces, data_files));
  }
  const double seconds = static_cast<double>(clock.NowNs() - begin) * 1e-9;
  if (!context.json()) {
    Tell(context, traces, targets, models, emitted,
         ReportText(path, models, variants.constants.size(), seconds));
    return absl::OkStatus();
  }
  auto object = ReportJson(path, models, seconds);
  object["log"] =
      TextOrNull(NumAnswered(models[0].report) > 0 && traces.HasLog() ? traces.path : "");
  object["emitted"] = emitted;
  context.json_result = JsonText(object);
  return absl::OkStatus();
}

}  // namespace hone::client
