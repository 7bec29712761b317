#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/random.h"

// SQLite's files on a disk in memory that can lose power and fill up.
namespace hone::sim {

/// While it lives, every file that SQLite opens in this process is on it; one at a time. After a
/// power cut it holds everything that was synced, and of everything else a random part, torn at
/// sectors. Not thread-safe.
class FaultDisk {
 public:
  FaultDisk();
  ~FaultDisk();
  FaultDisk(const FaultDisk&) = delete;
  FaultDisk& operator=(const FaultDisk&) = delete;

  /// Files that would grow are refused with SQLITE_FULL.
  void SetFull(bool full) { full_ = full; }
  /// The power fails at the n-th change (write, truncation, sync) from now on, which does not
  /// happen; everything afterwards fails until PowerOn.
  void CutAfter(int64_t changes) { changes_left_ = changes; }
  void CutNow() { off_ = true; }
  bool off() const { return off_; }
  /// After a cut, when every file is closed.
  void PowerOn(Random& random);
  /// After the end of a process alone, when every file is closed: nothing is lost.
  void ProcessEnded();

  int64_t syncs() const { return syncs_; }

  // For the VFS.
  struct Change {
    int64_t offset = 0;
    std::string bytes;
    bool truncation = false;  ///< to `offset`
  };
  struct File {
    std::string now, synced;
    std::vector<Change> unsynced;
    std::vector<std::unique_ptr<char[]>> shared;  ///< shared memory regions
  };
  std::shared_ptr<File> Open(const std::string& name, bool create);
  bool Exists(const std::string& name) const { return files_.contains(name); }
  void Delete(const std::string& name) { files_.erase(name); }
  /// SQLite's code of the change.
  int Apply(File& file, Change change);
  int Sync(File& file);

 private:
  bool Fails();

  std::map<std::string, std::shared_ptr<File>> files_;
  bool full_ = false, off_ = false;
  int64_t changes_left_ = -1;
  int64_t syncs_ = 0;
};

}  // namespace hone::sim
