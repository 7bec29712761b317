#include "client/trace_choice.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "fmt/format.h"

#include "base/shell_word.h"
#include "base/status.h"
#include "client/exit_code.h"
#include "client/server_options.h"

namespace hone::client {
namespace {

using Kind = TraceChoice::Kind;

constexpr std::string_view kWays[] = {"no-log", "traces", "db", "snapshot", "server"};

absl::Status Usage(const std::string& message) {
  return WithExitCode(absl::InvalidArgumentError(message), ExitCode::kUsage);
}

bool Has(const Arguments& arguments, std::string_view option) {
  return arguments.command()->FindOption(option) != nullptr;
}

/// The ways that the line, or else the config file, asks for.
std::vector<std::string_view> Asked(const Arguments& arguments, Arguments::Source source) {
  std::vector<std::string_view> ways;
  const bool line = source == Arguments::Source::kLine;
  for (const std::string_view way : kWays) {
    if (!Has(arguments, way) || !arguments.Given(way)) continue;
    if (arguments.GivenOnLine(way) != line || (!line && way == "db")) continue;
    if (way == "no-log" && !arguments.Flag(way)) continue;
    ways.push_back(way);
  }
  return ways;
}

TraceChoice Of(const Arguments& arguments, std::string_view way) {
  if (way == "no-log") return {};
  const Kind kind = way == "traces"     ? Kind::kFolder
                    : way == "db"       ? Kind::kLog
                    : way == "snapshot" ? Kind::kSnapshot
                                        : Kind::kServer;
  return {.kind = kind, .path = arguments.Text(way)};
}

absl::Status Unusable(const std::string& path, const std::string& why) {
  return WithExitCode(absl::FailedPreconditionError(fmt::format("log '{}': {}", path, why)),
                      ExitCode::kLog);
}

/// What stands where `hone tune` keeps the log.
absl::StatusOr<TraceChoice> OfPlace(const Arguments& arguments, const Environment& environment) {
  TraceChoice choice = {
      .kind = Kind::kLog, .unasked = true, .has_no_log = Has(arguments, "no-log")};
  auto place = UserLogPath(arguments, environment);
  if (!place.ok()) return TraceChoice{};
  choice.path = *std::move(place);
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(choice.path, error);
  if (status.type() == std::filesystem::file_type::none) {
    return ChosenLogError(Unusable(choice.path, "it cannot be read: " + error.message()), choice);
  }
  if (!std::filesystem::exists(status)) {
    if (!std::filesystem::is_symlink(std::filesystem::symlink_status(choice.path, error))) {
      return TraceChoice{.missing = choice.path};
    }
    const std::string to = std::filesystem::read_symlink(choice.path, error).string();
    return ChosenLogError(
        Unusable(choice.path, fmt::format("it is a link to '{}', where nothing is; mount or make "
                                          "that, or remove the link",
                                          to)),
        choice);
  }
  // As `hone tune` takes it: one that is still to be begun.
  if (std::filesystem::is_regular_file(status) &&
      std::filesystem::file_size(choice.path, error) == 0) {
    return TraceChoice{.missing = choice.path};
  }
  return choice;
}

/// Without a log every answer would be the default's rung, which --require may forbid. One of the
/// config file speaks of logs alone, and yields to a line that asks for none.
absl::Status CheckRequire(const Arguments& arguments, const TraceChoice& choice, bool on_line) {
  if (choice.HasLog() || !Has(arguments, "require")) return absl::OkStatus();
  if (arguments.Text("require") == "default") return absl::OkStatus();
  if (!arguments.GivenOnLine("require") && (on_line || choice.kind == Kind::kFolder)) {
    return absl::OkStatus();
  }
  return Usage(fmt::format(
      "--require {} needs a log{}: name one with --db LOG or --snapshot FILE@sha256:DIGEST",
      arguments.Text("require"),
      choice.missing.empty() ? "" : fmt::format(", and there is none at '{}'", choice.missing)));
}

/// What a shell has to be told to tune the same model for the same target.
std::string TuneLine(const Arguments& arguments, const TraceChoice& choice,
                     const std::string& model) {
  std::string line = "hone tune " + ShellWord(model);
  if (choice.kind == Kind::kServer) line += ' ' + ServerWords(arguments);
  if (choice.kind == Kind::kLog && !choice.unasked) line += " --db " + ShellWord(choice.path);
  for (const char* name : {"target", "threads", "device-class", "dim", "shape", "bind", "cut",
                           "batch", "accuracy", "precision"}) {
    // Only this machine's own class can be measured here.
    if (std::string_view(name) == "device-class" && choice.kind != Kind::kServer) continue;
    for (const std::string& value : arguments.List(name)) {
      if (arguments.GivenOnLine(name)) line += fmt::format(" --{} {}", name, ShellWord(value));
    }
  }
  return line;
}

}  // namespace

absl::StatusOr<TraceChoice> ChooseTraces(const Arguments& arguments,
                                         const Environment& environment) {
  TraceChoice choice;
  const std::vector<std::string_view> on_line = Asked(arguments, Arguments::Source::kLine);
  const std::vector<std::string_view> ways =
      on_line.empty() ? Asked(arguments, Arguments::Source::kConfig) : on_line;
  if (ways.size() > 1) {
    return Usage(fmt::format(
        "--{} and --{} exclude each other: each says where schedules come from", ways[0], ways[1]));
  }
  if (!ways.empty()) {
    choice = Of(arguments, ways[0]);
  } else {
    HONE_ASSIGN_OR_RETURN(choice, OfPlace(arguments, environment));
  }
  HONE_RETURN_IF_ERROR(CheckRequire(arguments, choice, !on_line.empty()));
  return choice;
}

absl::Status ChosenLogError(const absl::Status& status, const TraceChoice& choice) {
  if (status.ok() || !choice.unasked) return status;
  const absl::Status told(
      status.code(), StatusMessage(status) +
                         (choice.has_no_log ? "; --no-log compiles the defaults without it" : ""));
  return HasExitCode(status) ? WithExitCode(told, ExitCodeOf(status)) : told;
}

int NumAnswered(const compiler::CompileReport& report) {
  return static_cast<int>(
      std::count_if(report.kernels.begin(), report.kernels.end(),
                    [](const compiler::KernelReport& k) { return k.rung != "default"; }));
}

namespace {

int NumJudged(const compiler::CompileReport& report) {
  return static_cast<int>(std::ranges::count_if(report.kernels, &compiler::KernelReport::judged));
}

}  // namespace

std::string ChosenLogText(const TraceChoice& choice, const compiler::CompileReport& report) {
  const int answered = NumAnswered(report);
  const int judged = NumJudged(report);
  if (answered == 0 && judged > 0) {
    return fmt::format(
        "the model keeps its default schedules by a verdict in '{}'; `hone query` shows it\n",
        choice.path);
  }
  if (!choice.unasked) return "";
  return fmt::format(
      "{} of {} kernels from '{}'{}; {}\n", answered, report.kernels.size(), choice.path,
      judged > 0 ? fmt::format(", {} put back to the default", judged) : "",
      answered > 0 ? "--no-log compiles the defaults" : "all have default schedules");
}

std::string StaleAttentionText(int stale, size_t kernels) {
  if (stale == 0) return "";
  return fmt::format(
      "the log has records of attention in two kernels, which this version computes in one ({} of "
      "{} kernels); `hone tune` finds schedules for it\n",
      stale, kernels);
}

std::string NothingKnownText(const Arguments& arguments, const TraceChoice& choice,
                             const compiler::CompileReport& report) {
  if (report.kernels.empty() || NumAnswered(report) + NumJudged(report) > 0) return "";
  return NothingKnownText(arguments, choice, arguments.Text("MODEL"));
}

std::string NothingKnownText(const Arguments& arguments, const TraceChoice& choice,
                             const std::string& model) {
  if (!choice.HasLog() && choice.missing.empty()) return "";
  const std::string where =
      choice.HasLog() ? fmt::format("'{}' knows none of this model's kernels", choice.path)
                      : fmt::format("there is no log '{}'", choice.missing);
  return fmt::format("{}: all have default schedules; to search for faster ones:\n    {}\n", where,
                     TuneLine(arguments, choice, model));
}

}  // namespace hone::client
