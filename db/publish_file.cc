#include "db/publish_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "fmt/core.h"

#include "base/core/unique_fd.h"
#include "base/status.h"

namespace hone::db {
namespace {

absl::Status Sync(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, fmt::format("open '{}'", path));
  // Some file systems cannot sync a folder and say EINVAL; there is nothing more to do there.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) {
    return ErrnoStatus(errno, fmt::format("sync '{}'", path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PublishFile(const std::string& temporary, const std::string& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    return absl::InvalidArgumentError(
        fmt::format("cannot write '{}': a device, pipe or folder is there", path));
  }
  HONE_RETURN_IF_ERROR(Sync(temporary));
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return ErrnoStatus(errno, fmt::format("rename '{}' to '{}'", temporary, path));
  }
  return Sync(FolderOf(path));
}

void RemoveDatabaseFiles(const std::string& path) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) ::unlink((path + suffix).c_str());
}

int64_t FileSize(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace hone::db
