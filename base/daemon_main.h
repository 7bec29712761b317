#pragma once

#include <span>
#include <string>

#include "base/log.h"
#include "base/program_options.h"

namespace hone {

/// Marks an error as a server's that was asked: it cannot be reached, or refuses. Exit code 6, as
/// that of `hone`.
absl::Status AsServerError(absl::Status status);

/// A program that serves until it is told to end.
struct DaemonProgram {
  const char* name;
  const char* summary;  ///< what it is, in a few words
  const char* usage;
  /// Among them help, man, version, log-level, config and check-config.
  std::span<const OptionSpec> options;
  const char* default_config;
  absl::Status (*run)(const ProgramOptions& options);
  LogOptions log = {};  ///< its level is that of --log-level
};

/// What main does: reads the options, answers --help, --man and --version, opens the log, runs.
/// Returns the exit code: 0, 2 for what the user can mend on the command line or in the config file
/// (kInvalidArgument), 6 after AsServerError, else 1, with the error on standard error.
int RunDaemon(const DaemonProgram& program, int argc, char** argv);

}  // namespace hone
