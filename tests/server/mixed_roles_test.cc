#include "tests/server/build_lease_harness.h"

// A farm in which some workers build, some run and some do both: what one of them may not have,
// another one takes.
namespace hone::server {
namespace {

constexpr StreamId kBuilder = 1, kRunner = 2, kBoth = 3;

class MixedRolesTest : public BuildLeaseTest {
 protected:
  MixedRolesTest() {
    Connect(kBuilder, "builder", proto::WorkerRole::kBuild, 4);
    Connect(kRunner, "runner", proto::WorkerRole::kRun, 4);
    Submit(1, {"t"});
    Build(kBuilder, Grants(kBuilder).at(0));
    grant_ = Grants(kRunner).at(0);
    Say(kRunner, proto::Started{grant_.token});
    Connect(kBoth, "both", proto::WorkerRole::kBoth, 4);
  }
  std::vector<int64_t> GrantedInAMinute(StreamId stream) {
    for (int i = 0; i < 60; ++i) {
      for (const StreamId said : {kBuilder, kRunner, kBoth}) Say(said, proto::Heartbeat{});
      Pass(1000 * kMs);
    }
    std::vector<int64_t> attempts;
    for (const proto::Grant& grant : Grants(stream)) attempts.push_back(grant.attempt);
    return attempts;
  }

  proto::Grant grant_;
};

// It is built, so that it is a run worker's; the only one of these shall not have it.
TEST_F(MixedRolesTest, WhatARunWorkerWasLostWithGoesToOneThatDoesBoth) {
  farm_->OnGone(kRunner, now_ns_);
  proto::Hello hello{.protocol = 1, .builder_version = "", .measurement_policy = 1};
  hello.role = proto::WorkerRole::kRun;
  hello.instance = HashBytes("its next process");
  hello.device = {.name = "cpu:0", .device_class = "class", .fingerprint = "f"};
  hello.device.target = kTarget;
  hello.device.cores = 1;
  farm_->OnHello(kRunner, "runner", hello, now_ns_);
  Say(kRunner, proto::WorkerCredit{4});
  EXPECT_EQ(GrantedInAMinute(kBoth), std::vector<int64_t>{1});
  EXPECT_EQ(farm_->waiting(), 0);
}

TEST_F(MixedRolesTest, WhatHadAFaultOnARunWorkerGoesToOneThatDoesBoth) {
  Say(kRunner, proto::WorkResult{.token = grant_.token, .outcome = measure::Outcome::kWorkerLost});
  EXPECT_EQ(GrantedInAMinute(kBoth), std::vector<int64_t>{1});
}

}  // namespace
}  // namespace hone::server
