#include "db/merge.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "db/memory_database.h"
#include "db/sqlite_log_file.h"
#include "facts.h"
#include "log_contents.h"

namespace hone::db {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two logs of two sessions that have the workloads and the device in common.
void FillTwoLogs(Database& a, Database& b) {
  Batch batch = TestGround();
  for (int i = 0; i < 5; ++i) {
    batch.records.push_back(TestRecord(i));
    batch.attempts.push_back(TestAttempt(i));
    batch.values.push_back(TestValues(i));
    batch.events.push_back(TestEvent(i));
  }
  ASSERT_TRUE(a.Append(batch).ok());
  batch = TestGround();
  batch.sessions = {TestSession(1)};
  batch.blobs = {TestBlob("model")};
  for (int i = 5; i < 9; ++i) {
    TuningRecord record = TestRecord(i, 1);
    record.rigor = Rigor::kConfirmed;
    batch.records.push_back(record);
    batch.attempts.push_back(TestAttempt(i, 1));
    batch.values.push_back(TestValues(i));
    batch.events.push_back(TestEvent(i, 1));
  }
  ASSERT_TRUE(b.Append(batch).ok());
}

TEST(MergeLog, AddsEverythingOnceAndTwiceChangesNothing) {
  const TestFolder folder;
  const std::unique_ptr<LogFile> a = MustOpen(folder / "a.db", OpenMode::kWrite);
  const std::unique_ptr<LogFile> b = MustOpen(folder / "b.db", OpenMode::kWrite);
  FillTwoLogs(*a, *b);
  EXPECT_EQ(MergeLog(*a, *b).value(), (MergeReport{.added = 1 + 1 + 4 * 4, .known = 3 + 1}));
  const LogContents merged = ContentsOf(*a);
  EXPECT_EQ(merged.records.size(), 9u);
  EXPECT_EQ(merged.values.size(), 9u);
  EXPECT_EQ(merged.events.size(), 9u);
  EXPECT_THAT(a->Verify().value().problems, IsEmpty());
  const std::string before = a->Snapshot(folder / "before").value();
  EXPECT_EQ(MergeLog(*a, *b).value(), (MergeReport{.known = 3 + 1 + 1 + 1 + 4 * 4}));
  EXPECT_EQ(ContentsOf(*a), merged);
  EXPECT_EQ(a->Snapshot(folder / "after").value(), before);
  EXPECT_EQ(ContentsOf(*b).records.size(), 4u);
}

TEST(MergeLog, MergedFactsCountAsScreenedAndAreNotOurs) {
  MemoryDatabase a;
  MemoryDatabase b;
  FillTwoLogs(a, b);
  ASSERT_TRUE(MergeLog(a, b).ok());
  const RankedRecord merged = a.FindRecord(TestId("record", 5)).value().value();
  EXPECT_TRUE(merged.merged);
  EXPECT_EQ(merged.rigor, Rigor::kScreened);
  EXPECT_EQ(merged.content, b.FindRecord(TestId("record", 5)).value()->content);
  EXPECT_EQ(a.Stats().value().merged_records, 4);
  int ours = 0;
  ASSERT_TRUE(a.ScanEvents({.local_only = true}, [&](const Event&) {
                 ++ours;
                 return absl::OkStatus();
               }).ok());
  EXPECT_EQ(ours, 5);
  // Back again: what is ours over there stays ours.
  ASSERT_TRUE(MergeLog(b, a).ok());
  EXPECT_FALSE(b.FindRecord(TestId("record", 5)).value()->merged);
  EXPECT_EQ(b.Stats().value().merged_records, 5);
}

TEST(MergeLog, OtherContentUnderAnIdIsRefusedAndListed) {
  MemoryDatabase a;
  MemoryDatabase b;
  FillTwoLogs(a, b);
  TuningRecord forged = TestRecord(2, 1);
  forged.median_ns = forged.low_ns = 1;
  Event other = TestEvent(3, 1);
  ASSERT_TRUE(b.Append({.records = {forged}, .events = {other}}).ok());
  const MergeReport report = MergeLog(a, b).value();
  EXPECT_THAT(report.conflicts, ElementsAre(Conflict{.kind = "record", .id = forged.id},
                                            Conflict{.kind = "event", .id = other.id}));
  EXPECT_EQ(report.added, 18);
  EXPECT_EQ(a.FindRecord(forged.id).value()->record, TestRecord(2));
}

TEST(MergeLog, CrossesManyBatches) {
  const TestFolder folder;
  const std::unique_ptr<LogFile> from = MustOpen(folder / "from.db", OpenMode::kWrite);
  Batch batch = TestGround();
  for (int i = 0; i < 3000; ++i) {
    batch.records.push_back(TestRecord(i));
    batch.attempts.push_back(TestAttempt(i));
  }
  batch.blobs = {TestBlob(std::string(5 << 20, 'x')), TestBlob(std::string(5 << 20, 'y'))};
  ASSERT_TRUE(from->Append(batch).ok());
  const std::unique_ptr<LogFile> into = MustOpen(folder / "into.db", OpenMode::kWrite);
  EXPECT_EQ(MergeLog(*into, *from).value().added, 6000 + 5 + 2);
  EXPECT_EQ(ContentsOf(*into), ContentsOf(*from));
}

TEST(MergeLog, SavesWhatIsSoundOfADamagedLog) {
  const TestFolder folder;
  MemoryDatabase unused;
  {
    const std::unique_ptr<LogFile> damaged = MustOpen(folder / "damaged.db", OpenMode::kWrite);
    FillTwoLogs(*damaged, unused);
    Connection& connection = static_cast<SqliteLogFile&>(*damaged).connection();
    // A record that attempt 2 names, and an event.
    ASSERT_TRUE(connection
                    .Execute("DROP TRIGGER records_stay; DROP TRIGGER events_stay;"
                             "UPDATE records SET seed = 99 WHERE sequence = 3;"
                             "UPDATE events SET payload = x'00' WHERE sequence = 5")
                    .ok());
  }
  const std::unique_ptr<LogFile> strict = MustOpen(folder / "damaged.db", OpenMode::kRead);
  const std::unique_ptr<LogFile> into = MustOpen(folder / "new.db", OpenMode::kWrite);
  EXPECT_EQ(MergeLog(*into, *strict).status().code(), absl::StatusCode::kDataLoss);
  const auto saving = OpenLog(folder / "damaged.db", {.skip_damaged = true});
  ASSERT_TRUE(saving.ok());
  const MergeReport report = MergeLog(*into, **saving).value();
  EXPECT_EQ((*saving)->damaged_facts(), 2);
  EXPECT_EQ(report.dropped, 2) << "the attempt, and the values of its Trace";
  EXPECT_THAT(report.conflicts, IsEmpty());
  const LogStats stats = into->Stats().value();
  EXPECT_EQ(stats.records, 4);
  EXPECT_EQ(stats.attempts, 4);
  EXPECT_EQ(stats.events, 4);
  EXPECT_THAT(into->Verify().value().problems, IsEmpty());
}

// The leaves of a table's tree, in order.
std::vector<int64_t> LeavesOf(const std::string& path, const std::string& table) {
  const std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kRead);
  Connection& connection = static_cast<SqliteLogFile&>(*log).connection();
  const int64_t root =
      connection.Number("SELECT rootpage FROM sqlite_schema WHERE name = ?", table).value();
  const int64_t page_size = connection.Number("PRAGMA page_size").value();
  const std::string page = connection.ReadRaw((root - 1) * page_size, page_size).value();
  const auto number = [&](size_t at, size_t bytes) {
    int64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<uint8_t>(page[at + i]);
    return value;
  };
  // An interior page: its type, the number of cells, the last child, and where the cells stand.
  EXPECT_EQ(page[0], 5) << table;
  std::vector<int64_t> leaves;
  for (int64_t cell = 0; cell < number(3, 2); ++cell) {
    const auto at = static_cast<size_t>(number(static_cast<size_t>(12 + 2 * cell), 2));
    leaves.push_back(number(at, 4));
  }
  leaves.push_back(number(8, 4));
  return leaves;
}

