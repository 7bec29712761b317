#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/server/farm_harness.h"

// What becomes of a candidate whose worker was lost while it ran: it runs next alone, also where
// work never runs out, and a second loss condemns it.
namespace hone::server {
namespace {

using measure::Outcome;
using ::testing::HasSubstr;
constexpr int64_t kMs = FarmHarness::kMs;
constexpr int64_t kSecond = FarmHarness::kSecond;
constexpr int64_t kPoison = 5;

class FarmSuspectTest : public ::testing::Test {
 protected:
  FarmSuspectTest() {
    for (const char* name : {"a", "b", "c"}) farm_.AddDevice(name);
    asker_ = &farm_.AddSession("s", "p", 40);
  }
  /// What is durable of a suspect.
  std::optional<db::FarmSuspect> Stored() const {
    std::optional<db::FarmSuspect> last;
    for (const db::FarmChange& change : farm_.changes) {
      if (const auto* put = std::get_if<db::PutFarmSuspect>(&change)) last = put->suspect;
    }
    return last;
  }
  FarmHarness farm_;
  FarmHarness::Asker* asker_ = nullptr;
};

TEST_F(FarmSuspectTest, ItRunsAloneThoughTheBacklogNeverEmpties) {
  FarmHarness::Device* const first = farm_.AwaitRun(kPoison, 5 * kSecond);
  ASSERT_NE(first, nullptr);
  // Nobody is empty: those that are left always have something to do.
  farm_.Crash(*first, false);
  ASSERT_TRUE(Stored());
  EXPECT_EQ(Stored()->losses, 1);
  EXPECT_FALSE(Stored()->condemned);
  const size_t before = asker_->results.size();
  // A worker holds four leases of 50 ms each.
  FarmHarness::Device* const second = farm_.AwaitRun(kPoison, kSecond);
  ASSERT_NE(second, nullptr) << "it starves";
  EXPECT_TRUE(second->queue.empty());
  const int64_t granted = second->granted;
  farm_.RunFor(30 * kMs);
  EXPECT_EQ(second->granted, granted) << "alone to its end";
  EXPECT_GT(asker_->results.size(), before) << "the other worker goes on";
  farm_.RunFor(kSecond);
  EXPECT_GT(second->granted, granted + 5) << "and then it is a worker like others";
  EXPECT_TRUE(std::ranges::any_of(asker_->results, [](const auto& r) {
    return r.first == kPoison && r.second.outcome == Outcome::kOk;
  }));
}

TEST_F(FarmSuspectTest, ASecondLossCondemnsItDurablyWithTheReason) {
  for (int loss = 0; loss < 2; ++loss) {
    FarmHarness::Device* const device = farm_.AwaitRun(kPoison, 5 * kSecond);
    ASSERT_NE(device, nullptr) << loss;
    farm_.Crash(*device);
  }
  const auto stored = Stored();
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->attempt, kPoison);
  EXPECT_EQ(stored->losses, 2);
  EXPECT_TRUE(stored->condemned);
  EXPECT_THAT(stored->reason, HasSubstr("its worker was lost 2 times while it ran"));
  EXPECT_EQ(farm_.farm.counters().condemned, 1);
  const auto found =
      std::ranges::find(asker_->results, kPoison, [](const auto& r) { return r.first; });
  ASSERT_NE(found, asker_->results.end());
  EXPECT_EQ(found->second.outcome, Outcome::kRunCrashed);
  EXPECT_EQ(found->second.message, stored->reason);
  EXPECT_EQ(farm_.AwaitRun(kPoison, 2 * kSecond), nullptr) << "nobody runs it again";
}

TEST_F(FarmSuspectTest, AReservationEndsWithTheSessionThatWanted) {
  FarmHarness::Device* const first = farm_.AwaitRun(kPoison, 5 * kSecond);
  ASSERT_NE(first, nullptr);
  auto& other = farm_.AddSession("other", "p", 20);
  farm_.Crash(*first);
  asker_->backlog = 0;
  farm_.farm.EndSession(asker_->id, "cancelled", farm_.now_ns);
  farm_.RunFor(kSecond);
  EXPECT_GT(other.results.size(), 30u) << "both workers serve it";
}

/// A machine that dies on whatever it runs and is back at once, beside two that work.
class BrokenMachineTest : public FarmSuspectTest {
 protected:
  BrokenMachineTest() {
    broken_ = &farm_.devices[1];
    broken_->run = [](const proto::Grant&) {
      return std::pair{5 * kSecond, proto::WorkResult{.outcome = Outcome::kOk}};
    };
  }
  void RunAndCrash(int64_t ns, int crashes) {
    for (const int64_t until_ns = farm_.now_ns + ns; farm_.now_ns < until_ns;) {
      farm_.RunFor(100 * kMs);
      if (!broken_->running || crashes_ == crashes) continue;
      farm_.Crash(*broken_);
      ++crashes_;
    }
  }
  FarmHarness::Device* broken_ = nullptr;
  int crashes_ = 0;
};

TEST_F(BrokenMachineTest, ItCondemnsNoCandidateAndIsQuarantined) {
  RunAndCrash(60 * kSecond, 1000);
  EXPECT_GT(asker_->results.size(), 500u);
  for (const auto& [number, result] : asker_->results) {
    EXPECT_EQ(result.outcome, Outcome::kOk) << number << ": " << result.message;
  }
  EXPECT_EQ(farm_.farm.counters().condemned, 0);
  EXPECT_EQ(farm_.StateOf("b"), DeviceState::kQuarantined);
  EXPECT_LE(crashes_, 10 * FarmPolicy().max_lost_in_row);
}

TEST_F(BrokenMachineTest, OneThatAnswersWellInBetweenIsNot) {
  for (int i = 1; i <= 2 * FarmPolicy().max_lost_in_row; ++i) {
    RunAndCrash(10 * kSecond, i);
    EXPECT_EQ(crashes_, i);
    broken_->run = farm_.devices[0].run;
    farm_.RunFor(kSecond);
  }
  EXPECT_EQ(farm_.StateOf("b"), DeviceState::kActive);
  EXPECT_EQ(farm_.farm.counters().condemned, 0);
}

TEST_F(BrokenMachineTest, APersonLetsItBackWithNothingAgainstIt) {
  RunAndCrash(60 * kSecond, 1000);
  ASSERT_EQ(farm_.StateOf("b"), DeviceState::kQuarantined);
  ASSERT_TRUE(
      farm_.farm.SetDevice("b", "cpu:0", DeviceTrigger::kUndrain, "by admin", farm_.now_ns).ok());
  RunAndCrash(10 * kSecond, crashes_ + 1);
  EXPECT_EQ(farm_.StateOf("b"), DeviceState::kActive);
}

/// A start of honed that finds a lease of attempt 3 on w1, whose process was {9, 9}.
class RestoredFarmTest : public ::testing::Test, public LeaseReader {
 protected:
  std::optional<db::FarmLease> FindLease(const Hash128&) override { return std::nullopt; }

