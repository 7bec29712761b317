#include "base/status.h"

#include <cerrno>
#include <system_error>

#include "absl/strings/string_view.h"
#include "fmt/core.h"

namespace hone {

absl::Status ToAbsl(const Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.code()), status.message());
}

std::string StatusMessage(const absl::Status& status) { return std::string(status.message()); }

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), fmt::format("{}: {}", context, StatusMessage(status)));
}

absl::Status ErrnoStatus(int error_number, std::string_view what) {
  absl::StatusCode code = absl::StatusCode::kUnknown;
  switch (error_number) {
    case ENOENT:
    case ENOTDIR: code = absl::StatusCode::kNotFound; break;
    case EACCES:
    case EPERM:
    case EROFS: code = absl::StatusCode::kPermissionDenied; break;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EFBIG:
    case ENOMEM: code = absl::StatusCode::kResourceExhausted; break;
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG: code = absl::StatusCode::kInvalidArgument; break;
    case EEXIST: code = absl::StatusCode::kAlreadyExists; break;
    default: break;
  }
  return absl::Status(
      code, fmt::format("cannot {}: {}", what, std::generic_category().message(error_number)));
}

}  // namespace hone
