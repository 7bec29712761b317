#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/arguments.h"
#include "client/command.h"
#include "compiler/compile_model.h"

namespace hone::client {

/// Where a command that is given a model takes its schedules from.
struct TraceChoice {
  enum class Kind : uint8_t { kDefaults, kFolder, kLog, kSnapshot, kServer };
  Kind kind = Kind::kDefaults;
  std::string path;  ///< the folder, the log, FILE@sha256:DIGEST, or the server's address
  /// The log is where `hone tune` keeps it unless told otherwise; nobody named it for this command.
  bool unasked = false;
  /// kDefaults: where the log would be that --no-log did not forbid; empty: nowhere.
  std::string missing;

  /// Whether look-ups answer, and so the device class matters.
  bool HasLog() const { return kind >= Kind::kLog; }
};

/// One of --no-log, --traces, --db, --snapshot and --server, of those that the command has: first
/// what its line says, then the config file (but for `db`, which is a place alone). Without any,
/// the user's log where something stands at its place; commands without --no-log take it where
/// nothing does, too. Usage errors: two of them, or --require without a log. An error with kLog:
/// the place cannot be looked at.
absl::StatusOr<TraceChoice> ChooseTraces(const Arguments& arguments,
                                         const Environment& environment);

/// An error of the choice's log, or of look-ups in it: one that nobody named is told how to do
/// without.
absl::Status ChosenLogError(const absl::Status& status, const TraceChoice& choice);

/// How many kernels something else than the default schedule answered.
int NumAnswered(const compiler::CompileReport& report);

/// "22 of 22 kernels from '…'; --no-log compiles the defaults" and a line feed, where nobody asked
/// for that log; else nothing.
std::string ChosenLogText(const TraceChoice& choice, const compiler::CompileReport& report);

/// Where a log was read or looked for and knows nothing of the model: that, and the `hone tune`
/// line that changes it.
std::string NothingKnownText(const Arguments& arguments, const TraceChoice& choice,
                             const compiler::CompileReport& report);

}  // namespace hone::client
