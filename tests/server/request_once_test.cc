#include "server/request_once.h"

#include <future>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/status.h"
#include "db/log_file.h"
#include "tests/server/held_loop.h"
#include "tests/server/no_workers.h"
#include "tests/server/temporary_folder.h"

namespace hone::server {
namespace {

class RequestOnceTest : public ::testing::Test {
 protected:
  RequestOnceTest() { loop_.Start(); }

  /// How often the change of a call was made, with its status.
  absl::Status Call(const std::string& id, const std::string& body, bool fails = false) {
    return RunOnce(loop_, {.caller = "spiffe://hone/admin/a", .id = id, .body = body}, 1,
                   [&](Farm&, db::FarmUnit& unit, int64_t, int64_t now_ms) {
                     ++made_;
                     unit.changes.push_back(db::FarmAudit{
                         .at_ms = now_ms, .actor = "a", .action = "x", .subject = body});
                     return fails ? absl::NotFoundError("no") : absl::OkStatus();
                   });
  }
  /// All with one id, in the queue for one group commit.
  std::vector<absl::Status> CallTogether(const std::vector<std::string>& bodies) {
    HeldLoop held(loop_);
    std::vector<std::future<absl::Status>> calls;
    for (const std::string& body : bodies) {
      calls.push_back(std::async(std::launch::async, [this, body] { return Call("1", body); }));
    }
    clock_.SleepNs(100'000'000);
    held.Release();
    std::vector<absl::Status> answers;
    for (auto& call : calls) answers.push_back(call.get());
    return answers;
  }
  size_t Audited() {
    size_t rows = 0;
    EXPECT_TRUE(loop_
                    .Run({.prepare =
                              [&](Farm&, db::FarmStore& store, db::FarmUnit&, int64_t) {
                                rows = store.Audit(100).value().size();
                                return absl::OkStatus();
                              },
                          .done = {}})
                    .ok());
    return rows;
  }

  TemporaryFolder folder_;
  SystemMonotonicClock clock_;
  std::unique_ptr<db::LogFile> log_ =
      db::OpenLog(folder_ / "t.db", {.mode = db::OpenMode::kWrite}).value();
  std::unique_ptr<db::FarmStore> store_ = db::FarmStore::Open(*log_).value();
  NoLeases leases_;
  NoSink sink_;
  Farm farm_{{}, {.protocol = 1}, 1, leases_};
  FarmLoop loop_{farm_, *store_, sink_, clock_};
  int made_ = 0;
};

TEST_F(RequestOnceTest, ARetryHasNoSecondEffect) {
  EXPECT_TRUE(Call("1", "drain w1").ok());
  EXPECT_TRUE(Call("1", "drain w1").ok());
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(Audited(), 1u);
  EXPECT_TRUE(Call("2", "drain w1").ok());
  EXPECT_EQ(made_, 2);
}

TEST_F(RequestOnceTest, CopiesThatComeTogetherHaveOneEffectAndOneAnswer) {
  for (const absl::Status& call : CallTogether({"drain w1", "drain w1", "drain w1"})) {
    EXPECT_TRUE(call.ok()) << call;
  }
  EXPECT_EQ(Audited(), 1u);
  EXPECT_EQ(made_, 1);
}

// A change of the Farm would stay, though the store refuses its row.
TEST_F(RequestOnceTest, OfTwoBodiesThatComeTogetherOnlyOneChangesAnything) {
  int refused = 0;
  for (const absl::Status& call : CallTogether({"drain w1", "drain w2"})) {
    refused += absl::IsAlreadyExists(call) ? 1 : 0;
  }
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(Audited(), 1u);
}

TEST_F(RequestOnceTest, TheSameIdWithAnotherBodyIsAnError) {
  EXPECT_TRUE(Call("1", "drain w1").ok());
  EXPECT_EQ(Call("1", "drain w2").code(), absl::StatusCode::kAlreadyExists);
  for (const std::string& bad : {std::string(), std::string(257, 'x'), std::string("a\nb")}) {
    EXPECT_EQ(Call(bad, "drain w2").code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_EQ(made_, 1);
}

TEST_F(RequestOnceTest, WhatFailsLeavesNothingAndMayBeTriedAgain) {
  EXPECT_EQ(Call("1", "drain w9", true).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Audited(), 0u);
  EXPECT_TRUE(Call("1", "drain w9").ok());
  EXPECT_EQ(Audited(), 1u);
}

TEST_F(RequestOnceTest, AnswersAreForgottenAfterTheirTime) {
  EXPECT_TRUE(Call("1", "drain w1").ok());
  EXPECT_TRUE(loop_
                  .Run({.prepare = [](Farm&, db::FarmStore& store, db::FarmUnit&,
                                      int64_t) { return store.ForgetRequests(2); },
                        .done = {}})
                  .ok());
  EXPECT_TRUE(Call("1", "drain w2").ok());
  EXPECT_EQ(made_, 2);
}

}  // namespace
}  // namespace hone::server
