#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/sha256.h"
#include "proto/limits.h"
#include "server/artifact_cache.h"
#include "tests/server/build_lease_harness.h"

// Build leases and run leases: who gets which, and what becomes of artifacts that are late, gone,
// damaged, or not what they say.
namespace hone::server {
namespace {

using measure::Outcome;
using proto::LeaseKind;
using proto::WorkerRole;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(BuildLeaseTest, WhatOneBuildsAnotherRuns) {
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Connect(2, "runner", WorkerRole::kRun, 4);
  Submit(1, {"t1"});
  EXPECT_THAT(Grants(2), IsEmpty()) << "nothing is built";
  const auto builds = Grants(1);
  ASSERT_EQ(builds.size(), 1u);
  EXPECT_EQ(builds[0].kind, LeaseKind::kBuild);
  EXPECT_EQ(KindOf(builds[0].token), LeaseKind::kBuild);
  EXPECT_THAT(builds[0].wanted, ElementsAre(0, 1)) << "the candidate and the default";
  Build(1, builds[0]);
  EXPECT_EQ(VerdictOf(1), proto::Verdict::kAccepted);
  EXPECT_EQ(store_.at(builds[0].token).state, db::LeaseState::kBuilt);
  EXPECT_TRUE(results_.empty());

  const auto runs = Grants(2);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].kind, LeaseKind::kRun);
  EXPECT_EQ(runs[0].attempt, 1);
  EXPECT_THAT(runs[0].artifacts,
              ElementsAre(ArtifactOf("code of t1"), ArtifactOf("code of the default")));
  std::string fetched;
  for (const int64_t offset : {0, 3}) {
    Say(2, proto::Fetch{runs[0].token, runs[0].artifacts[0].sha256, offset});
    const auto chunks = Heard<proto::ArtifactChunk>(2);
    ASSERT_EQ(chunks.size(), 1u);
    EXPECT_EQ(chunks[0].offset, offset);
    fetched = fetched.substr(0, static_cast<size_t>(offset)) + chunks[0].data;
  }
  EXPECT_EQ(fetched, "code of t1");
  Say(2, proto::Started{runs[0].token});
  Say(2, Ok(runs[0].token));
  EXPECT_EQ(VerdictOf(2), proto::Verdict::kAccepted);
  EXPECT_EQ(results_.at(1).outcome, Outcome::kOk);
  EXPECT_EQ(results_.at(1).build_ns, 7) << "the builder's";
  EXPECT_EQ(charged_ns_, 5) << "device time alone";

  // The next one's default is there already.
  Submit(2, {"t2"});
  const auto next = Grants(1);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_THAT(next[0].wanted, ElementsAre(0));
}

TEST_F(BuildLeaseTest, ABuilderIsBelievedNoMoreTimeThanPassed) {
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Connect(2, "runner", WorkerRole::kRun, 4);
  Submit(1, {"t1"});
  const Hash128 lease = Grants(1).at(0).token;
  Pass(50 * kMs);
  Upload(1, lease, "code of t1");
  Upload(1, lease, "code of the default");
  Say(1, proto::Built{.token = lease,
                      .artifacts = {ArtifactOf("code of t1"), ArtifactOf("code of the default")},
                      .build_ns = int64_t{365} * 86'400'000 * kMs});
  const Hash128 run = Grants(2).at(0).token;
  Say(2, proto::Started{run});
  Say(2, Ok(run));
  EXPECT_GE(results_.at(1).build_ns, 50 * kMs);
  EXPECT_LE(results_.at(1).build_ns, 200 * kMs) << "it has one core";
}

TEST_F(BuildLeaseTest, FinalistsAreNotBuiltAgain) {
  const proto::Grant run = GrantToRun();
  Say(2, Ok(run.token));
  Submit(9, {"t1", ""}, proto::JobKind::kCompare);
  EXPECT_THAT(Grants(1), IsEmpty());
  const auto compare = Grants(2);
  ASSERT_EQ(compare.size(), 1u);
  const proto::Artifact candidate = ArtifactOf("code of t1");
  const proto::Artifact standard = ArtifactOf("code of the default");
  EXPECT_THAT(compare[0].artifacts, ElementsAre(candidate, standard, standard));
}

