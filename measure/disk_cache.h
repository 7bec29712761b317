#pragma once

#include <cstdint>
#include <iterator>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/unique_fd.h"

namespace hone::measure {

/// What an entry is; each kind has a folder of its own.
enum class CacheKind : uint8_t { kArtifact, kOracle };
inline constexpr int kNumCacheKinds = 2;
/// "artifacts", "oracles".
std::string_view CacheKindName(CacheKind kind);

/// Changes when the file does: inode, size and time of change; empty where there is none.
std::string FileIdentity(const std::string& path);

struct DiskCacheOptions {
  std::string folder;                      ///< empty: no cache
  bool make_folder = true;                 ///< where it is absent; else that is an empty cache
  int64_t limit_bytes = int64_t{1} << 30;  ///< on disk, all kinds together; 0: no cache
  int64_t least_free_bytes = 64 << 20;     ///< nothing is written where the disk has less
  std::string identity;                    ///< part of every key: what made the entries
};

/// Entries and their bytes on disk.
struct CacheUsage {
  int64_t files[kNumCacheKinds] = {};
  int64_t bytes[kNumCacheKinds] = {};

  int64_t TotalFiles() const {
    return std::accumulate(std::begin(files), std::end(files), int64_t{0});
  }
  int64_t TotalBytes() const {
    return std::accumulate(std::begin(bytes), std::end(bytes), int64_t{0});
  }
};

/// Results that cost time, kept in files between programs. It only saves time: whatever goes wrong
/// (no folder, no right, no space, damaged entries) is a miss, never an error.
///
/// An entry is named by the SHA-256 of its key and holds a SHA-256 of its contents; it is written
/// beside its place and renamed, so readers see all of it or nothing. What does not verify is
/// deleted. The least recently used entries go when the limit is passed: at the end of a program,
/// and after every sixteenth of the limit that it wrote.
///
/// Entries are code that Hone runs and packs into models. So the folders of entries have mode 0700
/// and belong to the user, and an entry is heeded only if it is a regular file of the user's that
/// nobody else may write; links are not followed.
///
/// Thread-safe, and safe beside other programs on the same folder.
class DiskCache {
 public:
  explicit DiskCache(DiskCacheOptions options);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  /// The payload that was put under this key.
  std::optional<std::string> Get(CacheKind kind, std::string_view key);
  void Put(CacheKind kind, std::string_view key, std::string_view payload);

  /// Deletes least recently used entries until the limit holds.
  void Trim();
  /// Deletes all entries, and the folder where nothing else is in it; other files stay.
  void Clear();
  CacheUsage Usage() const;

  /// Why nothing is kept, for people; empty: all is well.
  const std::string& why_unused() const { return why_unused_; }
  int64_t hits() const;

 private:
  struct Entry;

  std::string Open();
  std::string OpenKind(CacheKind kind);
  std::string NameOf(CacheKind kind, std::string_view key) const;
  bool Write(int folder, const std::string& name, std::string_view header,
             std::string_view payload);

  const DiskCacheOptions options_;
  std::string why_unused_;
  UniqueFd folders_[kNumCacheKinds];  ///< not valid: unused

  mutable std::mutex mutex_;
  int64_t written_bytes_ = 0;  // since the last Trim; these are guarded by mutex_
  int64_t hits_ = 0;
  bool full_ = false;
};

}  // namespace hone::measure
