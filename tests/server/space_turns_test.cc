#include "server/space_turns.h"

#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/status.h"
#include "db/log_file.h"
#include "tests/server/no_workers.h"
#include "tests/server/temporary_folder.h"

// What honed computes of what clients send must not end every honed that comes after.
namespace hone::server {
namespace {

constexpr Hash128 kSession{4, 4}, kOther{5, 5}, kFresh{6, 6};

struct Died : std::runtime_error {
  Died() : std::runtime_error("honed died") {}
};

class SpaceTurnsTest : public ::testing::Test {
 protected:
  SpaceTurnsTest() {
    loop_.Start();
    for (const Hash128& id : {kSession, kOther, kFresh}) {
      Do(db::AddFarmSession{{.id = id, .owner = "alice", .project = "p"}});
    }
  }
  ~SpaceTurnsTest() override { loop_.Stop(); }

  void Do(const db::FarmChange& change) {
    EXPECT_TRUE(loop_
                    .Run({.prepare =
                              [&](Farm&, db::FarmStore&, db::FarmUnit& unit, int64_t) {
                                unit.changes.push_back(change);
                                return absl::OkStatus();
                              },
                          .done = {}})
                    .ok());
  }
  /// As another program reads it: what is not durable is not seen.
  int Faults(const Hash128& session) {
    const auto log = db::OpenLog(folder_ / "t.db", {}).value();
    const auto store = db::FarmStore::Open(*log).value();
    const auto suspect = store->FindSuspect(session, db::kSpacesOfSession).value();
    return suspect ? suspect->losses : 0;
  }
  /// A start of honed that dies of the session's Spaces.
  void Die(const Hash128& session) {
    SpaceTurns turns;
    EXPECT_THROW((void)turns.Run(loop_, session, Goes,
                                 [](const SpaceTurns::CountFault& count_fault) -> absl::Status {
                                   HONE_RETURN_IF_ERROR(count_fault());
                                   throw Died();
                                 }),
                 Died);
  }
  static absl::Status Goes() { return absl::OkStatus(); }
  static absl::Status Compute(const SpaceTurns::CountFault& count_fault) { return count_fault(); }

  TemporaryFolder folder_;
  SystemMonotonicClock clock_;
  std::unique_ptr<db::LogFile> log_ =
      db::OpenLog(folder_ / "t.db", {.mode = db::OpenMode::kWrite}).value();
  std::unique_ptr<db::FarmStore> store_ = db::FarmStore::Open(*log_).value();
  NoLeases leases_;
  NoSink sink_;
  Farm farm_{{}, {.protocol = 1}, 1, leases_};
  FarmLoop loop_{farm_, *store_, sink_, clock_};
};

TEST_F(SpaceTurnsTest, WhatEndsHonedIsRefusedAfterTwoRestarts) {
  for (int start = 1; start <= 3; ++start) {
    SpaceTurns turns;
    EXPECT_THROW((void)turns.Run(loop_, kSession, Goes,
                                 [&](const SpaceTurns::CountFault& count_fault) -> absl::Status {
                                   EXPECT_EQ(Faults(kSession), start - 1);
                                   // Again where its search was over before it joined.
                                   for (int i = 0; i < 2; ++i) HONE_RETURN_IF_ERROR(count_fault());
                                   EXPECT_EQ(Faults(kSession), start) << "before it is computed";
                                   throw Died();
                                 }),
                 Died);
  }
  SpaceTurns turns;
  bool computed = false;
  const absl::Status refused = turns.Run(loop_, kSession, Goes, [&](const auto&) {
    computed = true;
    return absl::OkStatus();
  });
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(StatusMessage(refused), ::testing::HasSubstr("ended 3 times"));
  EXPECT_FALSE(computed);
  EXPECT_TRUE(turns.Run(loop_, kOther, Goes, Compute).ok()) << "others go on";
}

TEST_F(SpaceTurnsTest, WhoGetsThroughHasNoFaultHoweverItEnds) {
  Die(kSession);
  Die(kSession);
  SpaceTurns turns;
  EXPECT_TRUE(turns.Run(loop_, kSession, Goes, Compute).ok());
  EXPECT_EQ(Faults(kSession), 0);
  Die(kSession);
  Die(kSession);
  const auto fail = [](const auto&) { return absl::DataLossError("the log is damaged"); };
  EXPECT_EQ(turns.Run(loop_, kSession, Goes, fail).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Faults(kSession), 0) << "honed lives";
}

TEST_F(SpaceTurnsTest, WhatIsNotTheSessionsOwnIsNoFault) {
  const auto die = [](const auto&) -> absl::Status { throw Died(); };
  for (int start = 0; start < 4; ++start) {
    SpaceTurns turns;
    EXPECT_THROW((void)turns.Run(loop_, kSession, Goes, die), Died);
    EXPECT_EQ(Faults(kSession), 0);
  }
  Die(kSession);
  SpaceTurns turns;
  EXPECT_THROW((void)turns.Run(loop_, kSession, Goes, die), Died);
  EXPECT_EQ(Faults(kSession), 1) << "nor is its own forgotten";
  EXPECT_TRUE(turns.Run(loop_, kSession, Goes, Compute).ok());
}

TEST_F(SpaceTurnsTest, WhoHasAFaultGoesAloneAmongThose) {
  Die(kSession);
  Die(kOther);
  SpaceTurns turns;
  std::atomic<bool> stopped{false};
  std::optional<absl::Status> waited;
  const absl::Status first = turns.Run(loop_, kSession, Goes, [&](const auto&) {
    const auto ended = [&] { return stopped ? absl::DeadlineExceededError("") : Goes(); };
    std::thread other([&] { waited = turns.Run(loop_, kOther, ended, Compute); });
    EXPECT_TRUE(turns.Run(loop_, kFresh, Goes, Compute).ok()) << "who has none goes too";
    EXPECT_EQ(Faults(kOther), 1) << "its turn has not come";
    stopped = true;
    other.join();
    return absl::OkStatus();
  });
  EXPECT_TRUE(first.ok()) << first;
  ASSERT_TRUE(waited.has_value());
  EXPECT_EQ(waited->code(), absl::StatusCode::kDeadlineExceeded) << "nobody waits beyond its end";
  EXPECT_EQ(Faults(kOther), 1);
  EXPECT_TRUE(turns.Run(loop_, kOther, Goes, Compute).ok()) << "the turn came back";
}

}  // namespace
}  // namespace hone::server
