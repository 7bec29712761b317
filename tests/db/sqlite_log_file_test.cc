#include "db/sqlite_log_file.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/sha256.h"
#include "base/status.h"
#include "database_conformance.h"
#include "db/log_file.h"
#include "log_contents.h"

namespace hone::db {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

INSTANTIATE_TEST_SUITE_P(Sqlite, DatabaseConformance,
                         ::testing::Values(DatabaseMaker{
                             .name = "Sqlite",
                             .make = [](const TestFolder& folder) -> std::unique_ptr<Database> {
                               return MustOpen(folder / "tune.db", OpenMode::kWrite);
                             }}),
                         MakerName);

// A closed log with `steps` steps.
std::string MakeLog(const TestFolder& folder, int steps, const std::string& name = "tune.db") {
  const std::unique_ptr<LogFile> log = MustOpen(folder / name, OpenMode::kWrite);
  EXPECT_TRUE(log->Append(TestGround()).ok());
  Batch batch;
  for (int i = 0; i < steps; ++i) {
    batch.records.push_back(TestRecord(i));
    batch.attempts.push_back(TestAttempt(i));
    batch.events.push_back(TestEvent(i));
  }
  EXPECT_TRUE(log->Append(batch).ok());
  return folder / name;
}

TEST(SqliteLogFile, ReopenedLogHasEverything) {
  const TestFolder folder;
  const std::string path = MakeLog(folder, 20);
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("tune.db", "tune.db.lock"));
  for (const OpenMode mode : {OpenMode::kWrite, OpenMode::kRead}) {
    const std::unique_ptr<LogFile> log = MustOpen(path, mode);
    EXPECT_EQ(log->BestRecord({.key = TestKey()}).value()->record.id, TestId("record", 0));
    EXPECT_EQ(log->EventsOf(TestId("session", 0)).value().size(), 20u);
    EXPECT_EQ(log->Stats().value().attempts, 20);
  }
}

TEST(SqliteLogFile, TheWriterUsesWalFullSyncAndForeignKeys) {
  const TestFolder folder;
  const std::unique_ptr<LogFile> log = MustOpen(folder / "tune.db", OpenMode::kWrite);
  Connection& connection = static_cast<SqliteLogFile&>(*log).connection();
  EXPECT_EQ(connection.Number("PRAGMA synchronous").value(), 2);
  EXPECT_EQ(connection.Number("PRAGMA foreign_keys").value(), 1);
  Query mode = connection.Run("PRAGMA journal_mode").value();
  ASSERT_TRUE(mode.Next().value());
  EXPECT_EQ(mode.Text(0), "wal");
}

TEST(SqliteLogFile, FactsNeverChangeEvenThroughSql) {
  const TestFolder folder;
  const std::unique_ptr<LogFile> log = MustOpen(MakeLog(folder, 2), OpenMode::kWrite);
  Connection& connection = static_cast<SqliteLogFile&>(*log).connection();
  const LogContents before = ContentsOf(*log);
  ASSERT_TRUE(log->Append({.blobs = {TestBlob("model")}}).ok());
  for (const char* table : {"workloads", "traces", "targets", "devices", "sessions", "records",
                            "attempts", "events", "blobs", "samples"}) {
    const absl::Status erased = connection.Execute(std::string("DELETE FROM ") + table);
    EXPECT_FALSE(erased.ok()) << table;
    if (std::string(table) == "samples") continue;
    const std::string column = connection.Number(std::string("SELECT 1 FROM pragma_table_info('") +
                                                 table + "') WHERE name = 'merged'")
                                           .value() == 1
                                   ? "merged = 1"
                                   : "rowid = rowid + 1";
    const absl::Status changed =
        connection.Execute(std::string("UPDATE ") + table + " SET " + column);
    EXPECT_THAT(StatusMessage(changed), HasSubstr("facts never change")) << table;
  }
  EXPECT_FALSE(connection.Execute("UPDATE samples SET values_ns = x''").ok());
  EXPECT_EQ(ContentsOf(*log).records, before.records);
}

