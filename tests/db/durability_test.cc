#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/core/random.h"
#include "base/core/unique_fd.h"
#include "base/status.h"
#include "db/sqlite_log_file.h"
#include "facts.h"
#include "log_contents.h"

namespace hone::db {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What a step brings beside its facts, so that the write-ahead log grows.
Blob BallastOf(int number, size_t bytes) {
  std::string ballast = fmt::format("{} ", number);
  while (ballast.size() < bytes) ballast += ballast;
  return TestBlob(ballast);
}

// A child process that appends steps first, first + 1, … and says each number once it is
// acknowledged. It inherits no open log.
class WritingChild {
 public:
  struct Options {
    bool checkpoints_apart = false;
    size_t ballast = 0;  ///< bytes of the blob that each step brings, 0: none
  };

  /// `between` runs in the child after each acknowledgement.
  WritingChild(const std::string& path, int first, const std::function<void()>& between = {})
      : WritingChild(path, first, Options(), between) {}
  WritingChild(const std::string& path, int first, const Options& options,
               const std::function<void()>& between = {}) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    pid_ = ::fork();
    EXPECT_GE(pid_, 0);
    if (pid_ == 0) {
      ::close(ends[0]);
      Write(path, first, options, between, ends[1]);
    }
    ::close(ends[1]);
    acknowledged_.Reset(ends[0]);
  }
  ~WritingChild() { Kill(); }

  /// The next acknowledged number; -1 when there are no more.
  int Next() {
    int number = -1;
    const ssize_t got = ::read(acknowledged_.get(), &number, sizeof number);
    return got == static_cast<ssize_t>(sizeof number) ? number : -1;
  }

  /// Kills it so long after that many acknowledgements from `first` on; the last one it gave, below
  /// first + wanted - 1 when it ended by itself or left one out.
  int KillAfter(int first, int64_t wanted, int64_t later_ns) {
    int last = first - 1;
    for (; wanted > 0; --wanted) {
      if (Next() != last + 1) return last;
      ++last;
    }
    SystemMonotonicClock().SleepNs(later_ns);
    Kill();
    for (int number = Next(); number >= 0; number = Next()) last = number;
    return last;
  }

  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  [[noreturn]] static void Write(const std::string& path, int first, const Options& options,
                                 const std::function<void()>& between, int out) {
    auto log =
        OpenLog(path, {.mode = OpenMode::kWrite, .checkpoints_apart = options.checkpoints_apart});
    if (!log.ok()) ::_exit(1);
    for (int number = first;; ++number) {
      Batch step = TestStep(number);
      if (options.ballast > 0) step.blobs.push_back(BallastOf(number, options.ballast));
      if (!(*log)->Append(step).ok()) ::_exit(2);
      if (::write(out, &number, sizeof number) != static_cast<ssize_t>(sizeof number)) ::_exit(3);
      if (between) between();
    }
  }

  pid_t pid_ = -1;
  UniqueFd acknowledged_;
};

// Steps 0 to `last` stand in the log in order, each with all of its facts; returns how many there
// are.
int ExpectSteps(LogFile& log, int last) {
  const LogContents contents = ContentsOf(log);
  EXPECT_TRUE(contents.status.ok()) << contents.status;
  const int found = static_cast<int>(contents.events.size());
  EXPECT_GT(found, last) << "acknowledged steps are lost";
  EXPECT_EQ(contents.records.size(), contents.events.size()) << "half a batch";
  EXPECT_EQ(contents.attempts.size(), contents.events.size()) << "half a batch";
  for (int i = 0; i < found; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(contents.events[at].id, TestId("event", i));
    EXPECT_EQ(contents.records[at], TestRecord(i));
  }
  return found;
}

