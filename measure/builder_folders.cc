#include "measure/builder_folders.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace hone::measure {
namespace {

constexpr const char* kBases[] = {"/dev/shm", "/tmp"};
constexpr std::string_view kPrefix = "hone-builder-";
constexpr size_t kRandomLetters = 6;  ///< of mkdtemp
constexpr int64_t kYoungSeconds = 60;

UniqueFd OpenFolder(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Whether `fd` is still what stands under a name.
bool IsThere(const UniqueFd& fd, struct stat* info) {
  return ::fstat(fd.get(), info) == 0 && info->st_nlink > 0;
}

bool IsName(std::string_view name) {
  return name.starts_with(kPrefix) && name.size() == kPrefix.size() + kRandomLetters &&
         std::ranges::all_of(name.substr(kPrefix.size()), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0;
         });
}

/// Removes the folder if it is one that its owner, who was this user, left long before `now`.
void RemoveIfLeft(const std::string& path, const struct timespec& now) {
  const UniqueFd fd = OpenFolder(path);
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || info.st_uid != ::geteuid()) return;
  if (now.tv_sec - info.st_mtim.tv_sec <= kYoungSeconds) return;
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return;
  // Others of this user cannot take it from here on, and another user can neither rename nor
  // replace it: these bases are sticky.
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace

BuilderFolders::BuilderFolders() {
  for (const char* base : kBases) {
    std::string path = std::string(base) + "/" + std::string(kPrefix) + "XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) continue;
    UniqueFd lock = OpenFolder(path);
    // If this process stood still for a minute before this line, its folder may be swept away.
    // Where the file system has no such locks, nobody sweeps.
    struct stat info {};
    const bool swept = !lock.valid() ||
                       (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
                       !IsThere(lock, &info);
    if (swept) continue;
    paths_.push_back(std::move(path));
    locks_.push_back(std::move(lock));
  }
}

BuilderFolders::~BuilderFolders() {
  std::error_code ignored;
  for (const std::string& path : paths_) std::filesystem::remove_all(path, ignored);
}

void SweepLeftFolders(const BuilderFolders& own) {
  for (const std::string& path : own.paths()) {
    // Its own age is the clock: the one by which the file system dates the others.
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) continue;
    std::error_code error;
    const std::filesystem::path base = std::filesystem::path(path).parent_path();
    auto entry = std::filesystem::directory_iterator(base, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      if (IsName(entry->path().filename().string())) RemoveIfLeft(entry->path(), info.st_mtim);
    }
  }
}

}  // namespace hone::measure
