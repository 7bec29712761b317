#include "client/program.h"

#include <algorithm>
#include <array>
#include <exception>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/status.h"
#include "client/command_line.h"
#include "client/help_text.h"
#include "client/version_text.h"

namespace hone::client {
namespace {

struct CommandEntry {
  std::string_view name;
  CommandFunction function;
};
constexpr std::array kFunctions = {
    CommandEntry{"completion", RunCompletion},
    CommandEntry{"man", RunMan},
    CommandEntry{"zoo", RunZoo},
};

constexpr std::string_view kFaultHelp =
    "  This is a fault in Hone, not in what you gave it. Please report it with this command line, "
    "the "
    "whole output, `hone --version`, and the model if you may share it.\n";

ExitCode ReportError(const absl::Status& status, std::string_view command, bool json,
                     std::ostream& out, std::ostream& err) {
  const ExitCode code = ExitCodeOf(status);
  const std::string message = StatusMessage(status);
  err << (command.empty() ? "hone" : fmt::format("hone {}", command)) << ": error: " << message
      << '\n';
  if (code == ExitCode::kFault) err << kFaultHelp;
  if (json) {
    const nlohmann::ordered_json object = {{"error",
                                            {{"code", static_cast<int>(code)},
                                             {"name", std::string(ExitCodeName(code))},
                                             {"message", message}}}};
    out << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  }
  return code;
}

absl::Status RunLine(const CommandLine& line, const Environment& environment, bool json,
                     std::ostream& out, std::ostream& err) {
  switch (line.action) {
    case CommandLine::Action::kVersion: out << (json ? VersionJson() : VersionText()); break;
    case CommandLine::Action::kHelp:
      out << (line.arguments ? CommandHelp(line.arguments->command()) : ProgramHelp());
      break;
    case CommandLine::Action::kRun: {
      CommandContext context{*line.arguments, environment, out, err};
      HONE_RETURN_IF_ERROR(FindCommandFunction(line.arguments->command().name)(context));
      break;
    }
  }
  out.flush();
  if (!out.good()) {
    return absl::ResourceExhaustedError(
        "cannot write to standard output: the disk is full or the reader has gone");
  }
  return absl::OkStatus();
}

}  // namespace

CommandFunction FindCommandFunction(std::string_view name) {
  for (const CommandEntry& entry : kFunctions) {
    if (entry.name == name) return entry.function;
  }
  HONE_CHECK(false) << "command " << name << " has no function";
  return nullptr;
}

ExitCode RunProgram(const std::vector<std::string>& words, const Environment& environment,
                    std::ostream& out, std::ostream& err) {
  // Known before the line is parsed, so that a bad line too is answered in JSON.
  const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
  std::string_view command;
  if (!words.empty()) {
    if (const CommandSpec* spec = FindCommand(words.front())) command = spec->name;
  }
  try {
    const auto config = ReadConfig(environment.config_path);
    if (!config.ok()) return ReportError(config.status(), command, json, out, err);
    const auto line = ParseCommandLine(words, *config);
    if (!line.ok()) return ReportError(line.status(), command, json, out, err);
    const absl::Status status = RunLine(*line, environment, json, out, err);
    return status.ok() ? ExitCode::kDone : ReportError(status, command, json, out, err);
  } catch (const std::bad_alloc&) {
    return ReportError(absl::ResourceExhaustedError(
                           "out of memory; close other programs or use a machine with more"),
                       command, json, out, err);
  } catch (const std::exception& exception) {
    return ReportError(absl::InternalError(exception.what()), command, json, out, err);
  }
}

}  // namespace hone::client
