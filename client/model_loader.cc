#include "client/model_loader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <span>

#include "fmt/format.h"
#include "fmt/ranges.h"

#include "base/core/clock.h"
#include "base/core/cpu.h"
#include "base/file.h"
#include "base/status.h"
#include "client/bf16_gain.h"
#include "client/exit_code.h"
#include "client/folder_trace_source.h"
#include "client/import_progress.h"
#include "client/log_trace_source.h"
#include "client/model_options.h"
#include "client/open_log.h"
#include "client/server_connection.h"
#include "client/server_options.h"
#include "client/user_cache.h"
#include "graph/onnx_import/import.h"
#include "measure/builder_client.h"
#include "measure/device.h"
#include "runtime/package.h"

namespace hone::client {
namespace {

absl::Status Usage(const std::string& message) {
  return WithExitCode(absl::InvalidArgumentError(message), ExitCode::kUsage);
}

/// Whose records are looked up, and what the package says it was made for.
absl::StatusOr<std::string> DeviceClassOf(const Arguments& arguments, std::string text) {
  const bool has_option = arguments.command()->FindOption("device-class") != nullptr;
  if (has_option && arguments.Given("device-class")) return arguments.Text("device-class");
  if (text.empty()) {
    HONE_ASSIGN_OR_RETURN(text, ReadTarget(arguments));
  }
  ir::Target target;
  std::string why;
  if (!ir::ParseTarget(text, &target, &why)) return absl::InvalidArgumentError(why);
  return measure::DeviceClassFor(target);
}

absl::StatusOr<LoadedModel> LoadPackage(const Arguments& arguments, const std::string& path) {
  for (const char* option :
       {"dim", "shape", "bind", "cut", "batch", "branches", "cascades", "target", "traces", "db",
        "snapshot", "require", "accuracy", "precision", "device-class"}) {
    if (!arguments.GivenOnLine(option)) continue;
    return WithExitCode(
        absl::InvalidArgumentError(fmt::format(
            "'{}' is a package, compiled already: --{} has no meaning for it; give the model", path,
            option)),
        ExitCode::kUsage);
  }
  auto executable = runtime::Executable::Open(path, {.cores = UsableCores()});
  if (!executable.ok()) return ToAbsl(executable.status());
  LoadedModel model;
  model.name = ModelName(path);
  if (arguments.Given("threads")) model.threads = static_cast<int>(arguments.Integer("threads"));
  model.executable = *executable;
  model.inputs = InputsOf(model.executable->plan());
  return model;
}

}  // namespace

absl::StatusOr<bool> IsPackage(const std::string& path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                       [](std::FILE* f) { return std::fclose(f); });
  if (!file) return UnreadableFile(errno, path);
  char start[8] = {};
  const size_t got = std::fread(start, 1, sizeof start, file.get());
  if (got < sizeof start && std::ferror(file.get()) != 0) {
    return UnreadableFile(errno, path);
  }
  return std::string_view(start, got) == "\x89HONE\r\n\x1a";
}

std::string ModelName(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

absl::StatusOr<graph::Graph> ImportModel(const Arguments& arguments, const std::string& path,
                                         std::vector<std::string>* data_files) {
  HONE_ASSIGN_OR_RETURN(graph::ImportOptions options, ReadImportOptions(arguments));
  options.data_files = data_files;
  const SystemMonotonicClock clock;
  ImportProgress progress(clock, std::cerr, ::isatty(STDERR_FILENO) == 1);
  options.on_iteration = [&](const std::string& node, int64_t done, int64_t total) {
    progress.Show(node, done, total);
  };
  HONE_ASSIGN_OR_RETURN(const ir::DType precision, ReadPrecision(arguments));
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, graph::ImportOnnxFile(path, options));
  graph.precision = precision;
  return graph;
}

