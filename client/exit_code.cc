#include "client/exit_code.h"

#include <string>

#include "absl/strings/cord.h"

#include "base/status.h"

namespace hone::client {
namespace {

constexpr char kPayload[] = "hone/exit-code";

struct ExitCodeText {
  std::string_view name;
  std::string_view meaning;
};
constexpr ExitCodeText kTexts[kNumExitCodes] = {
    {"done", "done"},
    {"fault", "a fault in Hone; the message says what to attach to a report"},
    {"usage", "unknown command or option, or a bad value of one"},
    {"bad_input", "a named file is absent, damaged or not supported"},
    {"record_missing", "a required record is missing"},
    {"log", "the log is busy, damaged or from a newer Hone"},
    {"server", "the server is unreachable or refused"},
    {"interrupted", "interrupted; the message says whether a usable result exists"},
    {"device", "device, instruction set, driver or sandbox absent"},
    {"no_space", "no space, memory or permission"},
    {"outputs_differ", "outputs differ (run --expect, check)"},
    {"doctor", "doctor found a fault"},
};

}  // namespace

std::string_view ExitCodeName(ExitCode code) { return kTexts[static_cast<int>(code)].name; }

std::string_view ExitCodeMeaning(ExitCode code) { return kTexts[static_cast<int>(code)].meaning; }

absl::Status WithExitCode(absl::Status status, ExitCode code) {
  if (!status.ok()) {
    status.SetPayload(kPayload, absl::Cord(std::to_string(static_cast<int>(code))));
  }
  return status;
}

bool HasExitCode(const absl::Status& status) { return status.GetPayload(kPayload).has_value(); }

ExitCode ExitCodeOf(const absl::Status& status) {
  if (const auto payload = status.GetPayload(kPayload); payload.has_value()) {
    return static_cast<ExitCode>(std::stoi(std::string(*payload)));
  }
  switch (status.code()) {
    case absl::StatusCode::kOk: return ExitCode::kDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kDataLoss: return ExitCode::kBadInput;
    case absl::StatusCode::kFailedPrecondition: return ExitCode::kDevice;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted: return ExitCode::kNoSpace;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kDeadlineExceeded: return ExitCode::kServer;
    case absl::StatusCode::kCancelled: return ExitCode::kInterrupted;
    default: return ExitCode::kFault;
  }
}

}  // namespace hone::client
