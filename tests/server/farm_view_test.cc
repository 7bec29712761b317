#include "server/farm_view.h"

#include "tests/server/build_lease_harness.h"

// What metrics and the page are told of a Farm.
namespace hone::server {
namespace {

using proto::WorkerRole;

class FarmViewTest : public BuildLeaseTest {
 protected:
  OpenSessionView Open() const { return farm_->View(now_ns_).sessions.at(kSession); }
};

TEST_F(FarmViewTest, ASessionSaysWhatItWaitsFor) {
  EXPECT_EQ(Open().waits, "waiting for a device that can run it");
  Connect(1, "b1", WorkerRole::kBuild, 4);
  EXPECT_EQ(Open().waits, "waiting for a device that can run it");
  Connect(2, "r1", WorkerRole::kRun, 4);
  EXPECT_EQ(Open().waits, "");
  farm_->OnGone(1, now_ns_);
  EXPECT_EQ(Open().waits, "waiting for a worker that builds");
  Connect(3, "w1", WorkerRole::kBoth, 4);
  EXPECT_EQ(Open().waits, "") << "which builds for itself";
  ASSERT_TRUE(farm_->SetDevice("w1", "cpu:0", DeviceTrigger::kDrain, "by a person", now_ns_).ok());
  farm_->OnGone(2, now_ns_);
  EXPECT_EQ(Open().waits, "waiting for a device that can run it") << "that gets work";
}

TEST_F(FarmViewTest, TheTimeToADeadlineIsThatOfTheClock) {
  EXPECT_LT(Open().left_ns, 0) << "it has none";
  farm_->SetDeadline(kSession, now_ns_ + 5'000 * kMs);
  EXPECT_EQ(Open().left_ns, 5'000 * kMs);
  now_ns_ += 4'000 * kMs;
  EXPECT_EQ(Open().left_ns, 1'000 * kMs) << "whatever is answered";
  now_ns_ += 4'000 * kMs;
  EXPECT_EQ(Open().left_ns, 0);
  farm_->EndSession(kSession, "it is over", now_ns_);
  EXPECT_TRUE(farm_->View(now_ns_).sessions.empty());
}

}  // namespace
}  // namespace hone::server