TEST_F(BuildLeaseTest, BuildersArePacedByRunners) {
  Connect(1, "builder", WorkerRole::kBuild, 100);
  for (int64_t i = 0; i < 50; ++i) Submit(i, {"t" + std::to_string(i)});
  EXPECT_THAT(Grants(1), IsEmpty()) << "nobody runs anything";
  Connect(2, "runner", WorkerRole::kRun, 3);
  const auto builds = Grants(1);
  ASSERT_EQ(builds.size(), 5u) << "its credit and two to spare";
  for (const proto::Grant& grant : builds) Build(1, grant);
  const auto runs = Grants(2);
  EXPECT_EQ(runs.size(), 3u);
  EXPECT_EQ(Grants(1).size(), 0u) << "two wait built";
  // A place becomes free: one of those is run, and another is built.
  Say(2, Ok(runs[0].token));
  Say(2, proto::WorkerCredit{4});
  EXPECT_EQ(Grants(2).size(), 1u);
  EXPECT_EQ(Grants(1).size(), 1u);
}

TEST_F(BuildLeaseTest, WhoDoesBothTakesWhatNobodyHasBuilt) {
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Connect(2, "runner", WorkerRole::kRun, 0);
  Submit(1, {"t1"});
  Build(1, Grants(1).at(0));
  Connect(3, "both", WorkerRole::kBoth, 4);
  EXPECT_THAT(Grants(3), IsEmpty()) << "it is built for the other";
  Submit(2, {"t2"});
  const auto grants = Grants(3);
  const auto builds = Grants(1);
  EXPECT_EQ(grants.size() + builds.size(), 1u);
  for (const proto::Grant& grant : grants) EXPECT_EQ(grant.kind, LeaseKind::kBoth);
  // Nobody is left to run it as it is.
  farm_->OnGone(2, now_ns_);
  Pass(kMs);
  EXPECT_FALSE(Grants(3).empty());
}

TEST_F(BuildLeaseTest, AFailureOfTheBuilderIsTheCandidates) {
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Connect(2, "runner", WorkerRole::kRun, 4);
  Submit(1, {"t1"});
  proto::WorkResult crashed{.token = Grants(1).at(0).token, .outcome = Outcome::kBuildCrashed};
  crashed.message = "signal 6";
  crashed.run_ns = 99;  // a builder may say anything
  Say(1, crashed);
  EXPECT_EQ(VerdictOf(1), proto::Verdict::kAccepted);
  EXPECT_EQ(results_.at(1).outcome, Outcome::kBuildCrashed);
  EXPECT_EQ(charged_ns_, 0) << "no device was used";
  // And it is no longer being built: others are, however many fail.
  for (int64_t i = 10; i < 30; ++i) {
    Submit(i, {"t" + std::to_string(i)});
    const auto next = Grants(1);
    ASSERT_EQ(next.size(), 1u) << i;
    crashed.token = next[0].token;
    Say(1, crashed);
    EXPECT_EQ(VerdictOf(1), proto::Verdict::kAccepted);
    Say(1, proto::WorkerCredit{i});
  }
  // But times it has none to give.
  Submit(2, {"t2"});
  Say(1, Ok(Grants(1).at(0).token));
  EXPECT_EQ(VerdictOf(1), proto::Verdict::kInvalid);
  EXPECT_FALSE(results_.contains(2));
}

TEST_F(BuildLeaseTest, WhatCannotBeBuiltOfAComparisonIsSaidToWhoRunsIt) {
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Connect(2, "runner", WorkerRole::kRun, 4);
  Submit(1, {"t1", "t2"}, proto::JobKind::kCompare);
  const proto::Grant grant = Grants(1).at(0);
  ASSERT_THAT(grant.wanted, ElementsAre(0, 1, 2));
  Upload(1, grant.token, "one");
  Upload(1, grant.token, "default");
  const proto::Artifact failed{.outcome = Outcome::kBuildTimeout, .message = "20 s"};
  Say(1, proto::Built{grant.token, {ArtifactOf("one"), failed, ArtifactOf("default")}, 1});
  EXPECT_THAT(Grants(2).at(0).artifacts,
              ElementsAre(ArtifactOf("one"), failed, ArtifactOf("default")));
}

