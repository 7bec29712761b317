#include "db/sqlite_log_file.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "database_conformance.h"

namespace hone::db {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<LogFile> MustOpen(const std::string& path, OpenMode mode) {
  absl::StatusOr<std::unique_ptr<LogFile>> log = OpenLog(path, {.mode = mode});
  EXPECT_TRUE(log.ok()) << log.status();
  return log.ok() ? *std::move(log) : nullptr;
}

INSTANTIATE_TEST_SUITE_P(Sqlite, DatabaseConformance,
                         ::testing::Values(DatabaseMaker{
                             .name = "Sqlite",
                             .make =
                                 [](const TestFolder& folder) -> std::unique_ptr<Database> {
                               return MustOpen(folder / "tune.db", OpenMode::kWrite);
                             }}),
                         MakerName);

TEST(SqliteLogFile, ReopenedLogHasEverything) {
  const TestFolder folder;
  const std::string path = folder / "tune.db";
  {
    const std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kWrite);
    ASSERT_TRUE(log->Append(TestGround()).ok());
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(log->Append(TestStep(i)).ok());
  }
  for (const OpenMode mode : {OpenMode::kWrite, OpenMode::kRead}) {
    const std::unique_ptr<LogFile> log = MustOpen(path, mode);
    EXPECT_EQ(log->BestRecord({.key = TestKey()}).value()->record.id, TestId("record", 0));
    EXPECT_EQ(log->EventsOf(TestId("session", 0)).value().size(), 20u);
    EXPECT_EQ(log->Stats().value().attempts, 20);
  }
}

TEST(SqliteLogFile, SecondWriterIsRefusedWithPidHostAndRemedy) {
  const TestFolder folder;
  const std::string path = folder / "tune.db";
  const std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kWrite);
  const std::string link = folder / "link.db";
  std::filesystem::create_symlink(path, link);
  for (const std::string& name : {path, link}) {
    const absl::Status refused = OpenLog(name, {.mode = OpenMode::kWrite}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(StatusMessage(refused), HasSubstr("pid " + std::to_string(::getpid()) + " on host "));
    EXPECT_THAT(StatusMessage(refused), HasSubstr("hone db snapshot"));
  }
}

}  // namespace
}  // namespace hone::db