absl::StatusOr<std::unique_ptr<LogTraceSource>> OpenLogTraces(const Arguments& arguments,
                                                              const TraceChoice& choice,
                                                              const std::string& target) {
  const bool has_require = arguments.command()->FindOption("require") != nullptr;
  const std::string require = has_require ? arguments.Text("require") : "default";
  const RequiredRung required = require == "exact"     ? RequiredRung::kExact
                                : require == "nearest" ? RequiredRung::kNearest
                                                       : RequiredRung::kDefault;
  LogTerms terms = {.required = required};
  HONE_ASSIGN_OR_RETURN(terms.device_class, DeviceClassOf(arguments, target));
  HONE_ASSIGN_OR_RETURN(terms.accuracy, ReadAccuracy(arguments));
  const bool predicted = arguments.command()->FindOption("allow-predicted") != nullptr &&
                         arguments.Flag("allow-predicted");
  if (predicted) terms.predictions = db::Predictions::kTaken;
  if (choice.kind == TraceChoice::Kind::kServer) {
    if (predicted && arguments.GivenOnLine("allow-predicted")) {
      return Usage(
          "--server excludes --allow-predicted: a farm's log has no predictions to look up");
    }
    HONE_ASSIGN_OR_RETURN(const ServerAddress address, ReadServer(arguments));
    HONE_ASSIGN_OR_RETURN(auto server, ServerConnection::Open(address));
    return LogTraceSource::Create(std::make_unique<ServerDatabase>(std::move(server)),
                                  address.address, std::move(terms));
  }
  std::string path = choice.path;
  db::OpenOptions options;
  if (choice.kind == TraceChoice::Kind::kSnapshot) {
    constexpr std::string_view kMark = "@sha256:";
    const size_t at = path.rfind(kMark);
    options.sha256 = at == std::string::npos ? "" : path.substr(at + kMark.size());
    if (options.sha256.size() != 64 ||
        options.sha256.find_first_not_of("0123456789abcdef") != std::string::npos) {
      return Usage(fmt::format(
          "--snapshot: \"{}\" is not FILE@sha256: and 64 hexadecimal digits in lower case; "
          "`hone db snapshot` prints it",
          path));
    }
    path.resize(at);
    options.mode = db::OpenMode::kSnapshot;
  }
  auto log = OpenUserLog(path, options, choice.name());
  if (!log.ok()) return ChosenLogError(log.status(), choice);
  auto source = LogTraceSource::Create(*std::move(log), std::move(terms));
  if (!source.ok()) return ChosenLogError(source.status(), choice);
  return source;
}

absl::StatusOr<std::unique_ptr<compiler::TraceSource>> OpenTraces(const Arguments& arguments,
                                                                  const TraceChoice& choice,
                                                                  const std::string& target) {
  if (choice.HasLog()) return OpenLogTraces(arguments, choice, target);
  if (choice.kind == TraceChoice::Kind::kDefaults) {
    return std::make_unique<compiler::DefaultTraceSource>();
  }
  if (arguments.GivenOnLine("accuracy")) {
    return Usage("--traces excludes --accuracy: Traces given by hand are taken as they are");
  }
  std::error_code error;
  if (!std::filesystem::is_directory(choice.path, error)) {
    return absl::NotFoundError(fmt::format("--traces: there is no folder '{}'", choice.path));
  }
  return std::make_unique<FolderTraceSource>(choice.path);
}

measure::BuilderOptions LocalBuilder() {
  measure::BuilderOptions options;
  options.processes = UsableCores();
  return options;
}

measure::BuilderOptions LocalBuilder(const Arguments& arguments, const Environment& environment) {
  measure::BuilderOptions options = LocalBuilder();
  options.cache = OpenUserCache(arguments, environment);
  return options;
}

absl::Status CompileError(const absl::Status& status) {
  if (HasExitCode(status)) return status;
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kPermissionDenied: return status;
    // The machine had no memory left for the builder and killed it.
    case absl::StatusCode::kUnavailable: return WithExitCode(status, ExitCode::kNoSpace);
    // Only a missing helper program is not found here: the installation is not whole. And what a
    // machine lacks is an instruction set or the sandbox.
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition: return WithExitCode(status, ExitCode::kDevice);
    default: return WithExitCode(status, ExitCode::kFault);
  }
}