TEST_F(BuildLeaseTest, ABuilderThatIsLostHalfWayBlamesNobody) {
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Connect(2, "runner", WorkerRole::kRun, 4);
  Submit(1, {"t1"});
  const proto::Grant grant = Grants(1).at(0);
  Say(1, proto::ArtifactChunk{grant.token, Sha256Hex("code"), 4, 0, "co"});
  farm_->OnGone(1, now_ns_);
  Pass(policy_.lost_after_ns / 2);
  farm_->OnMessage(2, proto::Heartbeat{}, now_ns_);
  Pass(policy_.lost_after_ns / 2 + kMs);
  EXPECT_EQ(store_.at(grant.token).state, db::LeaseState::kLost);
  EXPECT_TRUE(results_.empty());
  Connect(3, "other", WorkerRole::kBuild, 4);
  Pass(policy_.first_pause_ns);
  const auto again = Grants(3);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].attempt, 1);
  // What it brings afterwards is nobody's.
  Connect(4, "builder", WorkerRole::kBuild, 0, {{grant.token, false}});
  Say(4, proto::Built{grant.token, {ArtifactOf("code"), ArtifactOf("x")}, 1});
  EXPECT_EQ(VerdictOf(4), proto::Verdict::kStale);
  EXPECT_THAT(Grants(2), IsEmpty());
}

TEST_F(BuildLeaseTest, ABuilderWhoseDeviceIsLostBlamesNobodyAndGetsNothing) {
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Connect(2, "runner", WorkerRole::kRun, 4);
  Submit(1, {"t1"});
  const proto::Grant grant = Grants(1).at(0);
  Say(1, proto::DeviceLost{"process 7 does not end"});
  EXPECT_EQ(store_.at(grant.token).state, db::LeaseState::kLost);
  Connect(3, "other", WorkerRole::kBuild, 4);
  EXPECT_THAT(Grants(3), IsEmpty()) << "a machine that dies of it shall not get it at once";
  Pass(policy_.first_pause_ns);
  EXPECT_EQ(Grants(3).size(), 1u);
  EXPECT_THAT(Grants(1), IsEmpty());
  EXPECT_TRUE(results_.empty());
}

TEST_F(BuildLeaseTest, AReconnectedBuilderSendsItAgain) {
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Connect(2, "runner", WorkerRole::kRun, 4);
  Submit(1, {"t1"});
  const proto::Grant grant = Grants(1).at(0);
  Upload(1, grant.token, "code of t1");
  Say(1, proto::ArtifactChunk{grant.token, Sha256Hex("rest"), 4, 0, "re"});
  farm_->OnGone(1, now_ns_);
  Connect(5, "builder", WorkerRole::kBuild, 0, {{grant.token, false}});
  EXPECT_THAT(Heard<proto::Welcome>(5).at(0).keep, ElementsAre(grant.token));
  Build(5, grant);
  EXPECT_EQ(VerdictOf(5), proto::Verdict::kAccepted);
  EXPECT_EQ(Grants(2).size(), 1u);
  // And once more, when it had not heard the answer.
  Say(5, proto::Built{grant.token, {}, 0});
  EXPECT_EQ(VerdictOf(5), proto::Verdict::kAccepted);
  EXPECT_EQ(farm_->counters().artifacts_refused, 0);
}

TEST_F(BuildLeaseTest, AnArtifactWithoutABuildLeaseIsDropped) {
  const proto::Grant run = GrantToRun();
  const Hash128 never{1, 77};
  Upload(1, never, "no lease");     // never granted
  Upload(2, run.token, "my own");   // a run lease
  Upload(1, run.token, "for him");  // another's
  EXPECT_EQ(farm_->counters().artifacts_unasked, 2 + 2 + 2);
  EXPECT_EQ(Heard<proto::Revoke>(1).size(), 2u);
  EXPECT_EQ(Heard<proto::Revoke>(2).size(), 1u);
  Say(2, proto::Built{run.token, {ArtifactOf("my own")}, 1});
  EXPECT_EQ(VerdictOf(2), proto::Verdict::kInvalid);
  Say(2, proto::Fetch{run.token, run.artifacts[0].sha256, 0});
  EXPECT_EQ(Heard<proto::ArtifactChunk>(2).at(0).data, "code of t1") << "as it was";
}

