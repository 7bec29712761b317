#include <cstdint>
#include <string>
#include <vector>

#include "proto/limits.h"
#include "tests/server/build_lease_harness.h"

// What one builder or one job cannot take from all others.
namespace hone::server {
namespace {

using measure::Outcome;
using proto::WorkerRole;
using ::testing::HasSubstr;

// Nobody could receive its Grant: each worker's stream would end in turn.
TEST_F(BuildLeaseTest, AJobThatFitsInNoMessageIsAnsweredAndNotGranted) {
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Connect(2, "runner", WorkerRole::kRun, 4);
  Connect(3, "both", WorkerRole::kBoth, 4);
  const std::string most(proto::kMaxTraceBytes - 8, 't');
  const auto of = [&](int traces) {
    std::vector<std::string> all;
    for (int i = 0; i < traces; ++i) all.push_back(most + std::to_string(i));
    return all;
  };
  Submit(1, of(4), proto::JobKind::kCompare);
  EXPECT_EQ(results_.at(1).outcome, Outcome::kWorkerLost);
  EXPECT_THAT(results_.at(1).message, HasSubstr("bytes; at most"));
  EXPECT_EQ(farm_->counters().granted, 0);
  EXPECT_EQ(farm_->waiting(), 0);
  Submit(2, of(3), proto::JobKind::kCompare);
  EXPECT_EQ(farm_->counters().granted, 1) << "one that fits is granted as ever";
}

class UnusedBytesTest : public BuildLeaseTest {
 protected:
  UnusedBytesTest() : BuildLeaseTest({.unused_bytes = 70, .unused_of_any = 50}) {}

