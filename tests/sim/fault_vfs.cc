#include "tests/sim/fault_vfs.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/core/check.h"
#include "db/sqlite_connection.h"

namespace hone::sim {
namespace {

constexpr int64_t kSectorBytes = 512;
FaultDisk* disk = nullptr;  // the one that lives

struct OpenFile {
  sqlite3_file base;
  std::shared_ptr<FaultDisk::File>* file;
};

FaultDisk::File& FileOf(sqlite3_file* handle) {
  return **reinterpret_cast<OpenFile*>(handle)->file;
}

int Close(sqlite3_file* handle) {
  delete reinterpret_cast<OpenFile*>(handle)->file;
  return SQLITE_OK;
}

int Read(sqlite3_file* handle, void* out, int count, sqlite3_int64 offset) {
  const std::string& now = FileOf(handle).now;
  const int64_t there = std::clamp<int64_t>(static_cast<int64_t>(now.size()) - offset, 0, count);
  if (there > 0) std::memcpy(out, now.data() + offset, static_cast<size_t>(there));
  if (there == count) return SQLITE_OK;
  std::memset(static_cast<char*>(out) + there, 0, static_cast<size_t>(count - there));
  return SQLITE_IOERR_SHORT_READ;
}

int Write(sqlite3_file* handle, const void* bytes, int count, sqlite3_int64 offset) {
  return disk->Apply(FileOf(handle), {.offset = offset,
                                      .bytes = std::string(static_cast<const char*>(bytes),
                                                           static_cast<size_t>(count))});
}

int Truncate(sqlite3_file* handle, sqlite3_int64 size) {
  return disk->Apply(FileOf(handle), {.offset = size, .bytes = "", .truncation = true});
}

int Sync(sqlite3_file* handle, int) { return disk->Sync(FileOf(handle)); }

int FileSize(sqlite3_file* handle, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(FileOf(handle).now.size());
  return SQLITE_OK;
}

// One process, one connection: every lock is free.
int Lock(sqlite3_file*, int) { return SQLITE_OK; }
int CheckReserved(sqlite3_file*, int* reserved) {
  *reserved = 0;
  return SQLITE_OK;
}
int Control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int SectorSize(sqlite3_file*) { return kSectorBytes; }
int Characteristics(sqlite3_file*) { return 0; }

int ShmMap(sqlite3_file* handle, int region, int bytes, int extend, void volatile** out) {
  auto& shared = FileOf(handle).shared;
  *out = nullptr;
  while (static_cast<int>(shared.size()) <= region) {
    if (extend == 0) return SQLITE_OK;
    shared.push_back(std::make_unique<char[]>(static_cast<size_t>(bytes)));
  }
  *out = shared[static_cast<size_t>(region)].get();
  return SQLITE_OK;
}
int ShmLock(sqlite3_file*, int, int, int) { return SQLITE_OK; }
void ShmBarrier(sqlite3_file*) {}
int ShmUnmap(sqlite3_file* handle, int remove) {
  if (remove != 0) FileOf(handle).shared.clear();
  return SQLITE_OK;
}

constexpr sqlite3_io_methods kMethods = {
    2,        Close,         Read,    Write,      Truncate,        Sync,   FileSize, Lock,
    Lock,     CheckReserved, Control, SectorSize, Characteristics, ShmMap, ShmLock,  ShmBarrier,
    ShmUnmap, nullptr,       nullptr};

int Open(sqlite3_vfs*, const char* name, sqlite3_file* handle, int flags, int* out_flags) {
  auto* open = reinterpret_cast<OpenFile*>(handle);
  open->base.pMethods = nullptr;
  auto file = name == nullptr ? std::make_shared<FaultDisk::File>()
                              : disk->Open(name, (flags & SQLITE_OPEN_CREATE) != 0);
  if (file == nullptr) return SQLITE_CANTOPEN;
  open->file = new std::shared_ptr<FaultDisk::File>(std::move(file));
  open->base.pMethods = &kMethods;
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int Delete(sqlite3_vfs*, const char* name, int) {
  if (disk->off()) return SQLITE_IOERR_DELETE;
  if (!disk->Exists(name)) return SQLITE_IOERR_DELETE_NOENT;
  disk->Delete(name);
  return SQLITE_OK;
}
int Access(sqlite3_vfs*, const char* name, int, int* out) {
  *out = disk->Exists(name) ? 1 : 0;
  return SQLITE_OK;
}
int FullPath(sqlite3_vfs*, const char* name, int room, char* out) {
  sqlite3_snprintf(room, out, "%s", name);
  return SQLITE_OK;
}
int Randomness(sqlite3_vfs*, int count, char* out) {
  // WAL salts alone: the same in every run of a seed.
  for (int i = 0; i < count; ++i) out[i] = static_cast<char>(17 * i + 5);
  return count;
}
int Sleep(sqlite3_vfs*, int us) { return us; }
int Time(sqlite3_vfs*, double* days) {
  *days = 2460000.5;
  return SQLITE_OK;
}
int LastError(sqlite3_vfs*, int, char*) { return 0; }

sqlite3_vfs vfs = {1,       sizeof(OpenFile), 512,        nullptr,  "fault", nullptr,
                   Open,    Delete,           Access,     FullPath, nullptr, nullptr,
                   nullptr, nullptr,          Randomness, Sleep,    Time,    LastError};

}  // namespace

FaultDisk::FaultDisk() {
  HONE_CHECK(disk == nullptr) << "one FaultDisk at a time";
  disk = this;
  HONE_CHECK(sqlite3_vfs_register(&vfs, 1) == SQLITE_OK);
}

FaultDisk::~FaultDisk() {
  sqlite3_vfs_unregister(&vfs);
  disk = nullptr;
}

std::shared_ptr<FaultDisk::File> FaultDisk::Open(const std::string& name, bool create) {
  const auto found = files_.find(name);
  if (found != files_.end()) return found->second;
  if (!create || off_) return nullptr;
  return files_[name] = std::make_shared<File>();
}

bool FaultDisk::Fails() {
  if (changes_left_ > 0 && --changes_left_ == 0) off_ = true;
  return off_;
}

int FaultDisk::Apply(File& file, Change change) {
  if (Fails()) return change.truncation ? SQLITE_IOERR_TRUNCATE : SQLITE_IOERR_WRITE;
  const auto offset = static_cast<size_t>(change.offset);
  if (change.truncation) {
    file.now.resize(offset);
  } else {
    const size_t end = offset + change.bytes.size();
    if (end > file.now.size()) {
      if (full_) return SQLITE_FULL;
      file.now.resize(end);
    }
    file.now.replace(offset, change.bytes.size(), change.bytes);
  }
  file.unsynced.push_back(std::move(change));
  return SQLITE_OK;
}

int FaultDisk::Sync(File& file) {
  if (Fails()) return SQLITE_IOERR_FSYNC;
  ++syncs_;
  file.synced = file.now;
  file.unsynced.clear();
  return SQLITE_OK;
}

void FaultDisk::ProcessEnded() {
  off_ = false;
  changes_left_ = -1;
  for (auto& [name, file] : files_) file->shared.clear();
}

void FaultDisk::PowerOn(Random& random) {
  ProcessEnded();
  for (auto& [name, file] : files_) {
    std::string& kept = file->synced;
    for (const Change& change : file->unsynced) {
      const auto offset = static_cast<size_t>(change.offset);
      if (change.truncation) {
        if (random.Chance(0.5)) kept.resize(offset);
        continue;
      }
      // Whole, not at all, or sector by sector.
      const uint64_t fate = random.Below(3);
      for (size_t at = 0; at < change.bytes.size();) {
        const size_t sector_end = (offset + at) / kSectorBytes * kSectorBytes + kSectorBytes;
        const size_t count = std::min(change.bytes.size() - at, sector_end - offset - at);
        if (fate == 0 || (fate == 1 && random.Chance(0.5))) {
          kept.resize(std::max(kept.size(), offset + at + count));
          kept.replace(offset + at, count, change.bytes, at, count);
        }
        at += count;
      }
    }
    file->unsynced.clear();
    file->now = kept;
  }
}

}  // namespace hone::sim