  void AddLease(const Hash128& token, int64_t attempt, LeaseState state) {
    stored_.leases.push_back({.token = token,
                              .session = kSession,
                              .attempt = attempt,
                              .worker = "w1",
                              .device = "cpu:0",
                              .instance = {9, 9},
                              .state = state});
  }
  void AddSuspect(int64_t attempt, const std::string& lost_with) {
    stored_.suspects.push_back({.session = kSession,
                                .attempt = attempt,
                                .losses = 1,
                                .reason = LossReason(1, lost_with, "no word from it")});
  }
  void Begin() {
    stored_.sessions.push_back({.id = kSession, .project = "p"});
    farm_.Restore(stored_, 0);
    farm_.BeginSession(
        {.id = kSession, .project = "p", .target = FarmHarness::kTarget, .device_class = "class"});
  }
  /// The session asks for attempts from this one to the fifth.
  void Ask(int64_t first) {
    for (int64_t attempt = first; attempt < 6; ++attempt) {
      farm_.Submit(
          kSession, attempt,
          {.workload = "w", .target = FarmHarness::kTarget, .traces = {std::to_string(attempt)}},
          0);
    }
  }
  void Restore(LeaseState state, int losses) {
    AddLease(kToken, 3, state);
    if (losses > 0) {
      stored_.suspects.push_back({.session = kSession, .attempt = 3, .losses = losses});
    }
    Begin();
    Ask(3);
  }
  void Answer(StreamId stream, const Hash128& token, int64_t now_ns) {
    farm_.OnMessage(stream, proto::Started{token}, now_ns);
    proto::WorkResult result{.outcome = Outcome::kOk};
    result.token = token;
    result.samples_ns = {1000};
    farm_.OnMessage(stream, result, now_ns);
  }
  /// The attempts that a worker gets, and answers well, until there are so many or a minute is
  /// over.
  std::vector<int64_t> AnsweredWell(StreamId stream, size_t count) {
    std::vector<int64_t> answered;
    for (int64_t now_ns = 2 * kSecond; answered.size() < count && now_ns < 60 * kSecond;) {
      farm_.Tick(now_ns += 100 * kMs);
      const FarmStep step = farm_.Take();
      for (const Outgoing& out : step.messages) {
        const auto* grant = std::get_if<proto::Grant>(&out.message);
        if (grant == nullptr || out.stream != stream) continue;
        answered.push_back(grant->attempt);
        Answer(stream, grant->token, now_ns);
      }
      for (const Delivery& delivery : step.deliveries) {
        (void)farm_.EndsOf(kSession, {delivery.attempt});
        farm_.OnCommitted(kSession, {delivery.attempt}, now_ns);
      }
    }
    return answered;
  }
  /// A worker dials in; what the Farm wants to become durable and to be said.
  FarmStep Dial(const Hash128& instance, std::vector<proto::HeldLease> held, StreamId stream = 1,
                const std::string& name = "w1") {
    proto::Hello hello{.protocol = 1, .builder_version = "b", .measurement_policy = 1};
    hello.instance = instance;
    hello.held = std::move(held);
    hello.device = {.name = "cpu:0",
                    .device_class = "class",
                    .fingerprint = "f",
                    .target = FarmHarness::kTarget,
                    .cores = 1};
    farm_.OnHello(stream, name, hello, kSecond);
    farm_.OnMessage(stream, proto::WorkerCredit{4}, kSecond);
    return farm_.Take();
  }
  static int Losses(const FarmStep& step) {
    for (const db::FarmChange& change : step.changes) {
      if (const auto* put = std::get_if<db::PutFarmSuspect>(&change)) return put->suspect.losses;
    }
    return 0;
  }
  static std::vector<int64_t> Granted(const FarmStep& step) {
    std::vector<int64_t> attempts;
    for (const Outgoing& out : step.messages) {
      if (const auto* grant = std::get_if<proto::Grant>(&out.message)) {
        attempts.push_back(grant->attempt);
      }
    }
    return attempts;
  }

