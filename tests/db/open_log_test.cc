#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "base/status.h"
#include "base/versions.h"
#include "db/sqlite_header.h"
#include "db/sqlite_open.h"
#include "facts.h"
#include "log_contents.h"

namespace hone::db {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A closed log with something on many pages.
void MakeLog(const std::string& path) {
  const std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kWrite);
  Batch batch = TestGround();
  for (int i = 0; i < 60; ++i) {
    batch.records.push_back(TestRecord(i));
    batch.attempts.push_back(TestAttempt(i));
    batch.values.push_back(TestValues(i));
    batch.events.push_back(TestEvent(i));
  }
  batch.blobs = {TestBlob(std::string(9000, 'm'))};
  ASSERT_TRUE(log->Append(batch).ok());
}

// Every way of opening refuses the file with `code`, a message with these words, and leaves it and
// its folder alone.
void ExpectRefused(const std::string& path, absl::StatusCode code, const std::string& words) {
  const std::string before = BytesOf(path);
  for (const OpenMode mode : {OpenMode::kWrite, OpenMode::kRead, OpenMode::kSnapshot}) {
    const absl::Status refused = OpenLog(path, {.mode = mode}).status();
    EXPECT_EQ(refused.code(), code) << refused;
    EXPECT_THAT(StatusMessage(refused), AllOf(HasSubstr("'" + path + "'"), HasSubstr(words)));
  }
  EXPECT_EQ(BytesOf(path), before);
  std::filesystem::remove(path + ".lock");
  EXPECT_THAT(FilesIn(std::filesystem::path(path).parent_path()),
              ElementsAre(std::filesystem::path(path).filename().string()));
}

