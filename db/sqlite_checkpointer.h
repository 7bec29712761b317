#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

#include "db/sqlite_connection.h"

namespace hone::db {

/// Folds a growing WAL into its file on a thread and a connection of its own, so that a commit does
/// not wait until a thousand scattered pages are synced: the thread copies and syncs nearly all of
/// it, the writer's commit after that what came meanwhile, if it is little, and the WAL begins
/// anew. docs/decisions/0006-checkpoints-beside-commits.md
class Checkpointer {
 public:
  /// Takes the place of the automatic checkpoints of `writer`, which must outlive it.
  static absl::StatusOr<std::unique_ptr<Checkpointer>> Start(Connection& writer);
  /// Ends the thread after what it is at; the writer's close folds the rest.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  struct Counts {
    int64_t passes = 0;    ///< of the thread
    int64_t failures = 0;  ///< of those: a full disk, say; tried again when the WAL has grown on
    int64_t rests = 0;     ///< that a commit folded
  };
  /// Any thread.
  Counts counts() const;

 private:
  enum class Stage : uint8_t { kWaiting, kWanted, kFolding, kFolded, kFailed };

  Checkpointer(Connection& writer, std::unique_ptr<Connection> own);
  /// SQLite's after each commit of the writer, on its thread, with the frames of the WAL.
  static int OnCommit(void* self, sqlite3* handle, const char* schema, int frames);
  void Committed(int frames);
  /// What came after the thread's last pass, so that the next transaction begins the WAL anew.
  void FoldRest(int frames);
  void Loop();
  /// A pass of the thread.
  void Fold();

  Connection& writer_;
  const std::unique_ptr<Connection> own_;  ///< the thread's
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Stage stage_ = Stage::kWaiting;  // guarded by mutex_, as all below
  Counts counts_;
  int frames_ = 0;          ///< of the WAL, after the last commit
  int folded_ = 0;          ///< of those, by the last pass
  int64_t generation_ = 0;  ///< how often it began anew
  int passes_in_a_row_ = 0;
  bool stopping_ = false;
  int begin_at_, rests_in_a_row_ = 0;  // the writer's alone
  std::thread thread_;
};

}  // namespace hone::db
