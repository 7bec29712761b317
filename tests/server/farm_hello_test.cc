#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/status.h"
#include "tests/server/farm_harness.h"

// Who may work for a farm: the same version of everything, whose mismatch names both sides.
namespace hone::server {
namespace {

using ::testing::HasSubstr;
constexpr int64_t kSecond = FarmHarness::kSecond;

class FarmHelloTest : public ::testing::Test, public LeaseReader {
 protected:
  std::optional<db::FarmLease> FindLease(const Hash128&) override { return std::nullopt; }
  static proto::Hello Good() {
    proto::Hello hello{.protocol = 3,
                       .builder_version = "4+22.1",
                       .measurement_policy = 1,
                       .program_version = "0.9.1"};
    hello.instance = {1, 2};
    hello.device = {.name = "cpu:0",
                    .device_class = "class",
                    .fingerprint = "f",
                    .target = FarmHarness::kTarget,
                    .cores = 1};
    return hello;
  }
  /// Why the stream is ended; ok: the worker is welcome.
  absl::Status Say(const proto::Hello& hello) {
    farm_.OnHello(++stream_, "w1", hello, now_ns_);
    const FarmStep step = farm_.Take();
    for (const Closing& closing : step.closings) {
      if (closing.stream == stream_) return closing.status;
    }
    for (const Outgoing& out : step.messages) {
      if (std::holds_alternative<proto::Welcome>(out.message)) return absl::OkStatus();
    }
    return absl::InternalError("no answer");
  }
  void ExpectRefused(const proto::Hello& hello, const std::string& what, const std::string& theirs,
                     const std::string& ours) {
    const absl::Status status = Say(hello);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << what;
    EXPECT_THAT(StatusMessage(status),
                HasSubstr("worker 'w1' (hone 0.9.1) has " + what + " " + theirs + ", honed has " +
                          ours + "; install the same version of Hone on both"));
    EXPECT_EQ(farm_.counters().refused_workers, 1);
    EXPECT_TRUE(farm_.Devices().empty());
  }

  StreamId stream_ = 0;
  int64_t now_ns_ = 0;
  Farm farm_{{}, {.protocol = 3, .builder = "4+22.1"}, 1, *this};
};

TEST_F(FarmHelloTest, TheSameVersionsAreWelcome) {
  EXPECT_TRUE(Say(Good()).ok());
  EXPECT_EQ(farm_.counters().refused_workers, 0);
}

TEST_F(FarmHelloTest, AnotherProtocolIsRefused) {
  proto::Hello hello = Good();
  hello.protocol = 2;
  ExpectRefused(hello, "protocol", "2", "3");
}

TEST_F(FarmHelloTest, AnotherBuilderIsRefused) {
  proto::Hello hello = Good();
  hello.builder_version = "4+21.0";
  ExpectRefused(hello, "builder", "4+21.0", "4+22.1");
}

TEST_F(FarmHelloTest, AnotherMeasurementPolicyIsRefused) {
  proto::Hello hello = Good();
  hello.measurement_policy = 6;
  ExpectRefused(hello, "measurement policy", "6", "1");
}

TEST_F(FarmHelloTest, WhoOnlyRunsHasNoBuilder) {
  proto::Hello hello = Good();
  hello.role = proto::WorkerRole::kRun;
  hello.builder_version.clear();
  EXPECT_TRUE(Say(hello).ok());
  // But runs and times as others do.
  hello.measurement_policy = 6;
  EXPECT_FALSE(Say(hello).ok());
}

TEST_F(FarmHelloTest, ASecondLiveProcessOfOneNameAndDeviceIsRefused) {
  ASSERT_TRUE(Say(Good()).ok());
  proto::Hello twin = Good();
  twin.instance = {1, 3};
  const absl::Status status = Say(twin);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(StatusMessage(status), HasSubstr("another live process is worker 'w1'"));
  twin.device.name = "cpu:1";
  EXPECT_TRUE(Say(twin).ok()) << "another device";
  EXPECT_TRUE(Say(Good()).ok()) << "the same process on a new stream";
  EXPECT_EQ(farm_.counters().replaced_streams, 1);
  EXPECT_EQ(farm_.counters().refused_workers, 1);
}

TEST_F(FarmHelloTest, ARefusedProcessStaysRefusedWhenTheFirstOnesLinkIsCut) {
  ASSERT_TRUE(Say(Good()).ok());
  const StreamId first = stream_;
  proto::Hello twin = Good();
  twin.instance = {1, 3};
  ASSERT_FALSE(Say(twin).ok());
  farm_.OnGone(first, kSecond);
  now_ns_ = kSecond + kSecond / 20;
  const absl::Status cut = Say(twin);
  EXPECT_EQ(cut.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(StatusMessage(cut), HasSubstr("not heard of for 0 s; after 20 it counts as gone"));
  EXPECT_TRUE(Say(Good()).ok()) << "the first one is back";
  farm_.OnGone(stream_, now_ns_);
  now_ns_ += FarmPolicy().lost_after_ns;
  EXPECT_FALSE(Say(twin).ok());
  now_ns_ += 1;
  EXPECT_TRUE(Say(twin).ok()) << "it has not come back";
  EXPECT_FALSE(Say(Good()).ok()) << "and now it is the first one that waits";
}

TEST_F(FarmHelloTest, AFreshProcessIsTakenWhenTheFirstOnesLinkIsCut) {
  ASSERT_TRUE(Say(Good()).ok());
  farm_.OnGone(stream_, 0);
  proto::Hello next = Good();
  next.instance = {1, 3};
  EXPECT_TRUE(Say(next).ok());
}

TEST_F(FarmHelloTest, OneThatWasRefusedWhileTheFirstDrainedIsItsSuccessor) {
  ASSERT_TRUE(Say(Good()).ok());
  const StreamId first = stream_;
  proto::Hello next = Good();
  next.instance = {1, 3};
  ASSERT_FALSE(Say(next).ok());
  farm_.OnMessage(first, proto::Draining{}, 0);
  ASSERT_FALSE(Say(next).ok());
  farm_.OnGone(first, 0);
  EXPECT_TRUE(Say(next).ok());
}

TEST_F(FarmHelloTest, LabelsAndDriverAreShown) {
  proto::Hello hello = Good();
  hello.labels = {{"rack", "7"}};
  ASSERT_TRUE(Say(hello).ok());
  ASSERT_EQ(farm_.Devices().size(), 1u);
  EXPECT_EQ(farm_.Devices().front().labels, hello.labels);
}

}  // namespace
}  // namespace hone::server