TEST(SqliteLogFile, WrongTypesAreRefusedByStrictTables) {
  const TestFolder folder;
  const std::unique_ptr<LogFile> log = MustOpen(folder / "tune.db", OpenMode::kWrite);
  Connection& connection = static_cast<SqliteLogFile&>(*log).connection();
  EXPECT_FALSE(
      connection.Execute("INSERT INTO workloads VALUES (zeroblob(16), 'w', 'x', 1, zeroblob(16))")
          .ok());
  EXPECT_FALSE(
      connection.Execute("INSERT INTO workloads VALUES (zeroblob(15), 'w', 1, 1, zeroblob(16))")
          .ok());
}

TEST(SqliteLogFile, NothingIsCommittedToAFileThatIsNotUnderItsNameAnyMore) {
  const TestFolder folder;
  const std::string path = folder / "tune.db", aside = folder / "aside.db";
  const std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kWrite);
  ASSERT_TRUE(log->Append(TestGround()).ok());
  const auto refused = [&] {
    const absl::Status status = log->Append(TestStep(1)).status();
    EXPECT_THAT(StatusMessage(status),
                HasSubstr("'" + path + "' was moved or removed while it is written; put it back"));
    return status.code() == absl::StatusCode::kUnavailable;
  };
  std::filesystem::rename(path, aside);
  EXPECT_TRUE(refused());
  std::filesystem::copy_file(aside, path);
  EXPECT_TRUE(refused()) << "a copy is another file";
  std::filesystem::rename(aside, path);
  EXPECT_TRUE(log->Append(TestStep(1)).ok());
  EXPECT_EQ(log->Stats().value().records, 1) << "what was refused has no effect";
  EXPECT_EQ(MustOpen(path, OpenMode::kRead)->Stats().value().records, 1);
}

TEST(SqliteLogFile, NothingIsCommittedToOrFoldedIntoAFileThatWasOverwritten) {
  for (const bool apart : {false, true}) {
    const TestFolder folder;
    const std::string path = folder / "tune.db", other = folder / "other.db";
    const Blob more = TestBlob(std::string(1 << 20, 'm'));  // of another size, as logs are
    ASSERT_TRUE(MustOpen(other, OpenMode::kWrite)->Append({.blobs = {more}}).ok());
    std::string copied(std::filesystem::file_size(other), '\0');
    std::ifstream(other, std::ios::binary).read(copied.data(), std::ssize(copied));
    absl::StatusOr<std::unique_ptr<LogFile>> log =
        OpenLog(path, {.mode = OpenMode::kWrite, .checkpoints_apart = apart});
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE((*log)->Append(TestGround()).ok());
    ASSERT_TRUE((*log)->Append(TestStep(1)).ok());
    // As `cp` does it: the same file, other bytes.
    std::ofstream(path, std::ios::binary | std::ios::trunc) << copied;
    for (int i = 2; i < 4; ++i) {
      const absl::Status status = (*log)->Append(TestStep(i)).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      EXPECT_THAT(StatusMessage(status), HasSubstr("'" + path + "' was overwritten by another"));
    }
    log->reset();
    std::string left(std::filesystem::file_size(path), '\0');
    std::ifstream(path, std::ios::binary).read(left.data(), std::ssize(left));
    EXPECT_EQ(left, copied) << "nothing of the log before is in it";
  }
}

