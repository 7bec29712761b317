#pragma once

#include <sstream>
#include <string>

#include "base/core/status.h"

namespace hone::runtime {

/// The parts of an error message, joined: what, where, why, what to do.
template <typename... Parts>
std::string Message(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

/// kInvalidArgument with the joined parts as its message.
template <typename... Parts>
Status Invalid(const Parts&... parts) {
  return {StatusCode::kInvalidArgument, Message(parts...)};
}

/// The status of a failed system call: "WHAT: REASON", its code by errno: ENOENT, ENOTDIR
/// kNotFound; EACCES, EPERM, EROFS kPermissionDenied; ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM,
/// EAGAIN kResourceExhausted; everything else kUnknown.
Status SystemError(int error_number, const std::string& what);

}  // namespace hone::runtime