TEST(Durability, KillingTheWriterTwentyTimesLosesNothingAcknowledged) {
  const TestFolder folder;
  const std::string path = folder / "tune.db";
  ASSERT_TRUE(MustOpen(path, OpenMode::kWrite)->Append(TestGround()).ok());
  constexpr uint64_t kSeed = 7;
  Random random(kSeed);
  int next = 0;
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(fmt::format("seed {} round {}", kSeed, round));
    WritingChild child(path, next);
    const int64_t wanted = random.Between(1, 25);
    const int last = child.KillAfter(next, wanted, random.Between(0, 2'000'000));
    ASSERT_GE(last, next - 1 + wanted) << "the writer ended by itself";
    // Only every other round closes cleanly, so that write-ahead logs of several lives add up.
    const auto mode = round % 2 == 0 ? OpenMode::kRead : OpenMode::kWrite;
    const std::unique_ptr<LogFile> log = MustOpen(path, mode);
    ASSERT_NE(log, nullptr);
    next = ExpectSteps(*log, last);
    EXPECT_LE(next, last + 2) << "at most the step under way was not acknowledged";
  }
  const std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kWrite);
  EXPECT_THAT(log->Verify().value().problems, IsEmpty());
}

// The thread that folds dies anywhere in it, the writer in a commit.
TEST(Durability, KillingAWriterWhoseLogIsFoldedApartLosesNothingAcknowledged) {
  const TestFolder folder;
  const std::string path = folder / "tune.db";
  ASSERT_TRUE(MustOpen(path, OpenMode::kWrite)->Append(TestGround()).ok());
  constexpr uint64_t kSeed = 11;
  constexpr size_t kBallast = 1 << 20;  // twelve of them are folded at a time
  Random random(kSeed);
  int next = 0;
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(fmt::format("seed {} round {}", kSeed, round));
    WritingChild child(path, next, {.checkpoints_apart = true, .ballast = kBallast});
    const int64_t wanted = random.Between(8, 16);
    const int last = child.KillAfter(next, wanted, random.Between(0, 5'000'000));
    ASSERT_GE(last, next - 1 + wanted) << "the writer ended by itself";
    const std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kRead);
    ASSERT_NE(log, nullptr);
    next = ExpectSteps(*log, last);
    for (int i = 0; i <= last; ++i) {
      const Blob blob = BallastOf(i, kBallast);
      EXPECT_TRUE(log->FindBlob(blob.digest).value() == blob.bytes) << i;
    }
  }
  const std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kWrite);
  EXPECT_THAT(log->Verify().value().problems, IsEmpty());
}

TEST(Durability, KillingTheMakerOfALogLeavesALogOrNone) {
  constexpr uint64_t kSeed = 3;
  Random random(kSeed);
  const SystemMonotonicClock clock;
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE(fmt::format("seed {} round {}", kSeed, round));
    const TestFolder folder;
    const std::string path = folder / "tune.db";
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      const auto log = OpenLog(path, {.mode = OpenMode::kWrite});
      ::pause();
      ::_exit(log.ok() ? 0 : 1);
    }
    clock.SleepNs(random.Between(0, 60'000'000));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    const std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kWrite);
    ASSERT_NE(log, nullptr);
    EXPECT_TRUE(log->Append(TestGround()).ok());
  }
}

// What must not happen: a descriptor of the log closed in the writer's process drops its locks, a
// reader that closes then deletes the live write-ahead log, and acknowledged commits vanish.
TEST(Durability, ReadersThatComeAndGoTakeNothingFromALiveWriter) {
  const TestFolder folder;
  const std::string path = folder / "tune.db";
  ASSERT_TRUE(MustOpen(path, OpenMode::kWrite)->Append(TestGround()).ok());
  const auto read = [&path] {
    auto log = OpenLog(path, {.mode = OpenMode::kRead});
    if (!log.ok() || !(*log)->Stats().ok()) ::_exit(4);
  };
  int last = -1;
  {
    WritingChild writer(path, 0, read);
    for (int i = 0; i < 60; ++i) {
      last = writer.Next();
      ASSERT_EQ(last, i) << "the writer or its readers failed";
      EXPECT_GT(MustOpen(path, OpenMode::kRead)->Stats().value().records, last);
      // Somebody with the sqlite3 shell: not read-only, so it would delete a log it believes
      // unused.
      const auto shell = Connection::Open(path, Connection::Access::kReadWrite).value();
      EXPECT_GT(shell->Number("SELECT count(*) FROM records").value(), last);
    }
    // No clean close: what a new process sees is what survives.
    writer.Kill();
    for (int number = writer.Next(); number >= 0; number = writer.Next()) last = number;
  }
  ExpectSteps(*MustOpen(path, OpenMode::kRead), last);
  ExpectSteps(*MustOpen(path, OpenMode::kWrite), last);
}

