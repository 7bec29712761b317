#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/server/farm_harness.h"

// honed was started again, and a worker says its result before the session's driver has asked for
// the attempt anew: it is judged as any other then, and neither lost nor believed before.
namespace hone::server {
namespace {

using measure::Outcome;
using proto::Verdict;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Hash128 kSession{4, 4};
constexpr int64_t kAttempt = 3;
constexpr int64_t kSecond = FarmHarness::kSecond;

class FarmParkedTest : public ::testing::Test, public LeaseReader {
 protected:
  FarmParkedTest() {
    db::FarmState before;
    before.sessions = {{.id = kSession, .project = "p", .state = SessionState::kRunning}};
    before.leases = {{.token = token_,
                      .session = kSession,
                      .attempt = kAttempt,
                      .worker = "w1",
                      .device = "cpu:0",
                      .instance = {1, 1},
                      .state = LeaseState::kStarted}};
    farm_.Restore(before, 0);
    Dial(1, "w1", 1, true);
    Dial(2, "w2", 2, false);
  }
  std::optional<db::FarmLease> FindLease(const Hash128&) override { return std::nullopt; }

  void Dial(StreamId stream, const std::string& name, uint64_t instance, bool holds) {
    proto::Hello hello{.protocol = 1, .builder_version = "b", .measurement_policy = 1};
    hello.instance = {1, instance};
    hello.device = {.name = "cpu:0",
                    .device_class = "class",
                    .fingerprint = "f",
                    .target = FarmHarness::kTarget,
                    .cores = 2};
    if (holds) hello.held = {{token_, true}};
    farm_.OnHello(stream, name, hello, now_ns_);
    farm_.OnMessage(stream, proto::WorkerCredit{4}, now_ns_);
    Look();
  }
  proto::WorkResult Result(Outcome outcome, std::vector<int64_t> samples_ns = {}) const {
    proto::WorkResult result{.token = token_, .outcome = outcome};
    result.samples_ns = std::move(samples_ns);
    return result;
  }
  void Say(StreamId stream, const proto::WorkResult& result) {
    farm_.OnMessage(stream, result, now_ns_);
    Look();
  }
  /// The driver has replayed, and asks.
  void Ask(proto::JobKind kind = proto::JobKind::kScreen) {
    farm_.BeginSession(
        {.id = kSession, .project = "p", .target = FarmHarness::kTarget, .device_class = "class"});
    proto::Job job{.kind = kind, .workload = "w", .target = FarmHarness::kTarget};
    job.traces = {"a"};
    if (kind == proto::JobKind::kCompare) job.traces.emplace_back("");
    farm_.Submit(kSession, kAttempt, job, {.fastest_ns = 800}, now_ns_);
    Look();
  }
  void Look() {
    const FarmStep step = farm_.Take();
    for (const Outgoing& out : step.messages) {
      if (const auto* ack = std::get_if<proto::Acknowledgement>(&out.message)) {
        verdicts_.push_back(ack->verdict);
        reason_ = ack->reason;
      } else if (const auto* grant = std::get_if<proto::Grant>(&out.message)) {
        grants_[out.stream] = grant->token;
      }
    }
    for (const Delivery& delivery : step.deliveries) delivered_.push_back(delivery.result);
    for (const db::FarmChange& change : step.changes) {
      const auto* end = std::get_if<db::EndFarmLease>(&change);
      if (end != nullptr && end->token == token_) ended_ = end->state;
    }
  }
  void ExpectMeasuredElsewhere() {
    EXPECT_THAT(verdicts_, ElementsAre(Verdict::kStale));
    EXPECT_THAT(delivered_, IsEmpty());
    EXPECT_EQ(ended_, LeaseState::kReturned);
    EXPECT_EQ(farm_.counters().held_back, 1);
    ASSERT_TRUE(grants_.contains(2));
    proto::WorkResult good = Result(Outcome::kOk, {1000});
    good.token = grants_.at(2);
    Say(2, good);
    ASSERT_EQ(delivered_.size(), 1u);
    EXPECT_THAT(delivered_[0].samples_ns, ElementsAre(1000));
    EXPECT_FALSE(delivered_[0].noisy);
  }