TEST(MergeLog, GoesOnBehindPagesThatAreLost) {
  constexpr int kFacts = 600;
  constexpr size_t kPageBytes = 4096;
  const TestFolder folder;
  {
    const std::unique_ptr<LogFile> damaged = MustOpen(folder / "damaged.db", OpenMode::kWrite);
    Batch batch = TestGround();
    for (int i = 0; i < kFacts; ++i) batch.records.push_back(TestRecord(i));
    for (int i = 3; i < kFacts; ++i) batch.workloads.push_back(TestWorkload(i));
    ASSERT_TRUE(damaged->Append(batch).ok());
    ASSERT_EQ(static_cast<SqliteLogFile&>(*damaged).connection().Number("PRAGMA page_size").value(),
              static_cast<int64_t>(kPageBytes));
  }
  // Two pages in the middle with a sound one between them, and one of a table without a sequence.
  std::string bytes = BytesOf(folder / "damaged.db");
  const std::vector<int64_t> records = LeavesOf(folder / "damaged.db", "records");
  const std::vector<int64_t> workloads = LeavesOf(folder / "damaged.db", "workloads");
  ASSERT_GT(records.size(), 10u);
  ASSERT_GT(workloads.size(), 4u);
  const size_t middle = records.size() / 2;
  for (const int64_t page :
       {records[middle], records[middle + 2], workloads[workloads.size() / 2]}) {
    bytes.replace(static_cast<size_t>(page - 1) * kPageBytes, kPageBytes, kPageBytes, '\x5a');
  }
  WriteBytes(folder / "damaged.db", bytes);

  const auto saving = OpenLog(folder / "damaged.db", {.skip_damaged = true});
  ASSERT_TRUE(saving.ok()) << saving.status();
  const std::unique_ptr<LogFile> into = MustOpen(folder / "new.db", OpenMode::kWrite);
  const absl::StatusOr<MergeReport> report = MergeLog(*into, **saving);
  ASSERT_TRUE(report.ok()) << report.status();
  const LogContents saved = ContentsOf(*into);
  const auto lost =
      static_cast<int64_t>(2 * kFacts - saved.records.size() - saved.workloads.size());
  EXPECT_EQ((*saving)->damaged_facts() + report->dropped, lost);
  EXPECT_GT(lost, 3);
  EXPECT_LT(lost, 2 * kFacts / 10);
  EXPECT_EQ(saved.records.front(), TestRecord(0));
  EXPECT_EQ(saved.records.back(), TestRecord(kFacts - 1));
  EXPECT_THAT(into->Verify().value().problems, IsEmpty());
}

