#include "db/log_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <utility>

#include "fmt/core.h"

#include "base/status.h"
#include "db/publish_file.h"

namespace hone::db {
namespace {

std::string HostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

// "pid 123 on host abc" as the holder wrote it; it may be about to.
std::string ReadHolder(int fd) {
  std::array<char, 512> text{};
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  std::string_view holder(text.data(), got > 0 ? static_cast<size_t>(got) : 0);
  holder = holder.substr(0, holder.find('\n'));
  return holder.empty() ? "a process that has just started" : std::string(holder);
}

absl::Status CannotOpen(int error, const std::string& path, const std::string& log_path) {
  const std::string folder = FolderOf(log_path);
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    return absl::NotFoundError(fmt::format(
        "cannot write log '{}': there is no folder '{}'; make it first", log_path, folder));
  }
  const absl::Status why = ErrnoStatus(error, fmt::format("open '{}', which locks it", path));
  return absl::Status(why.code(),
                      fmt::format("cannot write log '{}': {}; name a log in a folder of yours",
                                  log_path, StatusMessage(why)));
}

}  // namespace

absl::StatusOr<LogLock> LogLock::Take(const std::string& log_path) {
  const std::string path = log_path + ".lock";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!fd.valid()) return CannotOpen(errno, path, log_path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, fmt::format("lock '{}'", path));
    return absl::UnavailableError(
        fmt::format("log '{}' is being written by {}; wait until it is done or stop it, or read a "
                    "copy (hone db "
                    "snapshot {} --output FILE)",
                    log_path, ReadHolder(fd.get()), log_path));
  }
  const std::string holder = fmt::format("pid {} on host {}\n", ::getpid(), HostName());
  const auto size = static_cast<ssize_t>(holder.size());
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), holder.data(), holder.size(), 0) != size) {
    return ErrnoStatus(errno, fmt::format("write '{}'", path));
  }
  return LogLock(std::move(fd));
}

}  // namespace hone::db
