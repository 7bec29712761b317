#include "measure/device_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "fmt/format.h"

#include "base/file.h"
#include "base/status.h"

namespace hone::measure {

absl::StatusOr<DeviceLock> DeviceLock::Open(const std::string& folder, const std::string& device) {
  HONE_RETURN_IF_ERROR(MakeDirectories(folder));
  std::string name = device;
  for (char& c : name) c = c == '/' || c == ':' ? '-' : c;
  const std::string path = fmt::format("{}/hone-{}.lock", folder, name);
  // Another user's file in a sticky folder may be opened, but not with O_CREAT.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) fd.Reset(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoStatus(errno, fmt::format("open '{}'", path));
  return DeviceLock(std::move(fd));
}

void DeviceLock::Take() {
  while (::flock(fd_.get(), LOCK_EX) != 0) HONE_CHECK(errno == EINTR);
}

void DeviceLock::Free() { ::flock(fd_.get(), LOCK_UN); }

}  // namespace hone::measure