// `cp -p` of a copy that was made a moment before: size and header are those of the log.
TEST(SqliteLogFile, NothingIsCommittedToAFileThatAnOlderCopyOfItselfOverwrote) {
  const TestFolder folder;
  const std::string path = MakeLog(folder, 2);
  std::string copied(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(copied.data(), std::ssize(copied));
  std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kWrite);
  ASSERT_TRUE(log->Append({.blobs = {TestBlob("model")}}).ok());
  const auto written = std::filesystem::last_write_time(path);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << copied;
  std::filesystem::last_write_time(path, written - std::chrono::hours(1));
  const absl::Status status = log->Append(TestStep(3)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(StatusMessage(status), HasSubstr("was overwritten by another program"));
  log.reset();
  std::string left(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(left.data(), std::ssize(left));
  EXPECT_EQ(left, copied) << "nothing of the log before is in it";
}

TEST(SqliteLogFile, ALogThatWasTouchedLosesNothingWhenItIsOpenedAgain) {
  const TestFolder folder;
  const std::string path = MakeLog(folder, 2);
  std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kWrite);
  ASSERT_TRUE(log->Append(TestStep(2)).ok());
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  EXPECT_THAT(StatusMessage(log->Append(TestStep(3)).status()), HasSubstr("remove nothing"));
  log.reset();
  log = MustOpen(path, OpenMode::kWrite);
  EXPECT_EQ(log->Stats().value().records, 3);
  EXPECT_TRUE(log->Append(TestStep(3)).ok());
}

TEST(SqliteLogFile, ItsOwnCheckpointsAreNotTakenForSomebodyElses) {
  for (const bool apart : {false, true}) {
    const TestFolder folder;
    const auto log =
        OpenLog(folder / "tune.db", {.mode = OpenMode::kWrite, .checkpoints_apart = apart});
    ASSERT_TRUE((*log)->Append(TestGround()).ok());
    // A megabyte each: the WAL is folded every few of them.
    for (int i = 0; i < 40; ++i) {
      const Blob blob = TestBlob(std::string(1 << 20, static_cast<char>('a' + i)));
      const auto appended = (*log)->Append({.blobs = {blob}});
      ASSERT_TRUE(appended.ok()) << appended.status();
    }
    if (!apart) {
      EXPECT_TRUE((*log)->Compact().ok());
    }
    EXPECT_TRUE((*log)->Append(TestStep(1)).ok());
  }
}

TEST(SqliteLogFile, NothingIsCommittedToAWriteAheadLogThatIsGoneAndWhatWasIsFoldedIn) {
  for (const std::string suffix : {"-wal", "-shm"}) {
    const TestFolder folder;
    const std::string path = folder / "tune.db", aside = folder / "aside";
    std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kWrite);
    ASSERT_TRUE(log->Append(TestGround()).ok());
    ASSERT_TRUE(log->Append(TestStep(1)).ok());
    const auto refused = [&] {
      const absl::Status status = log->Append(TestStep(2)).status();
      EXPECT_THAT(StatusMessage(status),
                  HasSubstr("'" + path + suffix + "' was moved or removed while the log"));
      return status.code() == absl::StatusCode::kUnavailable;
    };
    std::filesystem::rename(path + suffix, aside);
    EXPECT_TRUE(refused());
    std::filesystem::rename(aside, path + suffix);
    EXPECT_TRUE(log->Append(TestStep(2)).ok());
    std::filesystem::remove(path + suffix);
    EXPECT_TRUE(refused());
    log.reset();
    EXPECT_EQ(MustOpen(path, OpenMode::kRead)->Stats().value().records, 2) << suffix;
  }
}

TEST(SqliteLogFile, TheWriteAheadLogOfALinkedLogIsLookedForWhereItLies) {
  const TestFolder folder;
  const std::string path = folder / "tune.db", link = folder / "link.db";
  ASSERT_TRUE(MustOpen(path, OpenMode::kWrite)->Append(TestGround()).ok());
  std::filesystem::create_symlink(path, link);
  std::unique_ptr<LogFile> log = MustOpen(link, OpenMode::kWrite);
  ASSERT_TRUE(log->Append(TestStep(1)).ok());
  ASSERT_TRUE(std::filesystem::remove(path + "-wal"));
  EXPECT_EQ(log->Append(TestStep(2)).status().code(), absl::StatusCode::kUnavailable);
}

