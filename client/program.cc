#include "client/program.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"

#include "base/log.h"
#include "base/status.h"
#include "client/command_line.h"
#include "client/help_text.h"
#include "client/json_text.h"

namespace hone::client {
namespace {

struct CommandEntry {
  std::string_view name;
  CommandFunction function;
};
constexpr std::array kFunctions = {
    CommandEntry{"bench", RunBench},
    CommandEntry{"cache", RunCache},
    CommandEntry{"check", RunCheck},
    CommandEntry{"compile", RunCompile},
    CommandEntry{"completion", RunCompletion},
    CommandEntry{"db", RunDb},
    CommandEntry{"device", RunDevice},
    CommandEntry{"doctor", RunDoctor},
    CommandEntry{"explain", RunExplain},
    CommandEntry{"inspect", RunInspect},
    CommandEntry{"man", RunMan},
    CommandEntry{"prune", RunPrune},
    CommandEntry{"quantize", RunQuantise},
    CommandEntry{"query", RunQuery},
    CommandEntry{"report", RunReport},
    CommandEntry{"run", RunRun},
    CommandEntry{"session", RunSession},
    CommandEntry{"tune", RunTune},
    CommandEntry{"version", RunVersion},
    CommandEntry{"zoo", RunZoo},
};

constexpr std::string_view kFaultHelp =
    "  This is a fault in Hone, not in what you gave it. Please report it with this command line, "
    "the "
    "whole output, `hone --version`, and the model if you may share it.\n";

/// Prints the error; with --json also as an object, added to the command's result if there is one.
ExitCode ReportError(const absl::Status& status, std::string_view command, bool json,
                     const std::string& json_result, std::ostream& out, std::ostream& err) {
  const ExitCode code = ExitCodeOf(status);
  const std::string message = StatusMessage(status);
  // Ctrl-C and detaching were asked for: they are no errors.
  err << (command.empty() ? "hone" : fmt::format("hone {}", command))
      << (code == ExitCode::kInterrupted ? ": " : ": error: ") << message << '\n';
  if (code == ExitCode::kFault) err << kFaultHelp;
  if (json) {
    auto object = json_result.empty() ? nlohmann::ordered_json::object()
                                      : nlohmann::ordered_json::parse(json_result);
    object["error"] = {{"code", static_cast<int>(code)},
                       {"name", std::string(ExitCodeName(code))},
                       {"message", message}};
    out << JsonText(object) << '\n';
  }
  return code;
}

/// Whether a message speaks of --NAME, and of no longer name.
bool Mentions(std::string_view message, const std::string& name) {
  const std::string flag = "--" + name;
  for (size_t at = 0; (at = message.find(flag, at)) != std::string_view::npos; ++at) {
    const size_t end = at + flag.size();
    const char next = end < message.size() ? message[end] : ' ';
    if (next != '-' && std::isalnum(static_cast<unsigned char>(next)) == 0) return true;
  }
  return false;
}

/// An error that speaks of options, with where those of them stand that nobody typed.
absl::Status NameConfigured(const absl::Status& status, const CommandLine& line,
                            const std::string& config_path) {
  const std::string message = StatusMessage(status);
  std::vector<std::string> named;
  for (const std::string& name : line.arguments.configured()) {
    if (Mentions(message, name)) named.push_back(name);
  }
  if (named.empty()) return status;
  absl::Status told(status.code(),
                    fmt::format("{} ({} {} in '{}')", message, fmt::join(named, ", "),
                                named.size() == 1 ? "stands" : "stand", config_path));
  return HasExitCode(status) ? WithExitCode(told, ExitCodeOf(status)) : told;
}

absl::Status RunLine(const CommandLine& line, const Environment& environment, std::ostream& out,
                     std::ostream& err, std::string* json_result) {
  const CommandSpec* command = line.arguments.command();
  switch (line.action) {
    case CommandLine::Action::kHelp:
      out << (command != nullptr ? CommandHelp(*command) : ProgramHelp());
      break;
    case CommandLine::Action::kRun: {
      std::ostream nobody(nullptr);
      const bool quiet = line.arguments.Flag("quiet");
      if (quiet) SetLogLevel(LogLevel::kError);
      Environment told = environment;
      told.error_is_terminal &= !quiet;
      CommandContext context{line.arguments, told, out, quiet ? nobody : err};
      const absl::Status status = FindCommandFunction(command->name)(context);
      if (!status.ok()) {
        *json_result = std::move(context.json_result);
        return NameConfigured(status, line, environment.config_path);
      }
      if (context.json()) out << context.json_result << '\n';
      break;
    }
  }
  out.flush();
  if (!out.good()) {
    // The reader has what it wanted and went away: `hone man tune | head`.
    if (environment.output_abandoned != nullptr && environment.output_abandoned()) {
      return absl::OkStatus();
    }
    return absl::ResourceExhaustedError(
        "cannot write to standard output: it is closed, or the disk is full");
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
  if (words.empty()) {
    err << FirstHelp();
    return ExitCode::kUsage;
  }
  // Known before the line is parsed, so that a bad line too is answered in JSON.
  const bool asked = std::find(words.begin(), words.end(), "--json") != words.end();
  bool json = asked;
  std::string_view command;
  if (const CommandSpec* spec = FindCommand(words.front())) command = spec->name;
  std::string json_result;
  absl::Status status;
  try {
    status = [&]() -> absl::Status {
      HONE_ASSIGN_OR_RETURN(const ConfigFile config, ReadConfig(environment.config_path));
      const std::vector<std::string>* configured = config.Find(command, "json");
      json = asked || (configured != nullptr && configured->front() == "true");
      HONE_ASSIGN_OR_RETURN(const CommandLine line, ParseCommandLine(words, config));
      return RunLine(line, environment, out, err, &json_result);
    }();
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError(
        "out of memory; close other programs or use a machine with more");
  } catch (const std::exception& exception) {
    status = absl::InternalError(exception.what());
  }
  return status.ok() ? ExitCode::kDone : ReportError(status, command, json, json_result, out, err);
}

}  // namespace hone::client
