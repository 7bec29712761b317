#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "client/command.h"
#include "client/exit_code.h"

namespace hone::client {

/// The program `hone` without its process: `words` follow the program's name. Prints results to
/// `out` and errors to `err` as "hone COMMAND: error: WHAT"; with --json an error is also an object
/// {"error":{"code","name","message"}} on `out`.
ExitCode RunProgram(const std::vector<std::string>& words, const Environment& environment,
                    std::ostream& out, std::ostream& err);

}  // namespace hone::client