absl::Status CompileError(const absl::Status& status, const TraceChoice& choice) {
  const bool of_folder = choice.kind == TraceChoice::Kind::kFolder;
  if (of_folder && absl::IsInvalidArgument(status)) return status;
  const bool of_log = HasExitCode(status) && ExitCodeOf(status) == ExitCode::kLog;
  return of_log ? ChosenLogError(status, choice) : CompileError(status);
}

absl::StatusOr<compiler::CompiledModel> CompileGraph(const Arguments& arguments,
                                                     const TraceChoice& choice, graph::Graph graph,
                                                     const Environment& environment,
                                                     const std::string& scratch_folder,
                                                     const std::string& target) {
  compiler::CompileOptions options;
  options.scratch_folder = scratch_folder;
  options.batch = ReadBatch(arguments);
  options.branches = ReadBranches(arguments);
  options.cascades = ReadCascades(arguments);
  HONE_ASSIGN_OR_RETURN(options.accuracy, ReadAccuracy(arguments));
  options.target = target;
  if (target.empty()) {
    HONE_ASSIGN_OR_RETURN(options.target, ReadTarget(arguments));
  }
  // Without a log nothing depends on the machine: the same bytes everywhere.
  if (choice.HasLog()) {
    HONE_ASSIGN_OR_RETURN(options.device_class, DeviceClassOf(arguments, options.target));
  }
  measure::BuilderClient builder(LocalBuilder(arguments, environment), *environment.clock);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<compiler::TraceSource> traces,
                        OpenTraces(arguments, choice, options.target));
  auto model = compiler::CompileModel(std::move(graph), options, builder, *traces);
  if (!model.ok()) return CompileError(model.status(), choice);
  // Nor where a log that nobody named answered nothing.
  if (choice.unasked && NumAnswered(model->report) == 0) model->package.info.device_class.clear();
  return model;
}

absl::StatusOr<LoadedModel> LoadModel(const CommandContext& context, const std::string& path) {
  const Arguments& arguments = context.arguments;
  HONE_ASSIGN_OR_RETURN(const bool package, IsPackage(path));
  if (package) {
    HONE_ASSIGN_OR_RETURN(LoadedModel loaded, LoadPackage(arguments, path));
    const std::vector<std::string>& targets = loaded.executable->targets();
    if (targets.size() > 1 && !context.json()) {
      context.err << fmt::format("'{}' has code for {}; this machine runs {}\n", path,
                                 fmt::join(targets, " and "), loaded.executable->info().target);
    }
    return loaded;
  }
  HONE_ASSIGN_OR_RETURN(const TraceChoice choice, ChooseTraces(arguments, context.environment));
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, ImportModel(arguments, path));
  LoadedModel loaded;
  loaded.name = ModelName(path);
  loaded.inputs = InputsOf(graph);
  HONE_ASSIGN_OR_RETURN(const std::string target, ReadTarget(arguments));
  if (!context.json())
    context.err << EmptyInputsNote(arguments, loaded.inputs) << KeptInF32Note(arguments, target);
  std::string bytes;
  {
    HONE_ASSIGN_OR_RETURN(compiler::CompiledModel model,
                          CompileGraph(arguments, choice, std::move(graph), context.environment));
    if (choice.HasLog() && NumAnswered(model.report) > 0) loaded.log = choice.path;
    if (!context.json()) {
      context.err << ChosenLogText(choice, model.report)
                  << StaleAttentionText(model.report.stale_attention, model.report.kernels.size());
    }
    auto serialised = runtime::SerializePackage(model.package);
    if (!serialised.ok()) return CompileError(ToAbsl(serialised.status()));
    bytes = *std::move(serialised);
  }
  auto executable = runtime::Executable::OpenMemory(std::as_bytes(std::span(bytes)), {});
  if (!executable.ok()) return ToAbsl(executable.status());
  loaded.executable = *std::move(executable);
  return loaded;
}

}  // namespace hone::client