TEST(OpenLog, MissingFileAndFolderAreNamed) {
  const TestFolder folder;
  const std::string path = folder / "none.db";
  for (const OpenMode mode : {OpenMode::kRead, OpenMode::kSnapshot}) {
    const absl::Status missing = OpenLog(path, {.mode = mode}).status();
    EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(StatusMessage(missing), HasSubstr("hone tune MODEL --db " + path));
  }
  EXPECT_THAT(FilesIn(folder.path()), IsEmpty());
  const absl::Status missing = OpenLog(folder / "no/tune.db", {.mode = OpenMode::kWrite}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(StatusMessage(missing),
              HasSubstr("there is no folder '" + (folder / "no") + "'; make it first"));
  EXPECT_EQ(OpenLog(folder.path(), {.mode = OpenMode::kRead}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(OpenLog, AnEmptyFileBecomesALog) {
  const TestFolder folder;
  WriteBytes(folder / "tune.db", "");
  EXPECT_TRUE(MustOpen(folder / "tune.db", OpenMode::kWrite)->Append(TestGround()).ok());
}

TEST(OpenLog, ForeignFilesAreRefusedAndLeftUntouched) {
  const TestFolder text;
  WriteBytes(text / "notes.txt", std::string(5000, 'x'));
  ExpectRefused(text / "notes.txt", absl::StatusCode::kInvalidArgument, "not an SQLite file");
  const TestFolder tiny;
  WriteBytes(tiny / "a", "SQLite format 3");
  ExpectRefused(tiny / "a", absl::StatusCode::kInvalidArgument, "not an SQLite file");
  for (const char* mode : {"WAL", "DELETE"}) {
    const TestFolder folder;
    {
      const auto foreign = Connection::Open(folder / "app.db", Connection::Access::kCreate).value();
      ASSERT_TRUE(foreign->Do(fmt::format("PRAGMA journal_mode = {}", mode)).ok());
      ASSERT_TRUE(foreign->Execute("PRAGMA application_id = 7; CREATE TABLE t (x)").ok());
    }
    ExpectRefused(folder / "app.db", absl::StatusCode::kInvalidArgument, "application id 0x7");
  }
}

TEST(OpenLog, PipesAndFoldersAreRefusedAndNotReplaced) {
  const TestFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  ASSERT_EQ(::mkdir((folder / "sub").c_str(), 0700), 0);
  for (const char* name : {"pipe", "sub"}) {
    for (const OpenMode mode : {OpenMode::kWrite, OpenMode::kRead, OpenMode::kSnapshot}) {
      const absl::Status refused = OpenLog(folder / name, {.mode = mode}).status();
      EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << name;
      EXPECT_THAT(StatusMessage(refused), HasSubstr("not a regular file")) << name;
    }
  }
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2)
      << "nothing is left beside them";
}

TEST(OpenLog, ANewerSchemaIsRefusedAndLeftUntouched) {
  const TestFolder folder;
  const std::string path = folder / "tune.db";
  MakeLog(path);
  {
    const auto connection = Connection::Open(path, Connection::Access::kReadWrite).value();
    ASSERT_TRUE(connection->Execute("PRAGMA user_version = 99").ok());
  }
  std::filesystem::remove(path + ".lock");
  ExpectRefused(path, absl::StatusCode::kFailedPrecondition,
                fmt::format("it has schema 99, this program knows {}", kSchemaVersion));
}

TEST(OpenLog, TheSchemaIsTheOneOfVersionsH) {
  EXPECT_EQ(kMigrations.back().to, kSchemaVersion);
  for (int i = 0; i < kNumMigrations; ++i) EXPECT_EQ(kMigrations[static_cast<size_t>(i)].to, i + 1);
}

TEST(OpenLog, ALogWhoseWalWasLeftBehindIsNotBegunAnew) {
  const TestFolder folder;
  WriteBytes(folder / "tune.db-wal", "newest rows");
  const absl::Status refused = OpenLog(folder / "tune.db", {.mode = OpenMode::kWrite}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(StatusMessage(refused), HasSubstr("tune.db-wal"));
  EXPECT_EQ(BytesOf(folder / "tune.db-wal"), "newest rows");
}

TEST(OpenLog, SecondWriterIsRefusedWithPidHostAndRemedyUnderEveryName) {
  const TestFolder folder;
  const std::string path = folder / "tune.db";
  const std::string link = folder / "link.db";
  std::filesystem::create_symlink(path, link);
  {
    const std::unique_ptr<LogFile> log = MustOpen(link, OpenMode::kWrite);
    std::array<char, 256> host{};
    ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
    for (const std::string& name : {path, link}) {
      const absl::Status refused = OpenLog(name, {.mode = OpenMode::kWrite}).status();
      EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
      EXPECT_THAT(StatusMessage(refused),
                  AllOf(HasSubstr(fmt::format("pid {} on host {};", ::getpid(), host.data())),
                        HasSubstr("hone db snapshot")));
    }
    EXPECT_TRUE(log->Append(TestGround()).ok());
  }
  EXPECT_NE(MustOpen(path, OpenMode::kWrite), nullptr);
}

TEST(OpenLog, AFolderThatCannotBeWrittenTellsHowToSnapshot) {
  const TestFolder folder;
  const std::string path = folder / "tune.db";
  MakeLog(path);
  const std::string snapshot = folder / "tune.snapshot";
  ASSERT_TRUE(MustOpen(path, OpenMode::kRead)->Snapshot(snapshot).ok());
  const uid_t me = ::geteuid();
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
  ASSERT_EQ(me == 0 ? ::seteuid(kNobody) : 0, 0);
  const absl::Status refused = OpenLog(path, {.mode = OpenMode::kRead}).status();
  const absl::Status writer = OpenLog(folder / "new.db", {.mode = OpenMode::kWrite}).status();
  const auto read = OpenLog(snapshot, {.mode = OpenMode::kRead});
  ASSERT_EQ(me == 0 ? ::seteuid(me) : 0, 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(StatusMessage(refused), HasSubstr("hone db snapshot " + path + " --output FILE"));
  // Nobody need be writing it.
  EXPECT_THAT(StatusMessage(refused), Not(HasSubstr("live")));
  EXPECT_EQ(writer.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(StatusMessage(writer), HasSubstr("Permission denied; name a log in a folder of"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)->Stats().value().records, 60);
}

TEST(OpenLog, MigratesForwardAfterABackupWhichTheOlderProgramStillReads) {
  const TestFolder folder;
  const std::string path = folder / "tune.db";
  MakeLog(path);
  const LogContents before = ContentsOf(*MustOpen(path, OpenMode::kRead));
  constexpr int kNext = kSchemaVersion + 1;
  const std::array<Migration, kNumMigrations + 1> next = {
      {kMigrations[0],
       kMigrations[1],
       kMigrations[2],
       kMigrations[3],
       {kNext, "CREATE TABLE notes (x TEXT) STRICT"}}};
  {
    const auto as_it_is = OpenSqliteLog(path, {.mode = OpenMode::kRead}, next);
    ASSERT_TRUE(as_it_is.ok()) << as_it_is.status();
    EXPECT_EQ(ContentsOf(**as_it_is), before);
  }
  {
    const auto log = OpenSqliteLog(path, {.mode = OpenMode::kWrite}, next);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ(ContentsOf(**log), before);
    EXPECT_EQ((*log)->connection().Number("PRAGMA user_version").value(), kNext);
    EXPECT_EQ((*log)->connection().Number("SELECT count(*) FROM notes").value(), 0);
    // Those who only look at the header see the new version while the log is open.
    EXPECT_EQ(ReadLogHeader(path).value().schema_version, static_cast<uint32_t>(kNext));
  }
  EXPECT_EQ(OpenLog(path, {.mode = OpenMode::kWrite}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const std::unique_ptr<LogFile> backup =
      MustOpen(fmt::format("{}.schema{}.bak", path, kSchemaVersion), OpenMode::kWrite);
  EXPECT_EQ(ContentsOf(*backup), before);
  EXPECT_TRUE(backup->Append(TestStep(100)).ok());
}

TEST(OpenLog, AMigrationThatFailsChangesNothing) {
  const TestFolder folder;
  const std::string path = folder / "tune.db";
  MakeLog(path);
  const LogContents before = ContentsOf(*MustOpen(path, OpenMode::kRead));
  constexpr int kNext = kSchemaVersion + 1;
  const std::array<Migration, kNumMigrations + 1> broken = {
      {kMigrations[0],
       kMigrations[1],
       kMigrations[2],
       kMigrations[3],
       {kNext, "CREATE TABLE notes (x TEXT) STRICT; DROP TABLE nothing"}}};
  const absl::Status failed = OpenSqliteLog(path, {.mode = OpenMode::kWrite}, broken).status();
  EXPECT_THAT(StatusMessage(failed), HasSubstr(fmt::format("migration to schema {}", kNext)));
  EXPECT_EQ(ContentsOf(*MustOpen(path, OpenMode::kWrite)), before);
}

TEST(OpenLog, TruncatedLogsAreRefusedAndLeftUntouched) {
  const TestFolder source;
  MakeLog(source / "tune.db");
  const std::string whole = BytesOf(source / "tune.db");
  Random random(11);
  for (int trial = 0; trial < 12; ++trial) {
    const TestFolder folder;
    const size_t size = 4096 + static_cast<size_t>(random.Below(whole.size() - 4096));
    SCOPED_TRACE(fmt::format("{} of {} bytes", size, whole.size()));
    WriteBytes(folder / "tune.db", whole.substr(0, size));
    const absl::Status refused = OpenLog(folder / "tune.db", {.mode = OpenMode::kWrite}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
    EXPECT_THAT(StatusMessage(refused), HasSubstr("hone db merge NEW_LOG "));
    EXPECT_EQ(BytesOf(folder / "tune.db"), whole.substr(0, size));
    EXPECT_THAT(FilesIn(folder.path()), ElementsAre("tune.db", "tune.db.lock"));
  }
}

TEST(OpenLog, WhatIsLeftOfATruncatedLogCanBeSaved) {
  const TestFolder folder;
  const std::string path = folder / "tune.db";
  {
    const std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kWrite);
    ASSERT_TRUE(log->Append(TestGround()).ok());
    for (int first = 0; first < 2000; first += 100) {
      Batch batch;
      for (int i = first; i < first + 100; ++i) batch.records.push_back(TestRecord(i));
      ASSERT_TRUE(log->Append(batch).ok());
    }
  }
  const std::string whole = BytesOf(path);
  size_t most_saved = 0;
  for (const double part : {0.01, 0.1, 0.5, 0.97}) {
    const std::string cut = whole.substr(0, static_cast<size_t>(part * double(whole.size())));
    WriteBytes(path, cut);
    const auto saving = OpenLog(path, {.skip_damaged = true});
    ASSERT_TRUE(saving.ok()) << saving.status();
    const LogContents saved = ContentsOf(**saving);
    EXPECT_TRUE(saved.status.ok()) << saved.status;
    EXPECT_GT((*saving)->damaged_facts(), 0);
    for (const TuningRecord& record : saved.records) {
      EXPECT_EQ(record, TestRecord(static_cast<int>(record.median_ns) - 1000));
    }
    most_saved = std::max(most_saved, saved.records.size());
    EXPECT_TRUE(BytesOf(path) == cut);
  }
  std::printf("at most %zu of 2000 records saved\n", most_saved);
  EXPECT_GT(most_saved, 100u);
}

TEST(OpenLog, FlippedBitsAreRefusedOrFoundOrHarmlessAndNeverACrash) {
  const TestFolder source;
  MakeLog(source / "tune.db");
  const std::string whole = BytesOf(source / "tune.db");
  const LogContents before = ContentsOf(*MustOpen(source / "tune.db", OpenMode::kRead));
  constexpr uint64_t kSeed = 20;
  Random random(kSeed);
  int refused = 0;
  int found = 0;
  for (int trial = 0; trial < 200; ++trial) {
    SCOPED_TRACE(fmt::format("seed {} trial {}", kSeed, trial));
    const TestFolder folder;
    const std::string path = folder / "tune.db";
    std::string bytes = whole;
    for (uint64_t flips = 1 + random.Below(3); flips > 0; --flips) {
      const size_t at = static_cast<size_t>(random.Below(bytes.size()));
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8)));
    }
    WriteBytes(path, bytes);
    {
      // Reading what can be read and saving the rest must hold up too, whatever comes back.
      const auto saving = OpenLog(path, {.mode = OpenMode::kRead, .skip_damaged = true});
      if (saving.ok()) {
        ContentsOf(**saving);
        (*saving)->TopRecords({.key = TestKey()}, 5).IgnoreError();
      }
    }
    std::filesystem::remove(path + "-wal");
    std::filesystem::remove(path + "-shm");
    EXPECT_TRUE(BytesOf(path) == bytes) << "a reader changed the file";
    const auto log = OpenLog(path, {.mode = OpenMode::kWrite});
    if (!log.ok()) {
      ++refused;
      EXPECT_THAT(log.status().code(),
                  ::testing::AnyOf(absl::StatusCode::kDataLoss, absl::StatusCode::kInvalidArgument,
                                   absl::StatusCode::kFailedPrecondition))
          << log.status();
      EXPECT_TRUE(BytesOf(path) == bytes) << "a refused file was changed";
      continue;
    }
    const auto report = (*log)->Verify();
    ASSERT_TRUE(report.ok()) << report.status();
    const LogContents after = ContentsOf(**log);
    if (!report->problems.empty()) {
      ++found;
    } else {
      EXPECT_EQ(after, before);
    }
  }
  std::printf("200 damaged files: %d refused, %d found by verify\n", refused, found);
  EXPECT_GT(refused, 10);
  EXPECT_GT(found, 20);
}

}  // namespace
}  // namespace hone::db
