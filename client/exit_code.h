#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace hone::client {

/// What `hone` ends with. Scripts read these: do not renumber.
enum class ExitCode : int {
  kDone = 0,
  kFault = 1,          ///< a fault in Hone; the message says what to attach
  kUsage = 2,          ///< unknown command or option, bad value of one
  kBadInput = 3,       ///< a file that the user named is absent, damaged or not supported
  kRecordMissing = 4,  ///< --require found no record
  kLog = 5,            ///< the log is busy, damaged or newer
  kServer = 6,         ///< server unreachable or refused
  kInterrupted = 7,
  kDevice = 8,          ///< device, instruction set, driver or sandbox absent
  kNoSpace = 9,         ///< no space, memory or permission
  kOutputsDiffer = 10,  ///< run --expect, check
  kDoctor = 11,         ///< doctor found a fault
};

/// "bad_input", "outputs_differ", …: the code's name in --json.
std::string_view ExitCodeName(ExitCode code);

/// One line for documents and `man`.
std::string_view ExitCodeMeaning(ExitCode code);

inline constexpr int kNumExitCodes = 12;

/// Gives an error this exit code whatever its status code says; ok stays ok.
absl::Status WithExitCode(absl::Status status, ExitCode code);

/// Whether WithExitCode gave it one. Callers further up must then keep it.
bool HasExitCode(const absl::Status& status);

/// The one mapping: the code given by WithExitCode, else by the status code. InvalidArgument,
/// NotFound, OutOfRange, Unimplemented, AlreadyExists, DataLoss: bad input; FailedPrecondition:
/// device; PermissionDenied, ResourceExhausted: no space; Unavailable, Unauthenticated,
/// DeadlineExceeded: server; Cancelled: interrupted; everything else: a fault.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace hone::client
