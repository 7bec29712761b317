#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/status.h"
#include "proto/convert.h"
#include "tests/server/farm_harness.h"

// The table "The answer to a result" of docs/formats/farm.md, row by row, and how many results a
// worker may send.
namespace hone::server {
namespace {

using measure::Outcome;
using proto::Verdict;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Hash128 kSession{4, 4};

class FarmAnswersTest : public ::testing::Test, public LeaseReader {
 protected:
  FarmAnswersTest() {
    Dial(1, "w1");
    Dial(2, "w2");
    farm_.BeginSession(
        {.id = kSession, .project = "p", .target = FarmHarness::kTarget, .device_class = "class"});
  }
  std::optional<db::FarmLease> FindLease(const Hash128& token) override {
    const auto found = ended_.find(token);
    return found == ended_.end() ? std::nullopt : std::optional(found->second);
  }
  void Dial(StreamId stream, const std::string& name) {
    proto::Hello hello{.protocol = 1, .builder_version = "b", .measurement_policy = 1};
    hello.instance = {1, static_cast<uint64_t>(stream)};
    hello.device = {.name = "cpu:0",
                    .device_class = "class",
                    .fingerprint = "f",
                    .target = FarmHarness::kTarget,
                    .cores = 1};
    farm_.OnHello(stream, name, hello, 0);
    (void)farm_.Take();
  }
  /// A lease of w1.
  Hash128 Lease(const proto::Job& job = {
                    .workload = "w", .target = FarmHarness::kTarget, .traces = {"t"}}) {
    farm_.Submit(kSession, next_++, job, 0);
    farm_.OnMessage(1, proto::WorkerCredit{next_}, 0);
    const FarmStep step = farm_.Take();
    for (const Outgoing& out : step.messages) {
      const auto* grant = std::get_if<proto::Grant>(&out.message);
      if (grant != nullptr && out.stream == 1) return grant->token;
    }
    ADD_FAILURE() << "no lease was granted";
    return {};
  }
  static proto::WorkResult Result(const Hash128& token, int64_t ns = 1000) {
    proto::WorkResult result{.token = token, .outcome = Outcome::kOk};
    result.samples_ns = {ns};
    return result;
  }
  static std::vector<Verdict> VerdictsOf(const FarmStep& step, std::string* reason = nullptr) {
    std::vector<Verdict> verdicts;
    for (const Outgoing& out : step.messages) {
      const auto* ack = std::get_if<proto::Acknowledgement>(&out.message);
      if (ack == nullptr) continue;
      verdicts.push_back(ack->verdict);
      if (reason != nullptr) *reason = ack->reason;
    }
    return verdicts;
  }
  /// What a result is answered at once.
  std::vector<Verdict> Say(const proto::WorkResult& result, StreamId stream = 1) {
    farm_.OnMessage(stream, result, 0);
    return VerdictsOf(farm_.Take(), &reason_);
  }
  std::vector<Verdict> Commit() {
    farm_.OnCommitted(kSession, {next_ - 1}, 0);
    return VerdictsOf(farm_.Take());
  }
  int64_t facts() const { return farm_.counters().acknowledged; }

