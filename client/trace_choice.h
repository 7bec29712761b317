#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/arguments.h"
#include "client/command.h"
#include "client/open_log.h"
#include "compiler/compile_model.h"

namespace hone::client {

/// Where a command that is given a model takes its schedules from.
struct TraceChoice {
  enum class Kind : uint8_t { kDefaults, kFolder, kLog, kSnapshot, kServer };
  Kind kind = Kind::kDefaults;
  std::string path;  ///< the folder, the log, FILE@sha256:DIGEST, or the server's address
  /// The log is where `hone tune` keeps it unless told otherwise; nobody named it for this command.
  bool unasked = false;
  bool has_no_log = false;  ///< the command can do without it: it has --no-log
  /// kDefaults: where the log would be that --no-log did not forbid; empty: nowhere.
  std::string missing;

  /// Whether look-ups answer, and so the device class matters.
  bool HasLog() const { return kind >= Kind::kLog; }
  LogName name() const { return unasked ? LogName::kDefault : LogName::kGiven; }
};

/// One of --no-log, --traces, --db, --snapshot and --server, of those that the command has: first
/// what its line says, then the config file (but for `db`, which is a place alone). Without any,
/// the user's log where something stands at its place. Usage errors: two of them, or --require
/// without a log. An error with kLog: the place cannot be looked at.
absl::StatusOr<TraceChoice> ChooseTraces(const Arguments& arguments,
                                         const Environment& environment);

/// An error of the choice's log, or of look-ups in it. If the user did not name the log, the
/// message says how to do without it, where the command can.
absl::Status ChosenLogError(const absl::Status& status, const TraceChoice& choice);

/// How many kernels something else than the default schedule answered.
int NumAnswered(const compiler::CompileReport& report);

/// "22 of 22 kernels from '…'; --no-log compiles the defaults" and a line feed, where the user did
/// not name the log; where the user did, the line about a verdict that keeps the model's defaults,
/// if there is one; else empty.
std::string ChosenLogText(const TraceChoice& choice, const compiler::CompileReport& report);

/// That the log knows so many of the model's kernels, attention in one, only as the two that they
/// were, and what to do; empty for 0.
std::string StaleAttentionText(int stale, size_t kernels);

/// Where a log was read or looked for and knows nothing of the model: that, and the `hone tune`
/// line that changes it.
std::string NothingKnownText(const Arguments& arguments, const TraceChoice& choice,
                             const compiler::CompileReport& report);
/// The same for a command that has found so; `model` is how the line names it.
std::string NothingKnownText(const Arguments& arguments, const TraceChoice& choice,
                             const std::string& model);

}  // namespace hone::client