  /// w1 comes back as this process, and w2 answers well what w1 was lost with.
  void ExpectNothingAgainst(const Hash128& instance) {
    Begin();
    Dial(instance, {}, 1, "w1");
    Dial({8, 8}, {}, 2, "w2");
    Ask(3);
    EXPECT_EQ(AnsweredWell(2, 3), (std::vector<int64_t>{3, 4, 5}));
    EXPECT_EQ(farm_.counters().quarantined, 0);
  }

  static constexpr Hash128 kSession{4, 4}, kToken{7, 1};
  db::FarmState stored_;
  Farm farm_{{}, {.protocol = 1, .builder = "b"}, 8, *this};
};

TEST_F(RestoredFarmTest, WhatHadStartedIsBlamedThoughHonedDiedWithItsWorker) {
  Restore(LeaseState::kStarted, 0);
  EXPECT_EQ(Losses(Dial({9, 10}, {})), 1);
}

TEST_F(RestoredFarmTest, WhatHadNotStartedIsNotBlamed) {
  Restore(LeaseState::kGranted, 0);
  EXPECT_EQ(Losses(Dial({9, 10}, {})), 0);
}

TEST_F(RestoredFarmTest, ASuspectThatRunsThenIsAloneStill) {
  Restore(LeaseState::kStarted, 1);
  EXPECT_THAT(Granted(Dial({9, 9}, {{kToken, true}})), ::testing::IsEmpty());
}

TEST_F(RestoredFarmTest, OthersRunBesideWhatIsNoSuspect) {
  Restore(LeaseState::kStarted, 0);
  EXPECT_THAT(Granted(Dial({9, 9}, {{kToken, true}})), ::testing::ElementsAre(4, 5));
}

TEST_F(RestoredFarmTest, ASuspectGoesToAnotherMachineAlsoAfterARestart) {
  AddSuspect(3, "w1/cpu:0");
  Begin();
  Dial({8, 8}, {}, 2, "w2");
  Dial({9, 9}, {}, 1, "w1");
  farm_.Submit(kSession, 3, {.workload = "w", .target = FarmHarness::kTarget, .traces = {"t"}},
               kSecond);
  const FarmStep step = farm_.Take();
  ASSERT_EQ(Granted(step), std::vector<int64_t>{3});
  EXPECT_EQ(step.messages.back().stream, 2);
}

// Whether it answered well between those losses is not known.
TEST_F(RestoredFarmTest, LossesBeforeARestartAreNotHeldAgainstTheMachine) {
  for (int64_t attempt = 3; attempt < 6; ++attempt) AddSuspect(attempt, "w1/cpu:0");
  ExpectNothingAgainst({9, 9});
}

// A power cut takes honed and a worker whose answers to what had started were not yet committed.
TEST_F(RestoredFarmTest, LossesOfWhatWasGrantedBeforeARestartAreNotEither) {
  for (int64_t attempt = 3; attempt < 6; ++attempt) {
    AddLease({7, static_cast<uint64_t>(attempt)}, attempt, LeaseState::kStarted);
  }
  ExpectNothingAgainst({9, 10});
}

// A search that began anew does not ask for it again; what it was answered waits until its end.
TEST_F(RestoredFarmTest, AnAnswerThatNobodyAsksForKeepsNoSuspectOff) {
  AddLease(kToken, 3, LeaseState::kStarted);
  AddSuspect(4, "w2/cpu:0");
  Begin();
  Dial({9, 9}, {{kToken, true}}, 1, "w1");
  Answer(1, kToken, kSecond);
  Ask(4);
  EXPECT_EQ(AnsweredWell(1, 2), (std::vector<int64_t>{4, 5}));
}

TEST(LossReasonTest, NamesWhomTheWorkerWasAndOtherTextsNobody) {
  EXPECT_EQ(LostWith(LossReason(1, "w1/cpu:0", "it said ': and went")), "w1/cpu:0");
  EXPECT_EQ(LostWith(""), "");
  EXPECT_EQ(LostWith("its worker was lost 1 times while it ran, last 'w1"), "");
}

TEST(FarmStarted, IsDurable) {
  FarmHarness farm;
  auto& device = farm.AddDevice("w1");
  farm.AddSession("s", "p", 2);
  farm.RunFor(20 * kMs);
  ASSERT_TRUE(device.running);
  const auto starts = std::ranges::count_if(farm.changes, [&](const db::FarmChange& change) {
    const auto* start = std::get_if<db::StartFarmLease>(&change);
    return start != nullptr && start->token == device.running->token;
  });
  EXPECT_EQ(starts, 1);
}

}  // namespace
}  // namespace hone::server
