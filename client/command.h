#pragma once

#include <ostream>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "base/core/clock.h"
#include "client/arguments.h"

namespace hone::client {

/// What commands learn of the machine and the user, read once in main.
struct Environment {
  std::string config_path;   ///< $XDG_CONFIG_HOME/hone/config.toml; empty: none
  std::string cache_folder;  ///< $XDG_CACHE_HOME/hone; empty: no home folder
  std::string data_folder;   ///< $XDG_DATA_HOME/hone; empty: no home folder
  std::string log_path;      ///< $HONE_DB; empty: tune.db in data_folder
  const MonotonicClock* clock = nullptr;
  bool error_is_terminal = false;
  /// Whether the reader of standard output is gone (`hone ... | head`); null: unknown.
  bool (*output_abandoned)() = nullptr;
};

/// One call of one command. Results go to `out`, or with --json to `json_result`; progress and
/// warnings to `err`; the caller prints the error that the command returns.
struct CommandContext {
  const Arguments& arguments;
  const Environment& environment;
  std::ostream& out;
  std::ostream& err;
  /// With --json: the result as one object, printed at the end, also beside an error.
  std::string json_result = {};

  /// --json, or -o json where a command has that.
  bool json() const {
    return arguments.Flag("json") || (arguments.command()->FindOption("format") != nullptr &&
                                      arguments.Text("format") == "json");
  }
};

using CommandFunction = absl::Status (*)(CommandContext&);

absl::Status RunBench(CommandContext& context);
absl::Status RunCache(CommandContext& context);
absl::Status RunCheck(CommandContext& context);
absl::Status RunCompile(CommandContext& context);
absl::Status RunCompletion(CommandContext& context);
absl::Status RunDb(CommandContext& context);
absl::Status RunDevice(CommandContext& context);
absl::Status RunDoctor(CommandContext& context);
absl::Status RunExplain(CommandContext& context);
absl::Status RunInspect(CommandContext& context);
absl::Status RunMan(CommandContext& context);
absl::Status RunPrune(CommandContext& context);
absl::Status RunQuantise(CommandContext& context);
absl::Status RunQuery(CommandContext& context);
absl::Status RunReport(CommandContext& context);
absl::Status RunRun(CommandContext& context);
absl::Status RunSession(CommandContext& context);
absl::Status RunTune(CommandContext& context);
absl::Status RunVersion(CommandContext& context);
absl::Status RunZoo(CommandContext& context);

/// The function of a command of the option table; every command has one.
CommandFunction FindCommandFunction(std::string_view name);

}  // namespace hone::client
