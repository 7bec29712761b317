#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "fmt/core.h"

#include "base/core/unique_fd.h"

namespace hone {
namespace {

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, fmt::format("write '{}'", path));
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

absl::Status SyncFolder(const std::string& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, fmt::format("open folder '{}'", folder));
  // Some file systems cannot sync a folder and say EINVAL; there is nothing more to do there.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) {
    return ErrnoStatus(errno, fmt::format("sync folder '{}'", folder));
  }
  return absl::OkStatus();
}

// A new file beside `path` that nobody else has; its name goes to `name`.
absl::StatusOr<UniqueFd> CreateBeside(const std::string& path, std::string* name) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    *name = fmt::format("{}.tmp.{}.{}", path, ::getpid(), attempt);
    UniqueFd fd(::open(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd.valid()) return fd;
    if (errno != EEXIST) break;
  }
  return ErrnoStatus(errno, fmt::format("write '{}'", path));
}

absl::Status WriteAndRename(UniqueFd fd, std::string_view bytes, const std::string& name,
                            const std::string& path) {
  HONE_RETURN_IF_ERROR(WriteAll(fd.get(), bytes, path));
  if (::fsync(fd.get()) != 0) return ErrnoStatus(errno, fmt::format("sync '{}'", path));
  fd.Reset();
  if (std::rename(name.c_str(), path.c_str()) != 0) {
    return ErrnoStatus(errno, fmt::format("rename '{}' to '{}'", name, path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status UnreadableFile(int error_number, const std::string& path) {
  const absl::Status status = ErrnoStatus(error_number, fmt::format("read '{}'", path));
  std::string remedy;
  if (error_number == ENOENT || error_number == ENOTDIR) {
    std::error_code error;
    const std::filesystem::path here = std::filesystem::current_path(error);
    const bool relative = !error && std::filesystem::path(path).is_relative();
    remedy = relative ? fmt::format("; check the path, which begins at '{}'", here.string())
                      : "; check the path";
  } else if (error_number == EACCES || error_number == EPERM) {
    remedy = "; ask its owner for the right to read it";
  } else if (error_number == EISDIR) {
    remedy = "; name a file in it";
  }
  return absl::Status(status.code(), StatusMessage(status) + remedy);
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return UnreadableFile(errno, path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, fmt::format("stat '{}'", path));
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(
        fmt::format("cannot read '{}': it is a folder; name a file in it", path));
  }
  std::string bytes;
  // One byte more than the file has, so that the loop sees its end without growing the string.
  size_t room = static_cast<size_t>(info.st_size) + 1;
  for (size_t size = 0;;) {
    if (bytes.size() == size) bytes.resize(size + room);
    const ssize_t got = ::read(fd.get(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, fmt::format("read '{}'", path));
    if (got == 0) {
      bytes.resize(size);
      return bytes;
    }
    size += static_cast<size_t>(got);
    room = size_t{1} << 16;
  }
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    if (S_ISDIR(info.st_mode)) {
      return absl::InvalidArgumentError(fmt::format("cannot write '{}': it is a folder", path));
    }
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd.valid()) return ErrnoStatus(errno, fmt::format("open '{}'", path));
    return WriteAll(fd.get(), bytes, path);
  }
  std::string name;
  HONE_ASSIGN_OR_RETURN(UniqueFd fd, CreateBeside(path, &name));
  absl::Status written = WriteAndRename(std::move(fd), bytes, name, path);
  if (!written.ok()) {
    ::unlink(name.c_str());
    return written;
  }
  return SyncFolder(FolderOf(path));
}

absl::Status MakeDirectories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return ErrnoStatus(error.value(), fmt::format("make folder '{}'", path));
  return absl::OkStatus();
}

}  // namespace hone
