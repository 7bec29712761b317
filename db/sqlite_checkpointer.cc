#include "db/sqlite_checkpointer.h"

#include <utility>

#include "base/core/thread_name.h"
#include "db/sqlite_stamp.h"

namespace hone::db {
namespace {

/// 12 MiB of pages: with what comes while they are folded less than journal_size_limit, so that the
/// WAL's file is overwritten in place and a sync has no new size to store.
constexpr int kFoldedAtOnce = 3072;
/// Frames that a commit folds: a few milliseconds. For more the thread makes another pass.
constexpr int kMostRest = 1024;
/// Passes after which a commit folds whatever is left: the writer is faster than the disk.
constexpr int kMostPasses = 64;
/// A reader in a transaction of its own keeps the WAL from beginning anew; then the next commit
/// tries again.
constexpr int kMostRestsInARow = 8;

}  // namespace

absl::StatusOr<std::unique_ptr<Checkpointer>> Checkpointer::Start(Connection& writer) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Connection> own,
                        Connection::Open(writer.path(), Connection::Access::kReadWrite));
  HONE_RETURN_IF_ERROR(own->Execute("PRAGMA synchronous = FULL"));
  // A connection finds out that there is a WAL when it first reads.
  HONE_RETURN_IF_ERROR(own->Number("SELECT count(*) FROM sqlite_schema").status());
  return std::unique_ptr<Checkpointer>(new Checkpointer(writer, std::move(own)));
}

Checkpointer::Checkpointer(Connection& writer, std::unique_ptr<Connection> own)
    : writer_(writer), own_(std::move(own)), begin_at_(kFoldedAtOnce), thread_([this] {
        NameThisThread("checkpointer");
        Loop();
      }) {
  sqlite3_wal_hook(writer_.handle(), &OnCommit, this);
}

Checkpointer::~Checkpointer() {
  sqlite3_wal_hook(writer_.handle(), nullptr, nullptr);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Checkpointer::Counts Checkpointer::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

int Checkpointer::OnCommit(void* self, sqlite3* /*handle*/, const char* /*schema*/, int frames) {
  static_cast<Checkpointer*>(self)->Committed(frames);
  // The commit is durable whatever became of the fold.
  return SQLITE_OK;
}

void Checkpointer::Committed(int frames) {
  std::unique_lock lock(mutex_);
  const bool anew = frames < frames_;
  frames_ = frames;
  if (anew) {
    ++generation_;
    folded_ = 0;
    begin_at_ = kFoldedAtOnce;
    rests_in_a_row_ = passes_in_a_row_ = 0;
    if (stage_ == Stage::kFolded) stage_ = Stage::kWaiting;
  }
  if (stage_ == Stage::kFailed) {
    begin_at_ = frames + kFoldedAtOnce;
    stage_ = Stage::kWaiting;
  }
  if (frames < begin_at_) return;
  // A reader that was in the way has ended, or the thread did not get at the disk: once more.
  const bool much = frames - folded_ > kMostRest && passes_in_a_row_ < kMostPasses;
  if (stage_ == Stage::kWaiting || (stage_ == Stage::kFolded && much)) {
    stage_ = Stage::kWanted;
    changed_.notify_all();
  } else if (stage_ == Stage::kFolded) {
    lock.unlock();
    FoldRest(frames);
  }
}

void Checkpointer::FoldRest(int frames) {
  // A failure has no consequence: the WAL keeps what is not folded.
  int folded = 0;
  const LogStamp::Writing writing(*writer_.stamp(), writer_);
  if (writing.allowed()) {
    sqlite3_wal_checkpoint_v2(writer_.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr,
                              &folded);
  }
  const std::lock_guard lock(mutex_);
  ++counts_.rests;
  folded_ = folded;
  if (++rests_in_a_row_ < kMostRestsInARow) return;
  rests_in_a_row_ = passes_in_a_row_ = 0;
  begin_at_ = frames + kFoldedAtOnce;
  stage_ = Stage::kWaiting;
}

void Checkpointer::Fold() {
  int64_t generation = 0;
  {
    const std::lock_guard lock(mutex_);
    generation = generation_;
  }
  int folded = 0;
  int code = SQLITE_ABORT;
  {
    const LogStamp::Writing writing(*writer_.stamp(), *own_);
    if (writing.allowed()) {
      code = sqlite3_wal_checkpoint_v2(own_->handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr,
                                       &folded);
    }
  }
  const std::lock_guard lock(mutex_);
  ++counts_.passes;
  ++passes_in_a_row_;
  if (code != SQLITE_OK) {
    ++counts_.failures;
    stage_ = Stage::kFailed;
  } else if (generation != generation_) {
    stage_ = Stage::kWaiting;  // what it folded is no more: the WAL began anew meanwhile
  } else {
    folded_ = folded;
    stage_ = Stage::kFolded;
  }
}

void Checkpointer::Loop() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || stage_ == Stage::kWanted; });
      if (stopping_) return;
      stage_ = Stage::kFolding;
    }
    Fold();
  }
}

}  // namespace hone::db
