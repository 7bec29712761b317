#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/core/clock.h"
#include "tests/farm/expired_credentials.h"
#include "tests/farm/farm_processes.h"
#include "tests/farm/unchecked_call.h"

// Who may connect, with real programs.
namespace hone::farm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int kExitUsage = 2;
constexpr int kExitServer = 6;

class IdentityTest : public ::testing::Test {
 protected:
  IdentityTest() : honed_("honed", farm_.HonedArgv(), farm_.Path("honed.log")) {
    farm_.Issue("submit", "alice");
    farm_.Issue("measure", "w1");
    farm_.Issue("admin", "root");
    honed_.Start();
    // It answers from here on.
    EXPECT_EQ(List("alice").code, 0) << honed_.Said();
  }

  Ran Hone(std::vector<std::string> words, const std::string& who) const {
    words.insert(words.begin(), Program("hone"));
    for (const std::string& word : farm_.ServerWords(who)) words.push_back(word);
    return RunToEnd(words);
  }
  Ran List(const std::string& who) const { return Hone({"session", "list"}, who); }
  nlohmann::json Devices() const {
    const Ran ran = Hone({"device", "list", "--json"}, "alice");
    EXPECT_EQ(ran.code, 0) << ran.err;
    return nlohmann::json::parse(ran.out).at("devices");
  }
  bool Eventually(const std::function<bool()>& holds) const {
    for (int i = 0; i < 200; ++i) {
      if (holds()) return true;
      clock_.SleepNs(50 * kNsPerMs);
    }
    return false;
  }

  FarmFolder farm_;
  Daemon honed_;
  const SystemMonotonicClock clock_;
};

TEST_F(IdentityTest, OnlyTheRightRoleOfTheRightAuthorityIsServed) {
  const auto call = [&](const std::string& who, const std::string& method) {
    return CallUnchecked(farm_.Address(), farm_.Path(who), farm_.Path(who), method);
  };
  const absl::Status worker = call("w1", "/hone.v1.Tuning/ListSessions");
  EXPECT_EQ(worker.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(worker.message()),
              HasSubstr("spiffe://hone/measure/w1 may not do this; it takes the role"));
  const Ran drain = Hone({"device", "drain", "w1/cpu:0"}, "alice");
  EXPECT_EQ(drain.code, kExitServer);
  EXPECT_THAT(drain.err, HasSubstr("it takes the role admin"));
  // A client's certificate does not make a worker, neither for honed nor for the worker.
  const absl::Status posing = call("alice", "/hone.v1.Workers/Work");
  EXPECT_EQ(posing.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(posing.message()), HasSubstr("it takes the role measure"));
  const Ran posed = RunToEnd(farm_.WorkerArgv("alice"));
  EXPECT_EQ(posed.code, kExitUsage);
  EXPECT_THAT(posed.err, HasSubstr("it takes the role measure"));
}

TEST_F(IdentityTest, ExpiredStrangersAndKeysThatOthersReadAreRefused) {
  IssueExpired(farm_, CallerRole::kSubmit, "old");
  const Ran expired = List("old");
  EXPECT_EQ(expired.code, kExitServer) << expired.err;
  const FarmFolder other;
  other.Issue("submit", "mallory");
  const Ran stranger = RunToEnd({Program("hone"), "session", "list", "--server", farm_.Address(),
                                 "--tls", other.Path("mallory")});
  EXPECT_EQ(stranger.code, kExitServer) << stranger.err;
  EXPECT_THAT(stranger.err, HasSubstr("certificates"));
  std::filesystem::permissions(farm_.Path("alice") + "/key.pem", std::filesystem::perms::group_read,
                               std::filesystem::perm_options::add);
  const Ran open = List("alice");
  EXPECT_NE(open.code, 0);
  EXPECT_THAT(open.err, HasSubstr("chmod 600"));
}

TEST_F(IdentityTest, ARevokedWorkerIsCutOffAndStaysOut) {
  Daemon w1("w1", farm_.WorkerArgv("w1"), farm_.Path("w1.log"));
  w1.Start();
  ASSERT_TRUE(Eventually([&] {
    const auto devices = Devices();
    return !devices.empty() && devices[0]["connected"] == true;
  })) << w1.Said();
  // The authority's folder says which role w1 has.
  const Ran revoked =
      RunToEnd({Program("honed"), "revoke", "w1", "--ca", farm_.Path("ca"), "--server",
                farm_.Address(), "--tls", farm_.Path("root"), "--config", "/dev/null"});
  EXPECT_EQ(revoked.code, 0) << revoked.err;
  EXPECT_THAT(revoked.out, HasSubstr("spiffe://hone/measure/w1 is refused"));
  EXPECT_TRUE(Eventually([&] { return w1.Ended().has_value(); })) << w1.Said();
  EXPECT_THAT(w1.Said(), HasSubstr("revoked"));
  EXPECT_EQ(Devices()[0]["connected"], false);
  // Also after a restart of honed.
  honed_.Kill();
  honed_.Start();
  EXPECT_EQ(List("alice").code, 0);
  const Ran again = RunToEnd(farm_.WorkerArgv("w1"));
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("was revoked"));
}

TEST_F(IdentityTest, ASecondLiveWorkerOfOneNameIsRefusedAndADrainedOneGetsNothing) {
  Daemon w1("w1", farm_.WorkerArgv("w1"), farm_.Path("w1.log"));
  w1.Start();
  ASSERT_TRUE(Eventually([&] { return !Devices().empty(); }));
  Daemon twin("twin", farm_.WorkerArgv("w1"), farm_.Path("twin.log"));
  twin.Start();
  EXPECT_TRUE(Eventually([&] {
    return twin.Said().find("another live process is worker 'w1'") != std::string::npos;
  })) << twin.Said();
  EXPECT_EQ(Devices().size(), 1u);
  const Ran drained = Hone({"device", "drain", "w1/cpu:0"}, "root");
  EXPECT_EQ(drained.code, 0) << drained.err;
  EXPECT_TRUE(Eventually([&] { return Devices()[0]["state"] == "drained"; }));
  // The beginning of its name is enough where no other begins so.
  const Ran nobody = Hone({"device", "undrain", "x"}, "root");
  EXPECT_EQ(nobody.code, kExitUsage);
  EXPECT_THAT(nobody.err, HasSubstr("no device begins with \"x\""));
  EXPECT_EQ(Hone({"device", "undrain", "w"}, "root").code, 0);
  EXPECT_EQ(Devices()[0]["state"], "active");
  EXPECT_EQ(w1.Terminate(), 0) << w1.Said();
}

TEST_F(IdentityTest, PlaintextAtAServerOfTlsNamesTheFlag) {
  const Ran asked = RunToEnd(
      {Program("hone"), "session", "list", "--server", farm_.Address(), "--insecure-loopback"});
  EXPECT_EQ(asked.code, kExitServer);
  EXPECT_THAT(asked.err, HasSubstr("leave --insecure-loopback away"));
  EXPECT_THAT(asked.err, Not(HasSubstr("caller_refused"))) << "it says nothing of it";
}

TEST(Plaintext, IsForLoopbackAlone) {
  const FarmFolder farm;
  const Ran served = RunToEnd({Program("honed"), "--db", farm.LogPath(), "--listen", "0.0.0.0:0",
                               "--insecure-loopback", "--config", "/dev/null"});
  EXPECT_NE(served.code, 0);
  EXPECT_THAT(served.err, HasSubstr("plaintext is for loopback alone"));
}

}  // namespace
}  // namespace hone::farm
