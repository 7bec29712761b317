#include "runtime/message.h"

#include <cerrno>
#include <system_error>

namespace hone::runtime {
namespace {

StatusCode CodeOf(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR: return StatusCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS: return StatusCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN: return StatusCode::kResourceExhausted;
    default: return StatusCode::kUnknown;
  }
}

}  // namespace

Status SystemError(int error_number, const std::string& what) {
  return {CodeOf(error_number), what + ": " + std::generic_category().message(error_number)};
}

}  // namespace hone::runtime
