#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "base/core/check.h"          // HONE_CHECK
#include "base/core/status.h"         // hone::Status
#include "base/core/status_macros.h"  // HONE_RETURN_IF_ERROR, HONE_ASSIGN_OR_RETURN

// Debian's Abseil has its own string_view: these are the only crossings anybody needs.
namespace hone {

/// The runtime's status as Abseil's: same code, same message.
absl::Status ToAbsl(const Status& status);

/// The message alone, as a std::string.
std::string StatusMessage(const absl::Status& status);

/// `status` with "context: " before its message; ok stays ok.
absl::Status Annotate(const absl::Status& status, std::string_view context);

/// A status for a failed system call: "cannot WHAT: REASON". Codes: ENOENT, ENOTDIR kNotFound;
/// EACCES, EPERM, EROFS kPermissionDenied; ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM
/// kResourceExhausted; EEXIST kAlreadyExists; everything else kUnknown.
absl::Status ErrnoStatus(int error_number, std::string_view what);

}  // namespace hone
