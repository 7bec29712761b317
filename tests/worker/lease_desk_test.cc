#include "worker/lease_desk.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/sha256.h"

// What a worker that builds for others, and one that runs what others built, say and when.
namespace hone::worker {
namespace {

using measure::Outcome;
using proto::LeaseKind;

constexpr Hash128 kToken{1, 1}, kOther{1, 2};
constexpr int64_t kMs = 1'000'000;
constexpr DeskOptions kOptions = {.ahead = 4, .shelf_bytes = 100, .chunk_bytes = 4};

proto::Artifact ArtifactOf(const std::string& bytes) {
  return {.sha256 = Sha256Hex(bytes), .bytes = static_cast<int64_t>(bytes.size())};
}
HeldArtifact Held(const std::string& bytes) {
  return {ArtifactOf(bytes), std::make_shared<const std::string>(bytes)};
}
proto::Grant GrantOf(const Hash128& token, LeaseKind kind) {
  proto::Grant grant{.token = token, .start_by_ms = 1000, .run_by_ms = 1000, .kind = kind};
  grant.job.traces = {"t"};
  if (kind == LeaseKind::kBuild) grant.wanted = {0, 1};
  return grant;
}

class LeaseDeskTest : public ::testing::Test {
 protected:
  LeaseDeskTest() { Connect(); }
  void Connect() {
    desk_.OnConnected();
    Hear(proto::Welcome{.heartbeat_ms = 100});
    Hear(proto::ServerCredit{10});
    while (desk_.TakeMessage()) {
    }
  }
  void Hear(const proto::ServerMessage& message) { desk_.OnServer(message, 0); }
  /// The next message of this kind; whatever is said before it is dropped.
  template <typename Message>
  std::optional<Message> Said() {
    while (const auto message = desk_.TakeMessage()) {
      if (const auto* it = std::get_if<Message>(&*message)) return *it;
    }
    return std::nullopt;
  }
  void Chunk(const Hash128& token, const std::string& whole, int64_t offset,
             const std::string& data) {
    Hear(proto::ArtifactChunk{token, Sha256Hex(whole), static_cast<int64_t>(whole.size()), offset,
                              data});
  }