  /// Its lease ended, nobody's fault.
  void ExpectNoRoom(StreamId stream, const Hash128& token) {
    const auto revoked = Heard<proto::Revoke>(stream);
    ASSERT_EQ(revoked.size(), 1u);
    EXPECT_EQ(revoked.front().token, token);
    EXPECT_THAT(revoked.front().reason, HasSubstr("no room for more"));
    EXPECT_EQ(store_.at(token).state, db::LeaseState::kReturned);
    EXPECT_EQ(farm_->counters().artifacts_refused, 0);
    EXPECT_EQ(farm_->counters().infrastructure_faults, 0);
  }
};

TEST_F(UnusedBytesTest, UploadsOfAllBuildersTogetherAreBounded) {
  Connect(2, "runner", WorkerRole::kRun, 8);
  for (StreamId stream : {1, 3}) {
    Connect(stream, "builder" + std::to_string(stream), WorkerRole::kBuild, 4);
  }
  Submit(1, {"t1"});
  Submit(2, {"t2"});
  const proto::Grant first = Grants(1).at(0), second = Grants(3).at(0);
  Upload(1, first.token, std::string(40, 'a'));
  Say(3, proto::ArtifactChunk{second.token, Sha256Hex("b"), 40, 0, "bbbb"});
  ExpectNoRoom(3, second.token);
  EXPECT_EQ(farm_->counters().artifacts_no_room, 1);
  // What came of the first is the cache's now, and there is room.
  Upload(1, first.token, "other");
  Say(1, proto::Built{.token = first.token,
                      .artifacts = {ArtifactOf(std::string(40, 'a')), ArtifactOf("other")},
                      .build_ns = 1});
  Pass(1000 * kMs);
  const auto again = Grants(1);
  ASSERT_EQ(again.size(), 1u);
  Upload(1, again[0].token, std::string(40, 'c'));
  EXPECT_EQ(store_.at(again[0].token).state, db::LeaseState::kGranted);
}

class SharedUnusedBytesTest : public BuildLeaseTest {
 protected:
  SharedUnusedBytesTest() : BuildLeaseTest({.unused_bytes = 400, .unused_of_any = 50}) {}
};

// Devices of one name together hold no more than they leave to others.
TEST_F(SharedUnusedBytesTest, OneNameLeavesRoomForEveryOther) {
  Connect(2, "runner", WorkerRole::kRun, 8);
  for (int device = 0; device < 4; ++device) {
    Connect(10 + device, "greedy", WorkerRole::kBuild, 1, {}, "cpu:" + std::to_string(device));
  }
  for (int64_t attempt = 1; attempt <= 6; ++attempt) {
    Submit(attempt, {"t" + std::to_string(attempt)});
  }
  // Each says that much is to come, and then nothing.
  for (int device = 0; device < 4; ++device) {
    const auto grants = Grants(10 + device);
    ASSERT_EQ(grants.size(), 1u);
    const std::string sha256 = Sha256Hex(std::to_string(device));
    Say(10 + device, proto::ArtifactChunk{grants[0].token, sha256, 50, 0, "a"});
    const bool held = store_.at(grants[0].token).state == db::LeaseState::kGranted;
    EXPECT_EQ(held, device < 2) << device;
  }
  Connect(3, "builder", WorkerRole::kBuild, 1);
  const auto grants = Grants(3);
  ASSERT_EQ(grants.size(), 1u);
  Build(3, grants[0]);
  EXPECT_EQ(store_.at(grants[0].token).state, db::LeaseState::kBuilt);
}

// Names that hold all that they may leave room for what those to come hold at most.
TEST_F(SharedUnusedBytesTest, ManyNamesThatTakeAllTheyMayLeaveRoomForTheNext) {
  Connect(2, "runner", WorkerRole::kRun, 40);
  for (int64_t attempt = 1; attempt <= 40; ++attempt) {
    Submit(attempt, {"t" + std::to_string(attempt)});
  }
  StreamId stream = 10;
  // Asks for ever more, until it gets none.
  const auto take_all = [&](const std::string& name) {
    for (int device = 0;; ++device) {
      Connect(++stream, name, WorkerRole::kBuild, 1, {}, "cpu:" + std::to_string(device));
      const auto grants = Grants(stream);
      ASSERT_EQ(grants.size(), 1u) << name;
      Say(stream, proto::ArtifactChunk{grants[0].token, Sha256Hex("a"), 10, 0, "a"});
      if (store_.at(grants[0].token).state != db::LeaseState::kGranted) return;
    }
  };
  for (const std::string name : {"first", "second", "third", "fourth"}) take_all(name);
  for (const std::string name : {"fifth", "sixth", "seventh"}) {
    Connect(++stream, name, WorkerRole::kBuild, 1);
    const auto grants = Grants(stream);
    ASSERT_EQ(grants.size(), 1u) << name;
    Say(stream, proto::ArtifactChunk{grants[0].token, Sha256Hex(name), 50, 0, "a"});
    EXPECT_EQ(store_.at(grants[0].token).state, db::LeaseState::kGranted) << name;
  }
}

// However often: it is not what was built, nor who built it.
TEST_F(UnusedBytesTest, WhatFindsNoRoomWaitsAndCostsNoAttempt) {
  Connect(2, "runner", WorkerRole::kRun, 8);
  Connect(1, "silent", WorkerRole::kBuild, 1);
  Submit(1, {"t1"});
  Say(1, proto::ArtifactChunk{Grants(1).at(0).token, Sha256Hex("a"), 40, 0, "a"});
  Connect(3, "builder", WorkerRole::kBuild, 1);
  Submit(2, {"t2"});
  int refused = 0;
  const auto pass = [&](int seconds) {
    std::vector<proto::Grant> grants;
    for (int i = 0; i < 10 * seconds && grants.empty(); ++i) {
      Pass(100 * kMs);
      for (const auto& [stream, credit] : {std::pair(1, 1), std::pair(2, 8)}) {
        Say(stream, proto::WorkerCredit{credit});
      }
      Say(3, proto::WorkerCredit{refused + 1});
      grants = Grants(3);
    }
    return grants;
  };
  for (auto grants = Grants(3); refused < 8; grants = pass(20)) {
    ASSERT_EQ(grants.size(), 1u) << refused;
    Say(3, proto::ArtifactChunk{grants[0].token, Sha256Hex("b"), 40, 0, "b"});
    ExpectNoRoom(3, grants[0].token);
    EXPECT_EQ(farm_->counters().artifacts_no_room, ++refused);
  }
  EXPECT_TRUE(results_.empty()) << "the session learnt of it";
  farm_->EndSession(kSession, "cancelled", now_ns_);
  Settle();
}

// A first part says how much is to come, and room is kept for that: not for ever.
TEST_F(UnusedBytesTest, WhatASilentBuilderReservedIsOthersWhenItsLeaseOrStreamEnds) {
  const auto builds = [&](StreamId stream) {
    Connect(2, "runner", WorkerRole::kRun, 8);  // it may have been lost meanwhile
    Connect(stream, "builder" + std::to_string(stream), WorkerRole::kBuild, 1);
    const auto grants = Grants(stream);
    EXPECT_EQ(grants.size(), 1u) << stream;
    return grants.empty() ? Hash128{} : grants[0].token;
  };
  for (int64_t attempt = 1; attempt <= 4; ++attempt) {
    Submit(attempt, {"t" + std::to_string(attempt)});
  }
  Say(1, proto::ArtifactChunk{builds(1), Sha256Hex("a"), 40, 0, "a"});
  Pass(policy_.start_by_ns + kMs);  // its lease ends, and it says nothing more
  const Hash128 second = builds(3);
  Say(3, proto::ArtifactChunk{second, Sha256Hex("b"), 40, 0, "b"});
  EXPECT_EQ(store_.at(second).state, db::LeaseState::kGranted);
  farm_->OnGone(3, now_ns_);  // its lease waits for it
  const Hash128 third = builds(5);
  Say(5, proto::ArtifactChunk{third, Sha256Hex("c"), 40, 0, "c"});
  EXPECT_EQ(store_.at(third).state, db::LeaseState::kGranted);
  EXPECT_EQ(store_.at(second).state, db::LeaseState::kGranted);
  EXPECT_EQ(farm_->counters().artifacts_refused, 0);
}

TEST_F(UnusedBytesTest, ABuilderWhoseSessionEndsWhileItSendsBuildsForOthers) {
  Connect(2, "runner", WorkerRole::kRun, 8);
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Submit(1, {"t1"});
  const Hash128 dropped = Grants(1).at(0).token;
  Say(1, proto::ArtifactChunk{dropped, Sha256Hex("a"), 40, 0, "a"});
  farm_->EndSession(kSession, "cancelled", now_ns_);
  Settle();
  EXPECT_EQ(store_.at(dropped).state, db::LeaseState::kRevoked);
  farm_->BeginSession({.id = kSession, .project = "p", .target = kTarget, .device_class = "class"});
  Submit(2, {"t2"});
  const auto grants = Grants(1);
  ASSERT_EQ(grants.size(), 1u);
  Build(1, grants[0]);
  EXPECT_EQ(store_.at(grants[0].token).state, db::LeaseState::kBuilt);
  EXPECT_EQ(farm_->counters().artifacts_refused, 0);
}

}  // namespace
}  // namespace hone::server
