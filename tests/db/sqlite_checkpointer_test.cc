#include "db/sqlite_checkpointer.h"

#include <filesystem>
#include <memory>
#include <string>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "db/sqlite_log_file.h"
#include "facts.h"
#include "log_contents.h"

namespace hone::db {
namespace {

using ::testing::ElementsAre;

constexpr size_t kBallast = 1 << 20;
constexpr uintmax_t kKept = 16 << 20;  // journal_size_limit: what the WAL's file keeps of its size

class CheckpointerTest : public ::testing::Test {
 protected:
  CheckpointerTest() {
    auto log = OpenLog(path_, {.mode = OpenMode::kWrite, .checkpoints_apart = true});
    EXPECT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
    EXPECT_TRUE(log_->Append(TestGround()).ok());
  }

  Checkpointer::Counts counts() const {
    return static_cast<SqliteLogFile&>(*log_).checkpointer()->counts();
  }
  uintmax_t WalBytes() const { return std::filesystem::file_size(path_ + "-wal"); }
  void AppendBallast() {
    Batch batch;
    std::string ballast = fmt::format("{} ", number_++);
    while (ballast.size() < kBallast) ballast += ballast;
    batch.blobs.push_back(TestBlob(ballast));
    const auto appended = log_->Append(batch);
    ASSERT_TRUE(appended.ok()) << appended.status();
  }
  /// Appends until that is so, at most so many times.
  template <typename Holds>
  bool AppendUntil(const Holds& holds, int most) {
    for (; most > 0 && !holds(); --most) AppendBallast();
    return holds();
  }

  TestFolder folder_;
  const std::string path_ = folder_ / "tune.db";
  std::unique_ptr<LogFile> log_;
  int number_ = 0;
};

TEST_F(CheckpointerTest, TheWalBeginsAnewAgainAndAgainAndNothingIsLost) {
  ASSERT_TRUE(AppendUntil([&] { return counts().rests >= 3; }, 400))
      << counts().passes << " passes";
  EXPECT_GE(counts().passes, 3);
  EXPECT_EQ(counts().failures, 0);
  // Two more: the first begins the WAL anew and cuts its file.
  AppendBallast();
  AppendBallast();
  EXPECT_LE(WalBytes(), kKept + 2 * kBallast);
  EXPECT_GT(std::filesystem::file_size(path_), kKept);
  log_.reset();
  // The close folded the rest.
  EXPECT_THAT(FilesIn(folder_.path()), ElementsAre("tune.db", "tune.db.lock"));
  const auto read = MustOpen(path_, OpenMode::kRead);
  EXPECT_EQ(ContentsOf(*read).blobs.size(), static_cast<size_t>(number_));
  EXPECT_TRUE(read->Verify().value().problems.empty());
}

TEST_F(CheckpointerTest, AReaderThatStaysHoldsTheWalAndItsEndFreesIt) {
  auto reader = MustOpen(path_, OpenMode::kRead);
  auto scope = reader->BeginRead();
  ASSERT_TRUE(scope.ok());
  ASSERT_EQ(reader->Stats().value().blobs, 0);
  const auto grown = [&] { return WalBytes() > 2 * kKept; };
  ASSERT_TRUE(AppendUntil(grown, 400));
  EXPECT_EQ(reader->Stats().value().blobs, 0) << "it reads what was when it began";
  scope->reset();
  ASSERT_TRUE(AppendUntil([&] { return WalBytes() <= kKept; }, 400)) << counts().passes;
  EXPECT_EQ(ContentsOf(*reader).blobs.size(), static_cast<size_t>(number_));
}

TEST_F(CheckpointerTest, WithoutItCommitsFoldByThemselves) {
  log_.reset();
  log_ = MustOpen(path_, OpenMode::kWrite);
  EXPECT_EQ(static_cast<SqliteLogFile&>(*log_).checkpointer(), nullptr);
  for (int i = 0; i < 20; ++i) AppendBallast();
  EXPECT_LE(WalBytes(), kKept);
}

}  // namespace
}  // namespace hone::db
