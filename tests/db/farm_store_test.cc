#include "db/farm_store.h"

#include <stdlib.h>

#include <filesystem>

#include "gtest/gtest.h"

namespace hone::db {
namespace {

constexpr Hash128 kSession{4, 4}, kToken{7, 1};

class FarmStoreTest : public ::testing::Test {
 protected:
  FarmStoreTest() {
    EXPECT_TRUE(
        Do({AddFarmSession{{.id = kSession, .owner = "alice", .project = "p"}},
            AddFarmLease{{.token = kToken, .session = kSession, .worker = "w", .device = "cpu:0"}}})
            .ok());
  }
  ~FarmStoreTest() override { std::filesystem::remove_all(folder_); }

  absl::Status Do(std::vector<FarmChange> changes) {
    FarmUnit unit;
    unit.changes = std::move(changes);
    return store_->Commit({&unit}).value().front();
  }
  absl::Status Set(SessionState state) { return Do({SetFarmSession{kSession, state, "", "", ""}}); }
  SessionState State() { return store_->FindFarmSession(kSession).value()->state; }

  static std::string MakeFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "hone-farm-store-XXXXXX").string();
    return ::mkdtemp(path.data());
  }
  const std::string folder_ = MakeFolder();
  std::unique_ptr<LogFile> log_ = OpenLog(folder_ + "/t.db", {.mode = OpenMode::kWrite}).value();
  std::unique_ptr<FarmStore> store_ = FarmStore::Open(*log_).value();
};

TEST_F(FarmStoreTest, AStartedLeaseIsFoundStartedByTheNextHoned) {
  EXPECT_EQ(store_->Load().value().leases.front().state, LeaseState::kGranted);
  EXPECT_TRUE(Do({StartFarmLease{kToken}}).ok());
  EXPECT_EQ(store_->Load().value().leases.front().state, LeaseState::kStarted);
  EXPECT_FALSE(Do({StartFarmLease{kToken}}).ok()) << "once";
  EXPECT_TRUE(Do({EndFarmLease{kToken, LeaseState::kDone, "digest", 5}}).ok());
  EXPECT_TRUE(store_->Load().value().leases.empty());
  EXPECT_FALSE(Do({StartFarmLease{kToken}}).ok()) << "it has ended";
}

TEST_F(FarmStoreTest, ASessionThatIsBeingCancelledEndsAsCancelled) {
  EXPECT_TRUE(Set(SessionState::kRunning).ok());
  EXPECT_TRUE(Set(SessionState::kRunning).ok()) << "after a restart";
  EXPECT_TRUE(Set(SessionState::kCancelling).ok());
  for (const auto other :
       {SessionState::kRunning, SessionState::kFinished, SessionState::kFailed}) {
    EXPECT_EQ(Set(other).code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(State(), SessionState::kCancelling);
  }
  EXPECT_TRUE(Set(SessionState::kCancelling).ok());
  EXPECT_TRUE(Set(SessionState::kCancelled).ok());
  EXPECT_FALSE(Set(SessionState::kRunning).ok());
  EXPECT_EQ(State(), SessionState::kCancelled);
}

TEST_F(FarmStoreTest, TheSpacesOfASessionAreNoAttempt) {
  const FarmSuspect spaces{.session = kSession, .attempt = kSpacesOfSession, .losses = 2};
  const FarmSuspect attempt{.session = kSession, .attempt = 5, .losses = 1};
  ASSERT_TRUE(Do({PutFarmSuspect{spaces}, PutFarmSuspect{attempt}}).ok());
  EXPECT_EQ(store_->Load().value().suspects, std::vector{attempt});
  EXPECT_EQ(store_->FindSuspect(kSession, kSpacesOfSession).value(), spaces);
  ASSERT_TRUE(Do({DropFarmSuspect{kSession, kSpacesOfSession}}).ok());
  EXPECT_EQ(store_->FindSuspect(kSession, kSpacesOfSession).value(), std::nullopt);
  EXPECT_EQ(store_->FindSuspect(kSession, 5).value(), attempt);
  EXPECT_FALSE(Do({DropFarmSuspect{kSession, kSpacesOfSession}}).ok()) << "there is none";
}

TEST_F(FarmStoreTest, ListsAllThatAreOpenAndTheNewestOthers) {
  for (uint64_t i = 1; i <= 5; ++i) {
    ASSERT_TRUE(Do({AddFarmSession{{.id = {5, i}, .owner = "bob", .project = "p", .spec = "much"}},
                    SetFarmSession{{5, i}, SessionState::kRunning, "", "", ""}})
                    .ok());
    if (i == 3) continue;
    ASSERT_TRUE(Do({SetFarmSession{{5, i}, SessionState::kFinished, "", "", ""}}).ok());
  }
  const std::vector<FarmSession> rows = store_->OpenAndLatestSessions(2).value();
  std::vector<Hash128> ids;
  for (const FarmSession& row : rows) {
    ids.push_back(row.id);
    EXPECT_EQ(row.spec, "");
  }
  EXPECT_EQ(ids, (std::vector<Hash128>{{5, 5}, {5, 4}, {5, 3}, kSession}));
  EXPECT_EQ(store_->OpenAndLatestSessions(0).value().size(), 2u);
}

}  // namespace
}  // namespace hone::db
