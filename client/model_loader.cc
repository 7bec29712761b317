#include "client/model_loader.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <span>

#include "fmt/format.h"

#include "base/core/cpu.h"
#include "base/file.h"
#include "base/status.h"
#include "client/exit_code.h"
#include "client/folder_trace_source.h"
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
std::string DeviceClassOf(const Arguments& arguments) {
  const bool has_option = arguments.command()->FindOption("device-class") != nullptr;
  return has_option && arguments.Given("device-class") ? arguments.Text("device-class")
                                                       : measure::DescribeHost().device_class;
}

/// Without a log every answer would be the default's rung, which --require may forbid.
absl::Status RequireNeedsLog(const Arguments& arguments) {
  const bool has_option = arguments.command()->FindOption("require") != nullptr;
  if (!has_option || arguments.Text("require") == "default") return absl::OkStatus();
  return Usage(fmt::format(
      "--require {} needs a log: name one with --db LOG or --snapshot FILE@sha256:DIGEST",
      arguments.Text("require")));
}

absl::StatusOr<LoadedModel> LoadPackage(const Arguments& arguments, const std::string& path) {
  for (const char* option : {"dim", "shape", "bind", "target", "traces", "db", "snapshot",
                             "require", "accuracy", "device-class"}) {
    if (!arguments.GivenOnLine(option)) continue;
    return WithExitCode(
        absl::InvalidArgumentError(fmt::format(
            "'{}' is a package, compiled already: --{} has no meaning for it; give the model", path,
            option)),
        ExitCode::kUsage);
  }
  auto executable = runtime::Executable::Open(path, {});
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
  return graph::ImportOnnxFile(path, options);
}

absl::StatusOr<std::unique_ptr<LogTraceSource>> OpenLogTraces(const Arguments& arguments,
                                                              const std::string& default_path) {
  const bool pinned = arguments.Given("snapshot");
  if (pinned && arguments.Given("db")) return Usage("--db and --snapshot exclude each other");
  std::string path = arguments.TextOr(pinned ? "snapshot" : "db", "");
  const bool has_require = arguments.command()->FindOption("require") != nullptr;
  const std::string require = has_require ? arguments.Text("require") : "default";
  const RequiredRung required = require == "exact"     ? RequiredRung::kExact
                                : require == "nearest" ? RequiredRung::kNearest
                                                       : RequiredRung::kDefault;
  LogTerms terms = {.device_class = DeviceClassOf(arguments), .required = required};
  HONE_ASSIGN_OR_RETURN(terms.accuracy, ReadAccuracy(arguments));
  if (AsksServer(arguments)) {
    if (!path.empty()) return Usage("--server excludes --db and --snapshot");
    HONE_ASSIGN_OR_RETURN(const ServerAddress address, ReadServer(arguments));
    HONE_ASSIGN_OR_RETURN(auto server, ServerConnection::Open(address));
    return LogTraceSource::Create(std::make_unique<ServerDatabase>(std::move(server)),
                                  address.address, std::move(terms));
  }
  if (path.empty()) path = default_path;
  if (path.empty()) {
    return Usage(
        "name a log with --db LOG or --snapshot FILE@sha256:DIGEST, or a --server ADDRESS");
  }
  db::OpenOptions options;
  if (pinned) {
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
  HONE_ASSIGN_OR_RETURN(auto log, OpenUserLog(path, options));
  return LogTraceSource::Create(std::move(log), std::move(terms));
}

absl::StatusOr<std::unique_ptr<compiler::TraceSource>> OpenTraces(const Arguments& arguments) {
  std::unique_ptr<compiler::TraceSource> source;
  const bool has_log =
      arguments.Given("db") || arguments.Given("snapshot") || AsksServer(arguments);
  if (arguments.Given("traces")) {
    if (has_log) return Usage("--traces excludes --db, --snapshot and --server");
    if (arguments.GivenOnLine("accuracy")) {
      return Usage("--traces excludes --accuracy: Traces given by hand are taken as they are");
    }
    const bool has_require = arguments.command()->FindOption("require") != nullptr;
    if (has_require && arguments.GivenOnLine("require")) {
      HONE_RETURN_IF_ERROR(RequireNeedsLog(arguments));
    }
    std::error_code error;
    if (!std::filesystem::is_directory(arguments.Text("traces"), error)) {
      return absl::NotFoundError(
          fmt::format("--traces: there is no folder '{}'", arguments.Text("traces")));
    }
    source = std::make_unique<FolderTraceSource>(arguments.Text("traces"));
  } else if (has_log) {
    HONE_ASSIGN_OR_RETURN(source, OpenLogTraces(arguments));
  } else {
    HONE_RETURN_IF_ERROR(RequireNeedsLog(arguments));
    source = std::make_unique<compiler::DefaultTraceSource>();
  }
  return source;
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

absl::Status CompileError(const absl::Status& status, const Arguments& arguments) {
  if (absl::IsInvalidArgument(status) && arguments.Given("traces")) return status;
  return CompileError(status);
}

absl::StatusOr<compiler::CompiledModel> CompileGraph(const Arguments& arguments, graph::Graph graph,
                                                     const Environment& environment) {
  compiler::CompileOptions options;
  HONE_ASSIGN_OR_RETURN(options.target, ReadTarget(arguments));
  HONE_RETURN_IF_ERROR(ReadAccuracy(arguments).status());
  // Without a log nothing depends on the machine: the same bytes everywhere.
  const bool has_log =
      arguments.Given("db") || arguments.Given("snapshot") || AsksServer(arguments);
  if (has_log) options.device_class = DeviceClassOf(arguments);
  measure::BuilderClient builder(LocalBuilder(arguments, environment), *environment.clock);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<compiler::TraceSource> traces, OpenTraces(arguments));
  auto model = compiler::CompileModel(std::move(graph), options, builder, *traces);
  if (!model.ok()) return CompileError(model.status(), arguments);
  return model;
}

absl::StatusOr<LoadedModel> LoadModel(const Arguments& arguments, const std::string& path,
                                      const Environment& environment) {
  HONE_ASSIGN_OR_RETURN(const bool package, IsPackage(path));
  if (package) return LoadPackage(arguments, path);
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, ImportModel(arguments, path));
  LoadedModel loaded;
  loaded.name = ModelName(path);
  loaded.inputs = InputsOf(graph);
  std::string bytes;
  {
    HONE_ASSIGN_OR_RETURN(compiler::CompiledModel model,
                          CompileGraph(arguments, std::move(graph), environment));
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