TEST_F(BuildLeaseTest, AWrongHashEndsTheLease) {
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Connect(2, "runner", WorkerRole::kRun, 4);
  Submit(1, {"t1"});
  const proto::Grant grant = Grants(1).at(0);
  Say(1, proto::ArtifactChunk{grant.token, Sha256Hex("good"), 4, 0, "evil"});
  ExpectRefused(1, grant.token, "not what its hash says");
  // Another builder gets it; that one only when it is alone, and later.
  Connect(3, "other", WorkerRole::kBuild, 4);
  Pass(policy_.first_pause_ns);
  EXPECT_THAT(Grants(1), IsEmpty());
  EXPECT_EQ(Grants(3).size(), 1u);
}

TEST_F(BuildLeaseTest, PartsOutOfOrderEndTheLease) {
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Connect(2, "runner", WorkerRole::kRun, 4);
  Submit(1, {"t1"});
  const proto::Grant grant = Grants(1).at(0);
  const std::string sha256 = Sha256Hex("abcdef");
  Say(1, proto::ArtifactChunk{grant.token, sha256, 6, 0, "ab"});
  Say(1, proto::ArtifactChunk{grant.token, sha256, 6, 0, "ab"});  // the network said it twice
  Say(1, proto::ArtifactChunk{grant.token, sha256, 6, 4, "ef"});
  ExpectRefused(1, grant.token, "from byte 4 on, after 2 bytes");
}

TEST_F(BuildLeaseTest, AnotherArtifactBeforeTheFirstIsWholeEndsTheLease) {
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Connect(2, "runner", WorkerRole::kRun, 4);
  Submit(1, {"t1"});
  const proto::Grant grant = Grants(1).at(0);
  Say(1, proto::ArtifactChunk{grant.token, Sha256Hex("abcdef"), 6, 0, "ab"});
  Say(1, proto::ArtifactChunk{grant.token, Sha256Hex("x"), 1, 0, "x"});
  ExpectRefused(1, grant.token, "without those before them");
}

TEST_F(BuildLeaseTest, WhatIsNamedMustHaveCome) {
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Connect(2, "runner", WorkerRole::kRun, 4);
  Submit(1, {"t1"});
  const proto::Grant grant = Grants(1).at(0);
  Upload(1, grant.token, "one");
  Say(1, proto::Built{grant.token, {ArtifactOf("one"), ArtifactOf("two")}, 1});
  ExpectRefused(1, grant.token, "did not come");
}

TEST_F(BuildLeaseTest, TooManyBytesEndTheLease) {
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Connect(2, "runner", WorkerRole::kRun, 4);
  std::vector<std::string> traces;
  for (int i = 0; i < 5; ++i) traces.push_back("t" + std::to_string(i));
  Submit(1, traces, proto::JobKind::kCompare);
  const proto::Grant grant = Grants(1).at(0);
  const std::string part(proto::kArtifactChunkBytes, 'x');
  for (int n = 0; n < 5 && farm_->counters().artifacts_refused == 0; ++n) {
    std::string whole(static_cast<size_t>(proto::kMaxArtifactBytes), 'x');
    whole[0] = static_cast<char>('a' + n);
    const std::string sha256 = Sha256Hex(whole);
    for (size_t at = 0; at < whole.size(); at += part.size()) {
      Say(1, proto::ArtifactChunk{grant.token, sha256, proto::kMaxArtifactBytes,
                                  static_cast<int64_t>(at), whole.substr(at, part.size())});
    }
  }
  ExpectRefused(1, grant.token, "more bytes");
}