  LeaseDesk desk_{kOptions, {}};
};

TEST_F(LeaseDeskTest, ArtifactsGoInPartsAndThenWhatTheyAre) {
  Hear(GrantOf(kToken, LeaseKind::kBuild));
  const auto job = desk_.TakeJob();
  ASSERT_TRUE(job);
  EXPECT_EQ(job->wanted, (std::vector<int>{0, 1}));
  desk_.FinishBuild(job->number, {Held("abcdefghi"), Held("xy")}, 7);
  for (const char* part : {"abcd", "efgh", "i", "xy"}) {
    const auto chunk = Said<proto::ArtifactChunk>();
    ASSERT_TRUE(chunk) << part;
    EXPECT_EQ(chunk->data, part);
  }
  const auto built = Said<proto::Built>();
  ASSERT_TRUE(built);
  EXPECT_EQ(built->artifacts, (std::vector{ArtifactOf("abcdefghi"), ArtifactOf("xy")}));
  EXPECT_FALSE(desk_.empty()) << "kept until it is acknowledged";
  // A new stream: everything again.
  desk_.OnDisconnected();
  Connect();
  EXPECT_FALSE(desk_.TakeMessage()) << "Connect took it";
  desk_.OnDisconnected();
  desk_.OnConnected();
  Hear(proto::Welcome{.heartbeat_ms = 100});
  Hear(proto::ServerCredit{10});
  EXPECT_EQ(Said<proto::ArtifactChunk>()->data, "abcd");
  Hear(proto::Acknowledgement{kToken});
  EXPECT_TRUE(desk_.empty());
  EXPECT_TRUE(desk_.TakeAcknowledged().empty()) << "it was no measurement";
}

TEST_F(LeaseDeskTest, OneLeasesArtifactsAfterTheOthers) {
  Hear(GrantOf(kToken, LeaseKind::kBuild));
  Hear(GrantOf(kOther, LeaseKind::kBuild));
  const auto first = desk_.TakeJob(), second = desk_.TakeJob();
  desk_.FinishBuild(second->number, {Held("abcdefghi"), Held("xy")}, 7);
  EXPECT_EQ(Said<proto::ArtifactChunk>()->token, kOther);
  desk_.FinishBuild(first->number, {Held("12345678"), Held("9")}, 7);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Said<proto::ArtifactChunk>()->token, kOther);
  EXPECT_EQ(Said<proto::Built>()->token, kOther);
  EXPECT_EQ(Said<proto::ArtifactChunk>()->token, kToken);
  // Taken back in the middle of it: nothing more of it is said.
  Hear(proto::Revoke{kToken, "gone"});
  EXPECT_FALSE(desk_.TakeMessage() && desk_.TakeMessage());
}

TEST_F(LeaseDeskTest, ARunWaitsForItsArtifacts) {
  proto::Grant grant = GrantOf(kToken, LeaseKind::kRun);
  grant.artifacts = {ArtifactOf("abcdef"), ArtifactOf("default")};
  Hear(grant);
  EXPECT_FALSE(desk_.TakeJob());
  EXPECT_EQ(Said<proto::Fetch>(), (proto::Fetch{kToken, Sha256Hex("abcdef"), 0}));
  Chunk(kToken, "abcdef", 0, "abcd");
  Chunk(kToken, "abcdef", 0, "abcd");  // said twice
  EXPECT_EQ(Said<proto::Fetch>(), (proto::Fetch{kToken, Sha256Hex("abcdef"), 4}));
  // On a new stream it goes on where it was.
  desk_.OnDisconnected();
  desk_.OnConnected();
  Hear(proto::Welcome{.heartbeat_ms = 100, .keep = {kToken}});
  EXPECT_EQ(Said<proto::Fetch>(), (proto::Fetch{kToken, Sha256Hex("abcdef"), 4}));
  Chunk(kToken, "abcdef", 4, "ef");
  EXPECT_EQ(Said<proto::Fetch>(), (proto::Fetch{kToken, Sha256Hex("default"), 0}));
  Chunk(kToken, "default", 0, "default");
  const auto job = desk_.TakeJob();
  ASSERT_TRUE(job);
  ASSERT_EQ(job->artifacts.size(), 2u);
  EXPECT_EQ(*job->artifacts[0].bytes, "abcdef");
  EXPECT_EQ(*job->artifacts[1].bytes, "default");

  // The next one of that task has the default here.
  grant.token = kOther;
  grant.artifacts[0] = ArtifactOf("ghi");
  Hear(grant);
  EXPECT_EQ(Said<proto::Fetch>(), (proto::Fetch{kOther, Sha256Hex("ghi"), 0}));
  Chunk(kOther, "ghi", 0, "ghi");
  EXPECT_TRUE(desk_.TakeJob());
}

TEST_F(LeaseDeskTest, TheHashOfTheGrantCounts) {
  proto::Grant grant = GrantOf(kToken, LeaseKind::kRun);
  grant.artifacts = {ArtifactOf("good"), ArtifactOf("default")};
  Hear(grant);
  Chunk(kToken, "good", 0, "evil");
  EXPECT_FALSE(desk_.TakeJob()) << "nothing of it runs";
  const auto result = Said<proto::WorkResult>();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->outcome, Outcome::kWorkerLost) << "not the candidate's fault";
  EXPECT_THAT(result->message, ::testing::HasSubstr("not what its hash says"));
}

TEST_F(LeaseDeskTest, WhatCouldNotBeBuiltIsNotFetched) {
  proto::Grant grant = GrantOf(kToken, LeaseKind::kRun);
  grant.artifacts = {{.outcome = Outcome::kBuildFailed, .message = "no"}, ArtifactOf("default")};
  Hear(grant);
  EXPECT_EQ(Said<proto::Fetch>()->sha256, Sha256Hex("default"));
  Chunk(kToken, "default", 0, "default");
  const auto job = desk_.TakeJob();
  ASSERT_TRUE(job);
  EXPECT_EQ(job->artifacts[0].bytes, nullptr);
  EXPECT_EQ(job->artifacts[0].artifact.message, "no");
}