TEST(MergeLog, SavesTheOtherTablesWhenOneHasNoPageLeft) {
  const TestFolder folder;
  int64_t root = 0;
  {
    const std::unique_ptr<LogFile> damaged = MustOpen(folder / "damaged.db", OpenMode::kWrite);
    MemoryDatabase unused;
    FillTwoLogs(*damaged, unused);
    root = static_cast<SqliteLogFile&>(*damaged)
               .connection()
               .Number("SELECT rootpage FROM sqlite_schema WHERE name = 'events'")
               .value();
  }
  std::string bytes = BytesOf(folder / "damaged.db");
  bytes.replace(static_cast<size_t>(root - 1) * 4096, 4096, 4096, '\x5a');
  WriteBytes(folder / "damaged.db", bytes);
  const auto saving = OpenLog(folder / "damaged.db", {.skip_damaged = true});
  ASSERT_TRUE(saving.ok()) << saving.status();
  const std::unique_ptr<LogFile> into = MustOpen(folder / "new.db", OpenMode::kWrite);
  ASSERT_TRUE(MergeLog(*into, **saving).ok());
  EXPECT_EQ((*saving)->damaged_facts(), 1);
  EXPECT_EQ(into->Stats().value().records, 5);
  EXPECT_EQ(into->Stats().value().events, 0);
}

}  // namespace
}  // namespace hone::db