TEST_F(BuildLeaseTest, ABuilderThatIsAlwaysWrongEndsTheAttemptAtNobodysCost) {
  Connect(1, "builder", WorkerRole::kBuild, 40);
  Connect(2, "runner", WorkerRole::kRun, 4);
  Submit(1, {"t1"});
  int tries = 0;
  for (; results_.empty() && tries < 20; ++tries) {
    const auto grants = Grants(1);
    for (const proto::Grant& grant : grants) {
      Say(1, proto::ArtifactChunk{grant.token, Sha256Hex("good"), 4, 0, "evil"});
    }
    farm_->OnMessage(2, proto::Heartbeat{}, now_ns_);
    farm_->OnMessage(1, proto::Heartbeat{}, now_ns_);
    Pass(15'000 * kMs);
  }
  EXPECT_EQ(results_.at(1).outcome, Outcome::kWorkerLost);
  EXPECT_EQ(farm_->counters().artifacts_refused, policy_.max_faults + 1);
  EXPECT_EQ(charged_ns_, 0);
}

TEST_F(BuildLeaseTest, AFetchIsForWhatTheLeaseIsAbout) {
  const proto::Grant run = GrantToRun();
  Connect(3, "spy", WorkerRole::kRun, 4);
  Say(3, proto::Fetch{run.token, run.artifacts[0].sha256, 0});
  EXPECT_THAT(Heard<proto::ArtifactChunk>(3), IsEmpty());
  EXPECT_EQ(Heard<proto::Revoke>(3).size(), 1u);
  Say(2, proto::Fetch{run.token, Sha256Hex("another's"), 0});
  EXPECT_THAT(Heard<proto::ArtifactChunk>(2), IsEmpty());
  EXPECT_EQ(Heard<proto::Revoke>(2).size(), 1u);
  EXPECT_EQ(farm_->counters().invalid, 1);
  EXPECT_EQ(store_.at(run.token).state, db::LeaseState::kReturned);
}

TEST_F(BuildLeaseTest, ARestartForgetsArtifactsAndBuildsThemAgain) {
  const proto::Grant run = GrantToRun();
  Submit(2, {"t2"});
  const proto::Grant build = Grants(1).at(0);
  farm_->OnGone(1, now_ns_);
  farm_->OnGone(2, now_ns_);
  said_.clear();
  Start(2);
  EXPECT_EQ(store_.at(build.token).state, db::LeaseState::kReturned);
  Connect(1, "builder", WorkerRole::kBuild, 4, {{build.token, false}});
  Connect(2, "runner", WorkerRole::kRun, 3, {{run.token, false}});
  EXPECT_THAT(Heard<proto::Welcome>(1).at(0).drop, ElementsAre(build.token));
  EXPECT_THAT(Heard<proto::Welcome>(2).at(0).keep, ElementsAre(run.token))
      << "it may have the artifacts already";
  Submit(1, {"t1"});
  Submit(2, {"t2"});
  EXPECT_EQ(Grants(1).size(), 1u) << "attempt 2";
  // It has not.
  Say(2, proto::Fetch{run.token, run.artifacts[0].sha256, 0});
  EXPECT_EQ(farm_->counters().artifacts_gone, 1);
  const auto revoked = Heard<proto::Revoke>(2);
  ASSERT_EQ(revoked.size(), 1u);
  EXPECT_THAT(revoked[0].reason, HasSubstr("built again"));
  const auto again = Grants(1);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].attempt, 1) << "the same attempt";
  Build(1, again[0]);
  EXPECT_EQ(Grants(2).at(0).attempt, 1);
}

/// A cache that holds two of the artifacts below.
class SmallCacheTest : public BuildLeaseTest {
 protected:
  SmallCacheTest() : BuildLeaseTest({.artifact_cache_bytes = 2 * 540}) {}
};

TEST_F(SmallCacheTest, AnEvictedArtifactIsBuiltAgainUnderTheSameAttempt) {
  const proto::Grant run = GrantToRun();
  Submit(2, {"t2"});
  const proto::Grant second = Grants(1).at(0);
  EXPECT_THAT(second.wanted, ElementsAre(0));
  Build(1, second);  // the first one's code goes
  Heard<proto::Grant>(2);
  Say(2, proto::Fetch{run.token, run.artifacts[0].sha256, 0});
  EXPECT_THAT(Heard<proto::ArtifactChunk>(2), IsEmpty());
  EXPECT_EQ(farm_->counters().artifacts_gone, 1);
  EXPECT_EQ(store_.at(run.token).state, db::LeaseState::kReturned);
  const auto again = Grants(1);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].attempt, 1);
  EXPECT_TRUE(results_.empty());
}