  const Hash128 token_ = MakeToken(6, 1, proto::LeaseKind::kBoth);
  int64_t now_ns_ = 0;
  std::vector<Verdict> verdicts_;
  std::string reason_;
  std::map<StreamId, Hash128> grants_;
  std::vector<proto::WorkResult> delivered_;
  std::optional<LeaseState> ended_;
  Farm farm_{{}, {.protocol = 1, .builder = "b"}, 7, *this};
};

TEST_F(FarmParkedTest, AGoodOneCountsOnceWhenItIsAskedFor) {
  const proto::WorkResult result = Result(Outcome::kOk, {1000});
  Say(1, result);
  Say(1, result);
  Say(1, Result(Outcome::kOk, {2000}));
  EXPECT_THAT(verdicts_, ElementsAre(Verdict::kConflict)) << "the first one stands";
  EXPECT_EQ(farm_.counters().duplicates, 1);
  EXPECT_THAT(delivered_, IsEmpty());
  Ask();
  ASSERT_EQ(delivered_.size(), 1u);
  EXPECT_THAT(delivered_[0].samples_ns, ElementsAre(1000));
  EXPECT_EQ(verdicts_.size(), 1u) << "it is acknowledged with its commit";
  EXPECT_EQ(farm_.EndsOf(kSession, {kAttempt}).size(), 1u);
  farm_.OnCommitted(kSession, {kAttempt}, now_ns_);
  Look();
  EXPECT_THAT(verdicts_, ElementsAre(Verdict::kConflict, Verdict::kAccepted));
}

TEST_F(FarmParkedTest, ATimeThatIsTooGoodIsMeasuredElsewhere) {
  Say(1, Result(Outcome::kOk, {500}));
  Ask();
  ExpectMeasuredElsewhere();
}

TEST_F(FarmParkedTest, AFailureOfTheDeviceIsMeasuredElsewhere) {
  Say(1, Result(Outcome::kRunCrashed));
  Ask();
  ExpectMeasuredElsewhere();
}

TEST_F(FarmParkedTest, NoAnswerToWhatWasAskedIsInvalid) {
  proto::WorkResult result = Result(Outcome::kOk);
  result.compared.assign(5, {.samples_ns = {1000}});
  Say(1, result);
  EXPECT_THAT(verdicts_, IsEmpty());
  Ask(proto::JobKind::kCompare);
  EXPECT_THAT(verdicts_, ElementsAre(Verdict::kInvalid));
  EXPECT_THAT(reason_, HasSubstr("5 compared traces, 2 were asked for"));
  EXPECT_THAT(delivered_, IsEmpty());
  now_ns_ += kSecond;
  farm_.Tick(now_ns_);
  Look();
  EXPECT_TRUE(grants_.contains(2)) << "it waited again";
}

TEST_F(FarmParkedTest, WhatItHadTimeForIsSaidByWhenItCame) {
  // An open lease of an earlier start may be 180 s old; the replay then took an hour.
  Say(1, Result(Outcome::kOk, {200 * kSecond}));
  now_ns_ += 3600 * kSecond;
  Ask();
  EXPECT_THAT(verdicts_, ElementsAre(Verdict::kInvalid));
}

TEST_F(FarmParkedTest, ItNeitherExpiresNorIsLostWithItsWorker) {
  farm_.SetDeadline(kSession, 10 * kSecond);
  Say(1, Result(Outcome::kOk, {1000}));
  farm_.OnGone(1, now_ns_);
  now_ns_ += 600 * kSecond;
  farm_.Tick(now_ns_);
  // Another process of the name comes, and its certificate is taken back.
  Dial(3, "w1", 9, false);
  farm_.RevokeWorker("w1", now_ns_);
  Look();
  EXPECT_EQ(ended_, std::nullopt);
  Ask();
  ASSERT_EQ(delivered_.size(), 1u);
  EXPECT_EQ(delivered_[0].outcome, Outcome::kOk);
}

TEST_F(FarmParkedTest, AnotherProcessIsNotToldWhatBecameOfIt) {
  Say(1, Result(Outcome::kOk, {500}));
  farm_.OnGone(1, now_ns_);
  Dial(3, "w1", 9, false);
  Ask();
  EXPECT_EQ(ended_, LeaseState::kReturned);
  EXPECT_THAT(verdicts_, IsEmpty());
}

}  // namespace
}  // namespace hone::server
