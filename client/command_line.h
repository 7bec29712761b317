#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/arguments.h"
#include "client/config_file.h"

namespace hone::client {

/// What a command line asks for.
struct CommandLine {
  enum class Action {
    kRun,   ///< run `arguments`
    kHelp,  ///< print the help of arguments' command, or of `hone` when there is none
  };
  Action action = Action::kRun;
  Arguments arguments;  ///< kHelp: of no command means the program's help
};

/// Parses the words after the program's name against the option table; values missing there come
/// from `config`. Every error is the user's (exit code 2) and says what is accepted.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& words,
                                             const ConfigFile& config);

}  // namespace hone::client
