#include "base/free_space.h"

#include <sys/statvfs.h>

#include <limits>

namespace hone {

int64_t FreeBytes(const std::string& path) {
  constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
  struct statvfs disk {};
  if (::statvfs(path.c_str(), &disk) != 0 || disk.f_blocks == 0) return kUnknown;
  int64_t bytes = 0;
  const bool huge = __builtin_mul_overflow(disk.f_bavail, disk.f_frsize, &bytes);
  return huge ? kUnknown : bytes;
}

}  // namespace hone
