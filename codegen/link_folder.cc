#include "codegen/link_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/status.h"

namespace hone::codegen {
namespace {

constexpr char kPrefix[] = "hone-link-";

/// A folder of this user, no link to one, that nothing was made in or taken from for an hour.
bool IsStale(const std::string& path, int64_t unix_ns) {
  constexpr int64_t kHour = 3600;
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         info.st_mtim.tv_sec < unix_ns / 1'000'000'000 - kHour;
}

}  // namespace

// Memory first: what is linked is read back at once.
std::vector<std::string> LinkBases() { return {"/dev/shm", "/tmp"}; }

LinkFolder::LinkFolder(const std::string& base) : path_(base + "/" + kPrefix + "XXXXXX") {
  if (::mkdtemp(path_.data()) != nullptr) return;
  error_ = ErrnoStatus(errno, "make a folder for the linker in '" + base + "'");
  path_.clear();
}

LinkFolder::~LinkFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void RemoveStaleLinkFolders(const std::vector<std::string>& bases, const WallClock& clock) {
  std::error_code ignored;
  for (const std::string& base : bases) {
    std::vector<std::string> stale;
    for (auto it = std::filesystem::directory_iterator(base, ignored);
         it != std::filesystem::directory_iterator(); it.increment(ignored)) {
      const std::string path = it->path().string();
      if (it->path().filename().string().starts_with(kPrefix) && IsStale(path, clock.UnixNs())) {
        stale.push_back(path);
      }
    }
    for (const std::string& path : stale) std::filesystem::remove_all(path, ignored);
  }
}

}  // namespace hone::codegen