/// One that holds less than an attempt needs.
class TinyCacheTest : public BuildLeaseTest {
 protected:
  TinyCacheTest() : BuildLeaseTest({.artifact_cache_bytes = 100}) {}
};

TEST_F(TinyCacheTest, WhatNeverFitsEndsTheAttempt) {
  Connect(1, "builder", WorkerRole::kBuild, 1000);
  Connect(2, "runner", WorkerRole::kRun, 4);
  Submit(1, {"t1"});
  for (int i = 0; results_.empty() && i < 100; ++i) {
    const auto grants = Grants(1);
    for (const proto::Grant& grant : grants) Build(1, grant);
    Pass(kMs);
  }
  EXPECT_EQ(results_.at(1).outcome, Outcome::kWorkerLost);
  EXPECT_THAT(results_.at(1).message, HasSubstr("do not fit"));
}

TEST_F(BuildLeaseTest, WhoHasNoPartnerSaysSo) {
  Connect(2, "runner", WorkerRole::kRun, 4);
  ASSERT_EQ(farm_->Devices().size(), 1u);
  EXPECT_THAT(farm_->Devices()[0].reason, HasSubstr("--role build"));
  EXPECT_EQ(farm_->Devices()[0].role, WorkerRole::kRun);
  Connect(1, "builder", WorkerRole::kBuild, 4);
  for (const proto::DeviceInfo& device : farm_->Devices()) EXPECT_EQ(device.reason, "");
  EXPECT_FALSE(farm_->FindDevice(kTarget, "another")) << "a builder is no device";
  EXPECT_TRUE(farm_->FindDevice(kTarget, "class"));
}

TEST_F(BuildLeaseTest, ABuilderCannotSayThatWhatItBuildsWasStarted) {
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Connect(2, "runner", WorkerRole::kRun, 4);
  Submit(1, {"t1"});
  for (int round = 0; round < 4; ++round) {
    const auto grants = Grants(1);
    ASSERT_EQ(grants.size(), 1u) << round;
    const Hash128 token = grants[0].token;
    Say(1, proto::Started{token});
    Say(1, proto::Heartbeat{.held = {{token, true}}});
    farm_->OnGone(1, now_ns_);
    Connect(1, "builder", WorkerRole::kBuild, 4, {{token, true}});
    // Its end counts as nobody's failure.
    farm_->OnGone(1, now_ns_);
    Pass(policy_.lost_after_ns + kMs);
    EXPECT_EQ(store_.at(token).state, db::LeaseState::kLost);
    Connect(1, "builder", WorkerRole::kBuild, 4);
    Connect(2, "runner", WorkerRole::kRun, 4);
    Pass(20'000 * kMs);
  }
  EXPECT_EQ(farm_->counters().condemned, 0);
  EXPECT_TRUE(results_.empty());
}

TEST_F(BuildLeaseTest, ABuilderHasNoWordOnWhatOnlyRunningShows) {
  Connect(1, "builder", WorkerRole::kBuild, 4);
  Connect(2, "runner", WorkerRole::kRun, 4);
  Submit(1, {"t1"});
  proto::WorkResult crashed{.token = Grants(1).at(0).token, .outcome = Outcome::kRunCrashed};
  Say(1, crashed);
  EXPECT_EQ(VerdictOf(1), proto::Verdict::kInvalid);
  ExpectRefused(1, crashed.token, "run_crashed");
  // The same of an artifact.
  Pass(1000 * kMs);
  const auto grants = Grants(1);
  ASSERT_EQ(grants.size(), 1u);
  proto::Built built{.token = grants[0].token, .artifacts = {}, .build_ns = 7};
  built.artifacts.assign(grants[0].wanted.size(), {.outcome = Outcome::kWrongAnswer});
  Say(1, built);
  EXPECT_EQ(store_.at(built.token).state, db::LeaseState::kReturned);
  EXPECT_EQ(farm_->counters().artifacts_refused, 2);
  EXPECT_TRUE(results_.empty());
}

}  // namespace
}  // namespace hone::server