TEST_F(LeaseDeskTest, ARevokedLeaseMakesWayForTheNext) {
  proto::Grant grant = GrantOf(kToken, LeaseKind::kRun);
  grant.artifacts = {ArtifactOf("abcdef"), ArtifactOf("default")};
  Hear(grant);
  proto::Grant next = grant;
  next.token = kOther;
  next.artifacts[0] = ArtifactOf("ghi");
  Hear(next);
  EXPECT_EQ(Said<proto::Fetch>()->token, kToken);
  Hear(proto::Revoke{kToken, "its artifact is gone"});
  EXPECT_EQ(Said<proto::Fetch>(), (proto::Fetch{kOther, Sha256Hex("ghi"), 0}));
  desk_.BeginDraining();
  EXPECT_EQ(Said<proto::Returned>()->token, kOther) << "it had not begun";
  EXPECT_TRUE(desk_.empty());
}

/// A desk with a lease that runs, one that was handed out, one that waits and an answer unsent.
class LostDeviceTest : public LeaseDeskTest {
 protected:
  LostDeviceTest() {
    for (uint64_t i = 1; i <= 4; ++i) Hear(GrantOf({1, i}, LeaseKind::kBoth));
    const auto first = desk_.TakeJob(), second = desk_.TakeJob();
    taken_ = desk_.TakeJob()->number;
    desk_.Start(first->number, 0);
    desk_.Finish(first->number, {.outcome = Outcome::kRunCrashed, .message = "m"});
    desk_.Start(second->number, 0);
    desk_.SetDeviceLost("process 7");
  }
  int64_t taken_ = 0;
};

TEST_F(LostDeviceTest, WhatHasNotStartedGoesBackAndAnswersGoBeforeTheNews) {
  std::vector<Hash128> returned;
  bool answered = false;
  std::optional<proto::DeviceLost> lost;
  while (const auto message = desk_.TakeMessage()) {
    if (const auto* back = std::get_if<proto::Returned>(&*message)) {
      returned.push_back(back->token);
      EXPECT_EQ(back->reason, "process 7");
    } else if (std::holds_alternative<proto::WorkResult>(*message)) {
      answered = true;
      EXPECT_FALSE(lost);
    } else if (const auto* news = std::get_if<proto::DeviceLost>(&*message)) {
      EXPECT_FALSE(lost) << "once";
      lost = *news;
    }
    EXPECT_FALSE(std::holds_alternative<proto::WorkerCredit>(*message));
  }
  EXPECT_EQ(returned, (std::vector<Hash128>{{1, 3}, {1, 4}}));
  EXPECT_TRUE(answered);
  EXPECT_EQ(lost, proto::DeviceLost{"process 7"});
  EXPECT_EQ(desk_.TakeCancelled(), std::vector{taken_}) << "nobody waits for it any more";
  EXPECT_FALSE(desk_.TakeJob());
  EXPECT_EQ(desk_.unfinished(), 1) << "what runs is honed's to end";
}

TEST_F(LostDeviceTest, EachNewStreamIsTold) {
  while (desk_.TakeMessage()) {
  }
  desk_.SetDeviceLost("process 8");
  EXPECT_FALSE(desk_.TakeMessage()) << "the first reason stands";
  for (int i = 0; i < 2; ++i) {
    desk_.OnDisconnected();
    desk_.OnConnected();
    EXPECT_TRUE(Said<proto::Hello>());
    EXPECT_FALSE(desk_.TakeMessage()) << "not before it is welcome";
    Hear(proto::Welcome{.heartbeat_ms = 100, .keep = {{1, 1}, {1, 2}}});
    EXPECT_FALSE(desk_.TakeMessage()) << "its answer waits for credit";
    Hear(proto::ServerCredit{10});
    ASSERT_TRUE(Said<proto::WorkResult>());
    const auto next = desk_.TakeMessage();
    ASSERT_TRUE(next && std::holds_alternative<proto::DeviceLost>(*next));
    EXPECT_FALSE(desk_.TakeMessage());
  }
}