TEST(SqliteLogFile, ReadersCannotAppend) {
  const TestFolder folder;
  const std::unique_ptr<LogFile> log = MustOpen(MakeLog(folder, 1), OpenMode::kRead);
  EXPECT_EQ(log->Append(TestStep(2)).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(log->Compact().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(SqliteLogFile, AReaderSeesOneStateWhileTheWriterGoesOn) {
  const TestFolder folder;
  const std::string path = MakeLog(folder, 1);
  const std::unique_ptr<LogFile> writer = MustOpen(path, OpenMode::kWrite);
  const std::unique_ptr<LogFile> reader = MustOpen(path, OpenMode::kRead);
  {
    const auto scope = reader->BeginRead();
    ASSERT_TRUE(scope.ok());
    ASSERT_TRUE(writer->Append(TestStep(5)).ok());
    EXPECT_EQ(reader->Stats().value().records, 1);
  }
  EXPECT_EQ(reader->Stats().value().records, 2);
}

TEST(SqliteLogFile, ASnapshotNeverChangesIsPinnedAndIsReadWhereNothingCanBeWritten) {
  const TestFolder folder;
  const std::string path = MakeLog(folder, 5);
  const std::string file = folder / "pin 100%?.snapshot";
  std::string sha256;
  {
    // Beside a writer whose rows are still in its WAL, by another connection.
    const std::unique_ptr<LogFile> writer = MustOpen(path, OpenMode::kWrite);
    ASSERT_TRUE(writer->Append(TestStep(7)).ok());
    sha256 = MustOpen(path, OpenMode::kRead)->Snapshot(file).value();
    EXPECT_EQ(MustOpen(path, OpenMode::kRead)->Snapshot(folder / "again").value(), sha256);
  }
  EXPECT_EQ(sha256, Sha256Hex(BytesOf(file)));
  for (const OpenMode mode : {OpenMode::kSnapshot, OpenMode::kRead}) {
    const auto snapshot = OpenLog(file, {.mode = mode, .sha256 = sha256});
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    EXPECT_EQ((*snapshot)->Stats().value().records, 6);
    EXPECT_THAT((*snapshot)->Verify().value().problems, IsEmpty());
    EXPECT_EQ(ContentsOf(**snapshot), ContentsOf(*MustOpen(path, OpenMode::kRead)));
    EXPECT_EQ((*snapshot)->Append(TestStep(8)).status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_EQ(Sha256Hex(BytesOf(file)), sha256);
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("again", "pin 100%?.snapshot", "tune.db",
                                                  "tune.db-shm", "tune.db-wal", "tune.db.lock"));

  const absl::Status other =
      OpenLog(file, {.mode = OpenMode::kSnapshot, .sha256 = std::string(64, '0')}).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(StatusMessage(other), HasSubstr(sha256));
  const absl::Status written = OpenLog(file, {.mode = OpenMode::kWrite}).status();
  EXPECT_EQ(written.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(StatusMessage(written), HasSubstr("hone db merge"));
  for (const OpenOptions& options :
       {OpenOptions{.mode = OpenMode::kSnapshot}, OpenOptions{.sha256 = sha256}}) {
    const absl::Status live = OpenLog(path, options).status();
    EXPECT_EQ(live.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(StatusMessage(live), HasSubstr("hone db snapshot"));
  }
}

TEST(SqliteLogFile, ASnapshotReplacesOnlySnapshots) {
  const TestFolder folder;
  const std::unique_ptr<LogFile> log = MustOpen(MakeLog(folder, 1), OpenMode::kWrite);
  const std::string file = folder / "a.snapshot";
  const std::string first = log->Snapshot(file).value();
  ASSERT_TRUE(log->Append(TestStep(9)).ok());
  const std::string second = log->Snapshot(file).value();
  EXPECT_NE(first, second);
  EXPECT_EQ(MustOpen(file, OpenMode::kSnapshot)->Stats().value().records, 2);

  EXPECT_EQ(log->Snapshot(log->path()).status().code(), absl::StatusCode::kFailedPrecondition);
  WriteBytes(folder / "model.onnx", "not a log");
  EXPECT_EQ(log->Snapshot(folder / "model.onnx").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(BytesOf(folder / "model.onnx"), "not a log");
  EXPECT_FALSE(log->Snapshot(folder / "none/a.snapshot").ok());
  EXPECT_THAT(log->Verify().value().problems, IsEmpty());
}

TEST(SqliteLogFile, CompactingFoldsSamplesToQuantilesAndKeepsEveryFact) {
  const TestFolder folder;
  const std::unique_ptr<LogFile> log = MustOpen(MakeLog(folder, 3), OpenMode::kWrite);
  TuningRecord many = TestRecord(10);
  many.samples_ns.clear();
  for (int i = 0; i < 1601; ++i) many.samples_ns.push_back((i * 7) % 1601);  // 0 … 1600, shuffled
  ASSERT_TRUE(log->Append({.records = {many}}).ok());
  LogContents before = ContentsOf(*log);

  const CompactReport report = log->Compact().value();
  EXPECT_EQ(report.folded_records, 1);
  EXPECT_LT(report.bytes_after, report.bytes_before);
  const RankedRecord folded = log->FindRecord(many.id).value().value();
  std::vector<double> quantiles;
  for (int i = 0; i < kSampleQuantiles; ++i) quantiles.push_back(100.0 * i);
  EXPECT_EQ(folded.record.samples_ns, quantiles);
  EXPECT_EQ(folded.content, ContentHash(many));
  before.records.back().samples_ns = quantiles;
  EXPECT_EQ(ContentsOf(*log), before);
  EXPECT_EQ(log->Compact().value().folded_records, 0);
  EXPECT_THAT(log->Verify().value().problems, IsEmpty());
}

TEST(SqliteLogFile, CompactingLeavesDamagedSamplesToBeFound) {
  const TestFolder folder;
  const std::unique_ptr<LogFile> log = MustOpen(MakeLog(folder, 1), OpenMode::kWrite);
  TuningRecord sound = TestRecord(10), damaged = TestRecord(11);
  sound.samples_ns.assign(100, 5.0);
  damaged.samples_ns.assign(100, 6.0);
  ASSERT_TRUE(log->Append({.records = {sound, damaged}}).ok());
  ASSERT_TRUE(static_cast<SqliteLogFile&>(*log)
                  .connection()
                  .Execute("DROP TRIGGER samples_fold_once;"
                           "UPDATE samples SET values_ns = zeroblob(800) WHERE rowid = 3")
                  .ok());
  const CompactReport report = log->Compact().value();
  EXPECT_EQ(report.folded_records, 1);
  EXPECT_EQ(report.damaged_records, 1);
  EXPECT_THAT(log->Verify().value().problems,
              ElementsAre(HasSubstr("samples of " + damaged.id.ToHex())));
}

TEST(SqliteLogFile, ALogThatLacksATableIsDamaged) {
  const TestFolder folder;
  const std::string path = MakeLog(folder, 3);
  {
    const std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kWrite);
    ASSERT_TRUE(static_cast<SqliteLogFile&>(*log).connection().Execute("DROP TABLE events").ok());
  }
  const std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kRead);
  EXPECT_THAT(log->Verify().value().problems, ElementsAre("events: no such table: events"));
  const absl::Status stats = log->Stats().status();
  EXPECT_EQ(stats.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(StatusMessage(stats), HasSubstr("no such table: events; the log is damaged"));
}

TEST(SqliteLogFile, VerifyNamesFactsThatAreNotWhatWasWritten) {
  const TestFolder folder;
  const std::string path = MakeLog(folder, 3);
  const LogContents whole = ContentsOf(*MustOpen(path, OpenMode::kRead));
  {
    const std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kWrite);
    EXPECT_EQ(log->Verify().value().facts, 3 + 3 + 1 + 1 + 1 + 3 + 3 + 3 + 3);
    Connection& connection = static_cast<SqliteLogFile&>(*log).connection();
    ASSERT_TRUE(connection
                    .Execute("DROP TRIGGER records_stay; DROP TRIGGER samples_fold_once;"
                             "UPDATE records SET median_ns = median_ns + 0.125 WHERE sequence = 2;"
                             "UPDATE samples SET values_ns = zeroblob(8) WHERE rowid = 3")
                    .ok());
  }
  const std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kRead);
  const VerifyReport report = log->Verify().value();
  EXPECT_THAT(report.problems, ElementsAre(HasSubstr("record " + TestId("record", 1).ToHex()),
                                           HasSubstr("samples of " + TestId("record", 2).ToHex())));
  EXPECT_EQ(log->FindRecord(TestId("record", 1)).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ContentsOf(*log).status.code(), absl::StatusCode::kDataLoss);

  const auto saving = OpenLog(path, {.mode = OpenMode::kRead, .skip_damaged = true});
  ASSERT_TRUE(saving.ok());
  const LogContents saved = ContentsOf(**saving);
  EXPECT_TRUE(saved.status.ok());
  EXPECT_EQ(saved.records, std::vector<TuningRecord>{whole.records[0]});
  EXPECT_EQ(saved.attempts, whole.attempts);
  EXPECT_EQ((*saving)->damaged_facts(), 2);
}

}  // namespace
}  // namespace hone::db