// Appends steps of 40 kB until the log refuses one; returns how many were acknowledged.
int AppendUntilRefused(LogFile& log, absl::Status& refused) {
  for (int number = 0; number < 1000; ++number) {
    Batch batch = TestStep(number);
    batch.blobs = {TestBlob(std::string(40'000, 'a') + std::to_string(number))};
    refused = log.Append(batch).status();
    if (!refused.ok()) return number;
  }
  return 1000;
}

void ExpectFullIsSaidAndHarmless(LogFile& log) {
  absl::Status refused;
  const int acknowledged = AppendUntilRefused(log, refused);
  EXPECT_GT(acknowledged, 3);
  EXPECT_LT(acknowledged, 1000);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(StatusMessage(refused), HasSubstr("free some space"));
  EXPECT_EQ(ExpectSteps(log, acknowledged - 1), acknowledged);
  EXPECT_THAT(log.Verify().value().problems, IsEmpty());
}

TEST(Durability, ALogThatMayNotGrowKeepsWhatItHas) {
  const TestFolder folder;
  const std::string path = folder / "tune.db";
  {
    const std::unique_ptr<LogFile> log = MustOpen(path, OpenMode::kWrite);
    ASSERT_TRUE(log->Append(TestGround()).ok());
    Connection& connection = static_cast<SqliteLogFile&>(*log).connection();
    ASSERT_TRUE(connection.Number("PRAGMA max_page_count = 200").ok());
    ExpectFullIsSaidAndHarmless(*log);
    // Room again: the same log goes on.
    ASSERT_TRUE(connection.Number("PRAGMA max_page_count = 100000").ok());
    EXPECT_TRUE(log->Append(TestStep(2000)).ok());
  }
  EXPECT_EQ(MustOpen(path, OpenMode::kRead)->FindRecord(TestId("record", 2000)).value()->record,
            TestRecord(2000));
}

// Runs in a child, because a limit of its own is for the whole process.
TEST(Durability, AFileSizeLimitOfTheSystemIsLikeAFullDisk) {
  const TestFolder folder;
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 600'000, .rlim_max = 600'000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(2);
    const std::unique_ptr<LogFile> log = MustOpen(folder / "tune.db", OpenMode::kWrite);
    if (log == nullptr || !log->Append(TestGround()).ok()) ::_exit(3);
    ExpectFullIsSaidAndHarmless(*log);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Durability, AFullDiskKeepsWhatWasAcknowledged) {
  const TestFolder folder;
  const std::string disk = folder / "disk";
  ASSERT_EQ(::mkdir(disk.c_str(), 0755), 0);
  if (::mount("hone", disk.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "no small disk can be mounted here: " << std::strerror(errno);
  }
  {
    const std::unique_ptr<LogFile> log = MustOpen(disk + "/tune.db", OpenMode::kWrite);
    ASSERT_TRUE(log->Append(TestGround()).ok());
    ExpectFullIsSaidAndHarmless(*log);
    EXPECT_EQ(log->Snapshot(disk + "/copy").status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(log->Compact().status().code(), absl::StatusCode::kResourceExhausted);
  }
  {
    const std::unique_ptr<LogFile> log = MustOpen(disk + "/tune.db", OpenMode::kRead);
    ASSERT_NE(log, nullptr);
    EXPECT_THAT(log->Verify().value().problems, IsEmpty());
  }
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

}  // namespace
}  // namespace hone::db