  std::map<Hash128, db::FarmLease> ended_;
  std::string reason_;
  int64_t next_ = 0;
  Farm farm_{{}, {.protocol = 1, .builder = "b"}, 1, *this};
};

TEST_F(FarmAnswersTest, OpenIsAcceptedAfterItsCommit) {
  EXPECT_THAT(Say(Result(Lease())), IsEmpty());
  EXPECT_THAT(Commit(), ElementsAre(Verdict::kAccepted));
  EXPECT_EQ(facts(), 1);
}

TEST_F(FarmAnswersTest, TheSameWhileItIsCommittedIsAcceptedOnceWithThatCommit) {
  const proto::WorkResult result = Result(Lease());
  EXPECT_THAT(Say(result), IsEmpty());
  EXPECT_THAT(Say(result), IsEmpty());
  EXPECT_THAT(Commit(), ElementsAre(Verdict::kAccepted));
  EXPECT_EQ(farm_.counters().duplicates, 1);
  EXPECT_EQ(facts(), 1);
}

TEST_F(FarmAnswersTest, OtherContentWhileItIsCommittedIsAConflict) {
  const Hash128 token = Lease();
  EXPECT_THAT(Say(Result(token, 1000)), IsEmpty());
  EXPECT_THAT(Say(Result(token, 2000)), ElementsAre(Verdict::kConflict));
  EXPECT_EQ(farm_.counters().conflicts, 1);
  EXPECT_THAT(Commit(), ElementsAre(Verdict::kAccepted)) << "the first one counts";
}

TEST_F(FarmAnswersTest, TheSameOfAClosedLeaseIsAccepted) {
  const proto::WorkResult result = Result({1, 77});
  ended_[result.token] = {.state = LeaseState::kDone, .content = proto::ResultDigest(result)};
  EXPECT_THAT(Say(result), ElementsAre(Verdict::kAccepted));
  EXPECT_EQ(farm_.counters().duplicates, 1);
  EXPECT_EQ(facts(), 0);
}

TEST_F(FarmAnswersTest, OtherContentOfAClosedLeaseIsAConflict) {
  const proto::WorkResult result = Result({1, 77});
  ended_[result.token] = {.state = LeaseState::kDone,
                          .content = proto::ResultDigest(Result({1, 77}, 2000))};
  EXPECT_THAT(Say(result), ElementsAre(Verdict::kConflict));
  EXPECT_EQ(farm_.counters().conflicts, 1);
}

TEST_F(FarmAnswersTest, WhatEndedOtherwiseIsStaleAndSaysHow) {
  for (const auto& [state, word] :
       {std::pair(LeaseState::kExpired, "expired"), std::pair(LeaseState::kReturned, "returned"),
        std::pair(LeaseState::kRevoked, "revoked"), std::pair(LeaseState::kLost, "lost")}) {
    ended_[{1, 77}] = {.state = state};
    EXPECT_THAT(Say(Result({1, 77})), ElementsAre(Verdict::kStale)) << word;
    EXPECT_THAT(reason_, HasSubstr(word));
  }
  EXPECT_EQ(farm_.counters().stale, 4);
  EXPECT_EQ(facts(), 0);
  EXPECT_EQ(farm_.charged_ns("p"), 0);
}

TEST_F(FarmAnswersTest, WhatWasNeverIssuedIsStale) {
  EXPECT_THAT(Say(Result({99, 1})), ElementsAre(Verdict::kStale));
  EXPECT_THAT(reason_, HasSubstr("ever granted"));
  EXPECT_EQ(farm_.counters().stale, 1);
}

TEST_F(FarmAnswersTest, AnotherWorkersIsInvalidAndTheLeaseStays) {
  const Hash128 token = Lease();
  EXPECT_THAT(Say(Result(token), 2), ElementsAre(Verdict::kInvalid));
  EXPECT_EQ(farm_.counters().invalid, 1);
  EXPECT_THAT(Say(Result(token)), IsEmpty());
  EXPECT_THAT(Commit(), ElementsAre(Verdict::kAccepted));
}

TEST_F(FarmAnswersTest, NoAnswerToWhatWasAskedIsInvalidAndItWaitsAgain) {
  const Hash128 token = Lease({.kind = proto::JobKind::kCompare,
                               .workload = "w",
                               .target = FarmHarness::kTarget,
                               .traces = {"a", "b"}});
  proto::WorkResult result{.token = token, .outcome = Outcome::kOk};
  result.compared.assign(3, {.samples_ns = {1}});
  EXPECT_THAT(Say(result), ElementsAre(Verdict::kInvalid));
  EXPECT_THAT(reason_, HasSubstr("3 compared traces, 2 were asked for"));
  EXPECT_EQ(farm_.counters().invalid, 1);
  EXPECT_EQ(farm_.waiting(), 1);
}

TEST_F(FarmAnswersTest, MoreResultsThanItsCreditEndTheStream) {
  const int window = FarmPolicy().result_window;
  for (int i = 0; i < window; ++i) ASSERT_THAT(Say(Result({99, 1})), ElementsAre(Verdict::kStale));
  farm_.OnMessage(1, Result({99, 1}), 0);
  const FarmStep step = farm_.Take();
  ASSERT_EQ(step.closings.size(), 1u);
  EXPECT_EQ(step.closings[0].stream, 1);
  EXPECT_EQ(step.closings[0].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(StatusMessage(step.closings[0].status), HasSubstr("credit of 64"));
  EXPECT_THAT(VerdictsOf(step), IsEmpty());
  // On a new stream the totals begin at zero: what it kept may be said again.
  Dial(3, "w1");
  for (int i = 0; i < window; ++i) {
    EXPECT_THAT(Say(Result({99, 1}), 3), ElementsAre(Verdict::kStale));
  }
}

TEST_F(FarmAnswersTest, CreditIsRenewedWhileTimeGoesOn) {
  const int window = FarmPolicy().result_window;
  int64_t credit = window;
  for (int i = 0; i < 5 * window; ++i) {
    if (i == credit) {
      farm_.Tick(1);
      for (const Outgoing& out : farm_.Take().messages) {
        const auto* more = std::get_if<proto::ServerCredit>(&out.message);
        if (more != nullptr && out.stream == 1) credit = more->results;
      }
    }
    ASSERT_LT(i, credit);
    ASSERT_THAT(Say(Result({99, 1})), ElementsAre(Verdict::kStale));
  }
}

}  // namespace
}  // namespace hone::server
