#include "measure/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "fmt/format.h"

#include "base/core/random_id.h"
#include "base/sha256.h"

namespace hone::measure {
namespace {

constexpr std::array<std::string_view, kNumCacheKinds> kKindNames = {"artifacts", "oracles"};
// Raised when the layout of entries changes.
constexpr std::string_view kMagic = "HONECACHE1\n";
constexpr size_t kDigestChars = 64;
constexpr size_t kHeaderBytes = kMagic.size() + kDigestChars;
constexpr std::string_view kUnfinished = "tmp.";
constexpr int64_t kUnfinishedSeconds = 3600;
constexpr int64_t kShareOfOneEntry = 8;
constexpr int64_t kShareBetweenTrims = 16;

// The digest also covers the name: an entry that was renamed does not verify.
std::string HeaderOf(const std::string& name, std::string_view payload) {
  Sha256 hash;
  hash.Update(name);
  hash.Update(payload);
  return std::string(kMagic) + hash.FinishHex();
}

std::optional<std::string> ReadAll(int fd, int64_t size) {
  std::string bytes(static_cast<size_t>(size), '\0');
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = ::read(fd, bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    at += static_cast<size_t>(got);
  }
  return bytes;
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool IsOurs(const struct stat& info) {
  return info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool IsEntryName(std::string_view name) {
  return name.size() == kDigestChars &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Under sudo the home folder is another's: what root made there its owner could not use later.
std::string ForeignHome(const std::string& folder) {
  if (::geteuid() != 0) return "";
  for (std::filesystem::path path = folder; !path.empty(); path = path.parent_path()) {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) {
      if (info.st_uid == 0) return "";
      return fmt::format("'{}' belongs to user {}, and this is root", path.string(), info.st_uid);
    }
    if (path == path.parent_path()) break;
  }
  return "";
}

std::string Refused(std::string_view what, const std::string& path) {
  return fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno));
}

// Calls visit(name) for every file of the folder; one that cannot be read has none.
template <typename Visit>
void ForEachName(int folder, const Visit& visit) {
  const int fd = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd), ::closedir);
  if (stream == nullptr) {
    ::close(fd);
    return;
  }
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (IsEntryName(name) || name.starts_with(kUnfinished)) visit(std::string(name));
  }
}

}  // namespace

/// A file of the cache.
struct DiskCache::Entry {
  int folder = -1;
  std::string name;
  int64_t bytes = 0;
  int64_t used_ns = 0;  ///< by the file system's clock
};

std::string FileIdentity(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return "";
  return fmt::format("{} {} {}.{:09}", info.st_ino, info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec);
}