TEST_F(LostDeviceTest, NothingIsTakenAnyMore) {
  while (desk_.TakeMessage()) {
  }
  Hear(proto::Acknowledgement{{1, 1}});
  Hear(proto::Revoke{{1, 2}, "its device is lost"});
  EXPECT_TRUE(desk_.empty());
  EXPECT_FALSE(desk_.TakeMessage()) << "there is room for four, and no credit";
  Hear(GrantOf({1, 9}, LeaseKind::kBoth));  // that was on its way
  EXPECT_EQ(Said<proto::Returned>()->token, (Hash128{1, 9}));
  EXPECT_FALSE(desk_.TakeJob());
}

TEST_F(LeaseDeskTest, WhatHasNotBegunInTimeGoesBackUnblamed) {
  Hear(GrantOf(kToken, LeaseKind::kBoth));
  Hear(GrantOf(kOther, LeaseKind::kBoth));
  const auto taken = desk_.TakeJob();
  desk_.Tick(999 * kMs);
  EXPECT_FALSE(Said<proto::Returned>());
  desk_.Tick(1000 * kMs);
  EXPECT_EQ(Said<proto::Returned>()->token, kToken);
  EXPECT_EQ(Said<proto::Returned>()->token, kOther);
  EXPECT_TRUE(desk_.empty());
  EXPECT_EQ(desk_.TakeCancelled(), std::vector<int64_t>{taken->number}) << "it is being built";
}

TEST_F(LeaseDeskTest, WhatRunsTooLongIsKilledAndAnswered) {
  Hear(GrantOf(kToken, LeaseKind::kBoth));
  const auto job = desk_.TakeJob();
  desk_.Start(job->number, 500 * kMs);
  desk_.Tick(1499 * kMs);
  EXPECT_TRUE(desk_.TakeCancelled().empty());
  desk_.Tick(1500 * kMs);
  EXPECT_EQ(desk_.TakeCancelled(), std::vector<int64_t>{job->number});
  // What was killed comes back as if its worker were at fault.
  desk_.Finish(job->number, {.outcome = Outcome::kWorkerLost});
  desk_.Tick(1600 * kMs);
  EXPECT_TRUE(desk_.TakeCancelled().empty()) << "once";
  const auto result = Said<proto::WorkResult>();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->token, kToken);
  EXPECT_EQ(result->outcome, Outcome::kRunTimeout);
  EXPECT_EQ(result->run_ns, 1000 * kMs) << "the device was busy for it";
  EXPECT_THAT(result->message, ::testing::HasSubstr("1000 ms"));
  EXPECT_FALSE(desk_.empty()) << "kept until it is acknowledged";
  Hear(proto::Acknowledgement{kToken});
  EXPECT_TRUE(desk_.empty());
}

TEST_F(LeaseDeskTest, ItsClockRunsWithoutAStream) {
  Hear(GrantOf(kToken, LeaseKind::kBoth));
  Hear(GrantOf(kOther, LeaseKind::kBoth));
  const auto job = desk_.TakeJob();
  desk_.Start(job->number, 0);
  desk_.OnDisconnected();
  desk_.Tick(1000 * kMs);
  EXPECT_EQ(desk_.TakeCancelled(), std::vector<int64_t>{job->number});
  EXPECT_FALSE(desk_.TakeMessage());
  desk_.OnConnected();
  const auto hello = Said<proto::Hello>();
  ASSERT_TRUE(hello);
  // The other one was given up: honed sees that it is not held.
  EXPECT_EQ(hello->held, (std::vector<proto::HeldLease>{{kToken, false}}));
}

