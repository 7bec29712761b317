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