std::string_view CacheKindName(CacheKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

DiskCache::DiskCache(DiskCacheOptions options) : options_(std::move(options)) {
  why_unused_ = Open();
  if (why_unused_.empty()) return;
  for (UniqueFd& folder : folders_) folder.Reset();
}

DiskCache::~DiskCache() {
  if (written_bytes_ > 0) Trim();
}

int64_t DiskCache::hits() const {
  const std::lock_guard lock(mutex_);
  return hits_;
}

std::string DiskCache::Open() {
  if (options_.folder.empty()) return "there is no home folder; set HOME or XDG_CACHE_HOME";
  if (options_.limit_bytes <= 0) return "its limit is 0 MB";
  if (std::string foreign = ForeignHome(options_.folder); !foreign.empty()) return foreign;
  struct stat info {};
  if (!options_.make_folder && ::stat(options_.folder.c_str(), &info) != 0 && errno == ENOENT) {
    return "";
  }
  const std::filesystem::path parent = std::filesystem::path(options_.folder).parent_path();
  std::error_code error;
  // A home that does not exist is not made: HOME=/nonexistent is how services say that they have
  // none.
  if (options_.make_folder) std::filesystem::create_directory(parent, error);
  if (error) return fmt::format("cannot make '{}': {}", parent.string(), error.message());
  if (options_.make_folder && ::mkdir(options_.folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return Refused("make", options_.folder);
  }
  for (int kind = 0; kind < kNumCacheKinds; ++kind) {
    if (std::string why = OpenKind(static_cast<CacheKind>(kind)); !why.empty()) return why;
  }
  return "";
}

std::string DiskCache::OpenKind(CacheKind kind) {
  const std::string path = fmt::format("{}/{}", options_.folder, CacheKindName(kind));
  if (options_.make_folder && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Refused("make", path);
  }
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid() && errno == ENOENT && !options_.make_folder) return "";
  if (!folder.valid()) return Refused("open", path);
  struct stat info {};
  if (::fstat(folder.get(), &info) != 0) return Refused("open", path);
  if (info.st_uid != ::geteuid()) {
    return fmt::format("'{}' belongs to user {}, not to user {}", path, info.st_uid, ::geteuid());
  }
  if ((info.st_mode & 077) != 0 && ::fchmod(folder.get(), 0700) != 0) return Refused("lock", path);
  if (::faccessat(folder.get(), ".", W_OK, AT_EACCESS) != 0) return Refused("write in", path);
  folders_[static_cast<size_t>(kind)] = std::move(folder);
  return "";
}

std::string DiskCache::NameOf(CacheKind kind, std::string_view key) const {
  Sha256 hash;
  for (const std::string_view part :
       {kMagic, CacheKindName(kind), std::string_view("\n"), std::string_view(options_.identity),
        std::string_view("\n")}) {
    hash.Update(part);
  }
  hash.Update(key);
  return hash.FinishHex();
}

std::optional<std::string> DiskCache::Get(CacheKind kind, std::string_view key) {
  const int folder = folders_[static_cast<size_t>(kind)].get();
  if (folder < 0) return std::nullopt;
  const std::string name = NameOf(kind, key);
  const UniqueFd fd(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return std::nullopt;
  const bool heeded =
      S_ISREG(info.st_mode) && IsOurs(info) &&
      info.st_size <= options_.limit_bytes / kShareOfOneEntry + static_cast<int64_t>(kHeaderBytes);
  std::optional<std::string> bytes;
  if (heeded) bytes = ReadAll(fd.get(), info.st_size);
  if (!bytes || bytes->size() < kHeaderBytes ||
      bytes->substr(0, kHeaderBytes) !=
          HeaderOf(name, std::string_view(*bytes).substr(kHeaderBytes))) {
    ::unlinkat(folder, name.c_str(), 0);
    return std::nullopt;
  }
  ::futimens(fd.get(), nullptr);  // used now
  bytes->erase(0, kHeaderBytes);
  const std::lock_guard lock(mutex_);
  ++hits_;
  return bytes;
}

void DiskCache::Put(CacheKind kind, std::string_view key, std::string_view payload) {
  const int folder = folders_[static_cast<size_t>(kind)].get();
  const auto bytes = static_cast<int64_t>(payload.size());
  if (folder < 0 || bytes > options_.limit_bytes / kShareOfOneEntry) return;
  struct statvfs disk {};
  if (::fstatvfs(folder, &disk) != 0 ||
      static_cast<int64_t>(disk.f_bavail * disk.f_frsize) < options_.least_free_bytes + bytes) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (full_) return;
  }
  const std::string unfinished = fmt::format("{}{}", kUnfinished, RandomId().ToHex());
  const std::string name = NameOf(kind, key);
  const bool written = Write(folder, unfinished, HeaderOf(name, payload), payload) &&
                       ::renameat(folder, unfinished.c_str(), folder, name.c_str()) == 0;
  if (!written) ::unlinkat(folder, unfinished.c_str(), 0);
  bool trim = false;
  {
    const std::lock_guard lock(mutex_);
    full_ = full_ || !written;
    if (written) written_bytes_ += bytes + static_cast<int64_t>(kHeaderBytes);
    trim = written_bytes_ > options_.limit_bytes / kShareBetweenTrims;
  }
  if (trim) Trim();
}

// Not synced: after a power cut a torn entry does not verify.
bool DiskCache::Write(int folder, const std::string& name, std::string_view header,
                      std::string_view payload) {
  const UniqueFd fd(
      ::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  return fd.valid() && WriteAll(fd.get(), header) && WriteAll(fd.get(), payload);
}

void DiskCache::Trim() {
  const std::lock_guard lock(mutex_);
  written_bytes_ = 0;
  std::vector<Entry> entries;
  int64_t total = 0, newest_ns = 0;
  for (const UniqueFd& folder : folders_) {
    if (!folder.valid()) continue;
    ForEachName(folder.get(), [&](std::string name) {
      struct stat info {};
      if (::fstatat(folder.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
      const int64_t used_ns = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;
      const auto bytes = static_cast<int64_t>(info.st_blocks) * 512;
      entries.push_back({folder.get(), std::move(name), bytes, used_ns});
      total += bytes;
      newest_ns = std::max(newest_ns, used_ns);
    });
  }
  // What a killed program left half done goes as soon as it cannot be at work any more.
  for (Entry& entry : entries) {
    const bool old = newest_ns - entry.used_ns > kUnfinishedSeconds * 1'000'000'000;
    if (entry.name.starts_with(kUnfinished)) entry.used_ns = old ? 0 : newest_ns;
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used_ns < b.used_ns; });
  const int64_t aim = options_.limit_bytes - options_.limit_bytes / 10;
  const bool over = total > options_.limit_bytes;
  for (const Entry& entry : entries) {
    if (entry.used_ns > 0 && (!over || total <= aim)) break;
    if (::unlinkat(entry.folder, entry.name.c_str(), 0) == 0 || errno == ENOENT) {
      total -= entry.bytes;
    }
  }
}

void DiskCache::Clear() {
  for (size_t kind = 0; kind < kNumCacheKinds; ++kind) {
    const UniqueFd& folder = folders_[kind];
    if (!folder.valid()) continue;
    ForEachName(folder.get(),
                [&](const std::string& name) { ::unlinkat(folder.get(), name.c_str(), 0); });
    ::rmdir(fmt::format("{}/{}", options_.folder, kKindNames[kind]).c_str());
  }
  ::rmdir(options_.folder.c_str());
}

CacheUsage DiskCache::Usage() const {
  CacheUsage usage;
  for (size_t kind = 0; kind < kNumCacheKinds; ++kind) {
    const UniqueFd& folder = folders_[kind];
    if (!folder.valid()) continue;
    ForEachName(folder.get(), [&](const std::string& name) {
      struct stat info {};
      if (::fstatat(folder.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
      ++usage.files[kind];
      usage.bytes[kind] += static_cast<int64_t>(info.st_blocks) * 512;
    });
  }
  return usage;
}

}  // namespace hone::measure