TEST_F(LeaseDeskTest, ADrainFinishesWhatRunsAndGivesTheRestBack) {
  for (uint64_t i = 1; i <= 3; ++i) Hear(GrantOf({1, i}, LeaseKind::kBoth));
  Hear(GrantOf({1, 4}, LeaseKind::kBuild));
  std::vector<int64_t> numbers;
  while (const auto job = desk_.TakeJob()) numbers.push_back(job->number);
  ASSERT_EQ(numbers.size(), 4u) << "they are being built";
  desk_.Start(numbers[0], 0);
  desk_.BeginDraining();
  EXPECT_EQ(Said<proto::Returned>()->token, (Hash128{1, 2}));
  EXPECT_EQ(Said<proto::Returned>()->token, (Hash128{1, 3}));
  EXPECT_FALSE(Said<proto::Returned>()) << "one runs, and a builder builds";
  EXPECT_EQ(desk_.TakeCancelled(), (std::vector<int64_t>{numbers[1], numbers[2]}));
  desk_.Finish(numbers[0], {.outcome = Outcome::kBuildFailed});
  desk_.FinishBuild(numbers[3], {Held("a"), Held("b")}, 1);
  Hear(proto::Acknowledgement{{1, 1}});
  Hear(proto::Acknowledgement{{1, 4}});
  EXPECT_TRUE(desk_.empty());
}

TEST(LeaseDeskCredit, NothingIsAskedForWhileTooManyResultsAreUnacknowledged) {
  LeaseDesk desk({.ahead = 1, .most_unacknowledged = 2}, {});
  desk.OnConnected();
  desk.OnServer(proto::Welcome{.heartbeat_ms = 100}, 0);
  const auto credit = [&] {
    int64_t leases = 0;
    while (const auto message = desk.TakeMessage()) {
      if (const auto* c = std::get_if<proto::WorkerCredit>(&*message)) leases = c->leases;
    }
    return leases;
  };
  EXPECT_EQ(credit(), 1);
  for (uint64_t i = 1; i <= 2; ++i) {
    desk.OnServer(GrantOf({1, i}, LeaseKind::kBoth), 0);
    desk.Finish(desk.TakeJob()->number, {.outcome = Outcome::kBuildFailed});
    EXPECT_EQ(credit(), i == 1 ? 2 : 0) << i;
  }
  desk.OnServer(proto::Acknowledgement{{1, 1}}, 0);
  EXPECT_EQ(credit(), 3);
}

TEST(BackOffTest, DoublesWithinBoundsAndBeginsAnew) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    BackOff back_off(seed);
    for (int round = 0; round < 2; ++round) {
      for (int64_t most_ns = 50 * kMs; most_ns < 10'000 * kMs; most_ns *= 2) {
        const int64_t bound_ns = std::min(most_ns, 5000 * kMs);
        const int64_t pause_ns = back_off.NextNs();
        EXPECT_GE(pause_ns, bound_ns / 2) << "seed " << seed;
        EXPECT_LT(pause_ns, bound_ns) << "seed " << seed;
      }
      for (int i = 0; i < 100; ++i) EXPECT_LT(back_off.NextNs(), 5000 * kMs);
      back_off.Reset();
    }
  }
  // A thousand workers do not dial in at once.
  EXPECT_NE(BackOff(1).NextNs(), BackOff(2).NextNs());
}

TEST(ArtifactShelf, WhatWasUsedLastStays) {
  ArtifactShelf shelf(10);
  for (const char* bytes : {"aaaa", "bbbb"}) {
    shelf.Put(bytes, std::make_shared<const std::string>(bytes));
  }
  EXPECT_NE(shelf.Find("aaaa"), nullptr);
  shelf.Put("cccc", std::make_shared<const std::string>("cccc"));
  EXPECT_EQ(shelf.Find("bbbb"), nullptr);
  EXPECT_NE(shelf.Find("aaaa"), nullptr);
  EXPECT_LE(shelf.bytes(), 10);
  shelf.Put("large", std::make_shared<const std::string>(50, 'x'));
  EXPECT_NE(shelf.Find("large"), nullptr) << "somebody waits for it";
}

}  // namespace
}  // namespace hone::worker
