#include "server/farm.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "tests/server/farm_harness.h"

// Rules of scheduling, deadlines and faults, on simulated devices.
namespace hone::server {
namespace {

using measure::Outcome;
constexpr int64_t kMs = FarmHarness::kMs;
constexpr int64_t kSecond = FarmHarness::kSecond;
constexpr int64_t kMinute = 60 * kSecond;
constexpr int64_t kRunLimit = 10 * kSecond;

proto::WorkResult Ok(int64_t ns) {
  proto::WorkResult result{.outcome = Outcome::kOk};
  result.samples_ns = {ns};
  return result;
}
proto::WorkResult Failed(Outcome outcome) { return {.outcome = outcome, .message = "it failed"}; }

double Ratio(int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

/// Two projects of share 2 and 1 whose runs differ in length, by session.
class FairShareTest : public ::testing::Test {
 protected:
  FairShareTest() : farm_({{"heavy", 2, 0}, {"light", 1, 0}}) {
    for (const char* name : {"w1", "w2", "w3"}) {
      farm_.AddDevice(name).run = [this](const proto::Grant& grant) {
        const bool heavy = grant.session == HashBytes("h");
        return std::pair{random_.Between(heavy ? 20 : 100, heavy ? 80 : 400) * kMs, Ok(1000)};
      };
    }
  }
  Random random_{1};
  FarmHarness farm_;
};

TEST_F(FairShareTest, DeviceTimeGoesByShareOverHalfAnHour) {
  auto& heavy = farm_.AddSession("h", "heavy", 20);
  auto& light = farm_.AddSession("l", "light", 20);
  farm_.RunFor(30 * kMinute);
  EXPECT_NEAR(Ratio(farm_.BusyNs(heavy), farm_.BusyNs(light)), 2.0, 0.2);
  // And nothing stood idle.
  EXPECT_GT(farm_.BusyNs(heavy) + farm_.BusyNs(light), 3 * 26 * kMinute);
  EXPECT_EQ(farm_.farm.charged_ns("heavy"), [&] {
    int64_t sum = 0;
    for (const auto& [number, result] : heavy.results) sum += result.run_ns;
    return sum;
  }());
}

TEST_F(FairShareTest, AnIdleShareIsLentAndNotSavedUp) {
  auto& light = farm_.AddSession("l", "light", 20);
  farm_.RunFor(10 * kMinute);
  EXPECT_GT(farm_.BusyNs(light), 3 * 9 * kMinute) << "it had everything";
  const int64_t before = farm_.BusyNs(light);
  auto& heavy = farm_.AddSession("h", "heavy", 20);
  farm_.RunFor(10 * kMinute);
  EXPECT_NEAR(Ratio(farm_.BusyNs(heavy), farm_.BusyNs(light) - before), 2.0, 0.2)
      << "it pays nothing back";
}

TEST_F(FairShareTest, ANewSessionGetsItsFirstLeaseWithinOneRunLimit) {
  auto& heavy = farm_.AddSession("h", "heavy", 50);
  farm_.RunFor(5 * kMinute);
  const int64_t came_ns = farm_.now_ns;
  auto& other = farm_.AddSession("l", "light", 5);
  auto& same = farm_.AddSession("h2", "heavy", 5);
  farm_.RunFor(kRunLimit);
  for (const auto* asker : {&other, &same}) {
    ASSERT_GE(asker->first_grant_ns, 0);
    EXPECT_LE(asker->first_grant_ns - came_ns, kRunLimit);
  }
  EXPECT_GT(heavy.results.size(), 0u);
}

TEST(FarmDeadlineTest, RunningLeasesAreRevokedAndNothingBeginsAfterwards) {
  FarmHarness farm;
  auto& device = farm.AddDevice("w1");
  device.run = [](const proto::Grant&) { return std::pair{8 * kSecond, Ok(1000)}; };
  auto& asker = farm.AddSession("s", "p", 6);
  farm.farm.SetDeadline(asker.id, 20 * kSecond);
  farm.RunFor(25 * kSecond);
  // Two were measured, the third was running; no run limit later all is over.
  EXPECT_EQ(device.killed, 1);
  EXPECT_LE(farm.BusyNs(asker), 20 * kSecond + 200 * kMs);
  EXPECT_EQ(farm.farm.open_leases(), 0);
  int measured = 0;
  for (const auto& [number, result] : asker.results) {
    measured += result.outcome == Outcome::kOk;
    EXPECT_TRUE(result.outcome == Outcome::kOk || result.outcome == Outcome::kWorkerLost);
  }
  EXPECT_EQ(measured, 2);
  EXPECT_EQ(farm.farm.charged_ns("p"), 16 * kSecond) << "what was revoked costs nothing";
}

TEST(FarmFaultTest, ADeviceThatFailsOnTwoCandidatesGoodElsewhereIsQuarantined) {
  FarmHarness farm;
  auto& good = farm.AddDevice("good");
  auto& bad = farm.AddDevice("bad");
  int failures = 0;
  bool broken = true;
  bad.run = [&](const proto::Grant&) {
    failures += broken;
    return std::pair{50 * kMs, broken ? Failed(Outcome::kWrongAnswer) : Ok(1000)};
  };
  auto& asker = farm.AddSession("s", "p", 10);
  farm.RunFor(5 * kSecond);
  for (const auto& [number, result] : asker.results) {
    EXPECT_EQ(result.outcome, Outcome::kOk) << "no candidate suffers for the device";
  }
  EXPECT_LE(failures, 15);
  EXPECT_GT(good.granted, 20);
  bool durable = false, audited = false;
  for (const db::FarmChange& change : farm.changes) {
    if (const auto* put = std::get_if<db::PutFarmDevice>(&change)) {
      durable |= put->device.worker == "bad" && put->device.state == DeviceState::kQuarantined &&
                 put->device.reason.find("wrong") != std::string::npos;
    }
    if (const auto* audit = std::get_if<db::FarmAudit>(&change)) {
      audited |= audit->action == "quarantine" && audit->subject == "bad/cpu:0";
    }
  }
  EXPECT_TRUE(durable);
  EXPECT_TRUE(audited);
  EXPECT_TRUE(bad.queue.empty()) << "what it held went elsewhere";
  EXPECT_EQ(farm.farm.counters().quarantined, 1);
  // A person lets it back.
  const int64_t before = bad.granted;
  ASSERT_TRUE(
      farm.farm.SetDevice("bad", "cpu:0", DeviceTrigger::kUndrain, "by admin", farm.now_ns).ok());
  broken = false;
  farm.RunFor(2 * kSecond);
  EXPECT_GT(bad.granted, before);
}

TEST(FarmFaultTest, ACandidateThatFailsEverywhereIsAtFaultItself) {
  FarmHarness farm;
  for (const char* name : {"w1", "w2"}) {
    farm.AddDevice(name).run = [](const proto::Grant& grant) {
      const bool third = grant.attempt % 3 == 0;
      return std::pair{50 * kMs, third ? Failed(Outcome::kRunCrashed) : Ok(1000)};
    };
  }
  auto& asker = farm.AddSession("s", "p", 6);
  farm.RunFor(5 * kSecond);
  int64_t charged = 0;
  for (const auto& [number, result] : asker.results) {
    EXPECT_EQ(result.outcome, number % 3 == 0 ? Outcome::kRunCrashed : Outcome::kOk);
    charged += result.run_ns;
  }
  EXPECT_GT(asker.results.size(), 20u);
  EXPECT_EQ(farm.farm.counters().quarantined, 0);
  EXPECT_EQ(farm.farm.charged_ns("p"), charged) << "the first try costs the session nothing";
}

TEST(FarmFaultTest, WithOneDeviceItsWordCounts) {
  FarmHarness farm;
  farm.AddDevice("w1").run = [](const proto::Grant&) {
    return std::pair{50 * kMs, Failed(Outcome::kRunCrashed)};
  };
  auto& asker = farm.AddSession("s", "p", 2);
  farm.RunFor(kSecond);
  EXPECT_GT(asker.results.size(), 5u);
}

TEST(FarmFaultTest, AnInfrastructureFaultGoesElsewhereAtNobodysCost) {
  FarmHarness farm;
  auto& broken = farm.AddDevice("broken");
  farm.AddDevice("whole");
  std::map<int64_t, int> tries;
  broken.run = [&](const proto::Grant& grant) {
    ++tries[grant.attempt];
    return std::pair{10 * kMs, Failed(Outcome::kWorkerLost)};
  };
  auto& asker = farm.AddSession("s", "p", 8);
  farm.RunFor(10 * kSecond);
  EXPECT_GT(asker.results.size(), 50u);
  for (const auto& [number, result] : asker.results) EXPECT_EQ(result.outcome, Outcome::kOk);
  for (const auto& [number, count] : tries) EXPECT_EQ(count, 1) << "it never comes back to it";
  EXPECT_EQ(farm.farm.charged_ns("p"), static_cast<int64_t>(asker.results.size()) * 50 * kMs);
}

TEST(FarmFaultTest, AResultFasterThanPossibleIsMeasuredElsewhereBeforeItCounts) {
  FarmHarness farm;
  auto& honest = farm.AddDevice("honest");
  auto& liar = farm.AddDevice("liar");
  honest.run = [](const proto::Grant&) { return std::pair{50 * kMs, Ok(1000)}; };
  liar.run = [](const proto::Grant&) { return std::pair{50 * kMs, Ok(500)}; };
  auto& asker = farm.AddSession("s", "p", 0);
  asker.fastest_ns = 800;
  asker.backlog = 10;
  farm.RunFor(5 * kSecond);
  for (const auto& [number, result] : asker.results) {
    EXPECT_EQ(result.samples_ns.front(), 1000) << number;
  }
  EXPECT_EQ(farm.farm.counters().quarantined, 1);
  // What both say is believed.
  FarmHarness fast;
  for (const char* name : {"w1", "w2"}) {
    fast.AddDevice(name).run = [](const proto::Grant&) { return std::pair{50 * kMs, Ok(600)}; };
  }
  auto& both = fast.AddSession("s", "p", 0);
  both.fastest_ns = 800;
  both.backlog = 10;
  fast.RunFor(5 * kSecond);
  EXPECT_GT(both.results.size(), 20u);
  EXPECT_EQ(both.results.front().second.samples_ns.front(), 600);
  EXPECT_EQ(fast.farm.counters().quarantined, 0);
}

TEST(FarmFaultTest, ADeviceWhoseSentinelDriftsIsAClassOfItsOwnAndSaysSo) {
  FarmHarness farm;
  auto& a = farm.AddDevice("a");
  auto& b = farm.AddDevice("b");
  auto& c = farm.AddDevice("c");
  auto& asker = farm.AddSession("s", "p", 9);
  farm.Heartbeat(a, 1000);
  farm.Heartbeat(b, 1010);
  farm.Heartbeat(c, 1050);
  farm.RunFor(2 * kSecond);
  const int64_t drifted = c.granted;
  farm.RunFor(5 * kSecond);
  EXPECT_EQ(c.granted, drifted) << "its times are another class's";
  EXPECT_GT(asker.results.size(), 100u);
  for (const proto::DeviceInfo& info : farm.farm.Devices()) {
    if (info.worker != "c") continue;
    EXPECT_NE(info.reason.find("4.0 %"), std::string::npos) << info.reason;
  }
  EXPECT_EQ(farm.farm.FindDevice(FarmHarness::kTarget, "")->device_class, "class");
  EXPECT_TRUE(farm.farm.FindDevice(FarmHarness::kTarget, "class as c/cpu:0").has_value());
  farm.Heartbeat(c, 1020);
  farm.RunFor(kSecond);
  EXPECT_GT(c.granted, drifted) << "it agrees again";
}

TEST(FarmFaultTest, ASessionOfADriftedDevicesOwnClassIsServedWhoeverElseIsThere) {
  FarmHarness farm;
  auto& a = farm.AddDevice("a");
  auto& b = farm.AddDevice("b");
  auto& c = farm.AddDevice("c");
  farm.Heartbeat(a, 1000);
  farm.Heartbeat(b, 1010);
  farm.Heartbeat(c, 1050);
  auto& own = farm.AddSession("own", "p", 5, "class as c/cpu:0");
  auto& other = farm.AddSession("other", "p", 0);
  farm.RunFor(kSecond);
  ASSERT_GT(own.results.size(), 10u);
  const auto stays_drifted = [&] {
    return farm.farm.FindDevice(FarmHarness::kTarget, "class")->device_class;
  };
  EXPECT_EQ(stays_drifted(), "class");
  // Alone it is its class's median.
  for (auto* device : {&a, &b}) farm.farm.OnGone(device->stream, farm.now_ns);
  const size_t before = own.results.size();
  const int64_t others = c.granted;
  farm.RunFor(kSecond);
  EXPECT_GT(own.results.size(), before + 10);
  EXPECT_EQ(farm.farm.FindDevice(FarmHarness::kTarget, "class as c/cpu:0")->device_class,
            "class as c/cpu:0");
  EXPECT_EQ(farm.farm.Devices().back().reason, "") << "there is nobody to differ from";
  other.backlog = 5;
  farm.RunFor(kSecond);
  EXPECT_GT(other.results.size(), 5u) << "and it serves the class again";
  EXPECT_GT(c.granted, others);
  // The others come back: it is compared at once, not with its next heartbeat.
  farm.Crash(a);
  farm.Crash(b);
  EXPECT_NE(farm.farm.Devices().back().reason, "");
  const size_t shown = own.results.size();
  farm.RunFor(kSecond);
  EXPECT_GT(own.results.size(), shown + 5);
}

TEST(FarmFaultTest, WhatRanAndComesBackWithoutAnAnswerIsAFault) {
  FarmHarness farm;
  auto& device = farm.AddDevice("w1");
  device.run = [](const proto::Grant&) { return std::pair{8 * kSecond, Ok(1000)}; };
  auto& asker = farm.AddSession("s", "p", 1);
  int returned = 0;
  while (asker.results.empty() && farm.now_ns < kMinute) {
    farm.RunFor(50 * kMs);
    if (!device.running) continue;
    ++returned;
    farm.Return(device, "no answer");
  }
  // Later each time, and not for ever.
  EXPECT_EQ(returned, FarmPolicy().max_faults + 1);
  EXPECT_GT(farm.now_ns, 10 * kSecond);
  ASSERT_EQ(asker.results.size(), 1u);
  EXPECT_EQ(asker.results[0].second.outcome, Outcome::kWorkerLost);
  EXPECT_EQ(asker.results[0].second.message, "no answer");
  EXPECT_EQ(farm.farm.charged_ns("p"), 0);
  EXPECT_EQ(farm.farm.counters().infrastructure_faults, FarmPolicy().max_faults);
}

TEST(FarmFaultTest, WhatHasNotRunGoesBackUnblamed) {
  FarmHarness farm;
  auto& device = farm.AddDevice("w1");
  farm.AddSession("s", "p", 4);
  ASSERT_EQ(device.queue.size(), 4u);
  farm.farm.OnMessage(device.stream, proto::Returned{device.queue.front().token, "it ends"},
                      farm.now_ns);
  EXPECT_EQ(farm.farm.counters().returned, 1);
  EXPECT_EQ(farm.farm.counters().infrastructure_faults, 0);
}

TEST(FarmFaultTest, AComparisonIsOneLeaseOnOneDevice) {
  FarmHarness farm;
  int comparisons = 0;
  for (const char* name : {"w1", "w2"}) {
    farm.AddDevice(name).run = [&](const proto::Grant& grant) {
      comparisons += grant.job.kind == proto::JobKind::kCompare;
      proto::WorkResult result = Ok(1000);
      if (grant.job.kind == proto::JobKind::kCompare) {
        EXPECT_EQ(grant.job.traces, (std::vector<std::string>{"a", "b", ""}));
        result.samples_ns.clear();
        result.compared.assign(3, {.samples_ns = {1000}});
      }
      return std::pair{50 * kMs, result};
    };
  }
  auto& asker = farm.AddSession("s", "p", 4);
  farm.farm.Submit(asker.id, 1 << 20,
                   {.kind = proto::JobKind::kCompare,
                    .workload = "w",
                    .target = FarmHarness::kTarget,
                    .traces = {"a", "b", ""},
                    .rounds = 5},
                   farm.now_ns);
  ++asker.open;
  farm.RunFor(2 * kSecond);
  EXPECT_EQ(comparisons, 1);
}

TEST(FarmRevokeTest, AWorkerThatIsAwayLosesItsLeasesToo) {
  FarmHarness farm;
  auto& device = farm.AddDevice("w1");
  device.run = [](const proto::Grant&) { return std::pair{8 * kSecond, Ok(1000)}; };
  farm.AddSession("s", "p", 3);
  farm.RunFor(100 * kMs);
  ASSERT_EQ(farm.farm.open_leases(), 3);
  device.running.reset();
  device.queue.clear();
  farm.farm.OnGone(device.stream, farm.now_ns);
  farm.farm.RevokeWorker("w1", farm.now_ns);
  EXPECT_EQ(farm.farm.open_leases(), 0);
  EXPECT_EQ(farm.farm.waiting(), 3) << "nobody is blamed";
  EXPECT_EQ(farm.farm.counters().revoked, 3);
}

TEST(FarmRevokeTest, AnExpiredStreamEndsAlone) {
  FarmHarness farm;
  auto& first = farm.AddDevice("w1");
  proto::Hello hello{.protocol = 1, .builder_version = "b", .measurement_policy = 1};
  hello.instance = {9, 99};
  hello.device = {.name = "cpu:1", .device_class = "class", .fingerprint = "f"};
  hello.device.target = FarmHarness::kTarget;
  hello.device.cores = 1;
  constexpr StreamId kSecondStream = 2;
  farm.devices.emplace_back().stream = kSecondStream;
  farm.devices.back().run = first.run;
  farm.farm.OnHello(kSecondStream, "w1", hello, farm.now_ns);
  farm.farm.OnMessage(kSecondStream, proto::WorkerCredit{4}, farm.now_ns);
  farm.AddSession("s", "p", 8);
  farm.RunFor(100 * kMs);
  farm.farm.EndStream(first.stream, absl::UnauthenticatedError("expired"), farm.now_ns);
  const FarmStep step = farm.farm.Take();
  ASSERT_EQ(step.closings.size(), 1u);
  EXPECT_EQ(step.closings[0].stream, first.stream);
  for (const proto::DeviceInfo& info : farm.farm.Devices()) {
    EXPECT_EQ(info.connected, info.device.name == "cpu:1");
    EXPECT_EQ(info.leases > 0, info.connected) << info.device.name;
  }
}

TEST(FarmBoundsTest, AWorkersNameHasSoManyDevicesAndNoMore) {
  FarmHarness farm;
  const size_t most = FarmPolicy().max_devices;
  for (size_t i = 0; i <= most + 1; ++i) {
    proto::Hello hello{.protocol = 1, .builder_version = "b", .measurement_policy = 1};
    hello.instance = {9, i + 1};
    hello.device = {.name = "cpu:" + std::to_string(i), .target = FarmHarness::kTarget, .cores = 1};
    farm.farm.OnHello(static_cast<StreamId>(i), i > most ? "w2" : "w1", hello, farm.now_ns);
    const FarmStep step = farm.farm.Take();
    ASSERT_EQ(step.closings.size(), i == most ? 1u : 0u) << i;
  }
  EXPECT_EQ(farm.farm.Devices().size(), most + 1);
}

TEST(FarmChargeTest, NoMoreTimeIsChargedThanPassed) {
  FarmHarness farm;
  auto& liar = farm.AddDevice("liar");
  auto& asker = farm.AddSession("s", "p", 1);
  const int64_t day_ns = 24 * 60 * kMinute;
  farm.RunFor(10 * kMs);
  ASSERT_TRUE(liar.running);
  liar.result->run_ns = day_ns;
  liar.result->build_ns = 365 * day_ns;
  asker.backlog = 0;
  farm.RunFor(kSecond);
  ASSERT_EQ(asker.results.size(), 1u);
  EXPECT_LE(farm.farm.charged_ns("p"), 200 * kMs);
  EXPECT_GE(farm.farm.charged_ns("p"), 50 * kMs);
  // Nor told to the session; its one core cannot have built for longer either.
  EXPECT_EQ(asker.results[0].second.run_ns, farm.farm.charged_ns("p"));
  EXPECT_LE(asker.results[0].second.build_ns, 200 * kMs);
  EXPECT_GE(asker.results[0].second.build_ns, 50 * kMs);
  // Samples that cannot have been taken since the grant are no answer at all.
  liar.run = [&](const proto::Grant&) { return std::pair{50 * kMs, Ok(kMinute)}; };
  asker.backlog = 1;
  farm.RunFor(kSecond);
  EXPECT_EQ(asker.results.size(), 1u);
  EXPECT_GT(farm.farm.counters().invalid, 0);
}

TEST(FarmUnseenTest, ADeviceOfAnEarlierStartIsDrainedAndLetBack) {
  FarmHarness farm;
  db::FarmState before;
  before.devices = {{"away", "cpu:0", DeviceState::kQuarantined, "it was wrong"}};
  farm.farm.Restore(before, farm.now_ns);
  const auto set = [&](DeviceTrigger event) {
    return farm.farm.SetDevice("away", "cpu:0", event, "by admin", farm.now_ns);
  };
  const auto stored = [&] {
    const FarmStep step = farm.farm.Take();
    EXPECT_EQ(step.changes.size(), 1u);
    return std::get<db::PutFarmDevice>(step.changes.at(0)).device;
  };
  EXPECT_EQ(set(DeviceTrigger::kDrain).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(set(DeviceTrigger::kUndrain).ok());
  EXPECT_EQ(stored(), (db::FarmDevice{"away", "cpu:0", DeviceState::kActive, ""}));
  ASSERT_TRUE(set(DeviceTrigger::kDrain).ok());
  EXPECT_EQ(stored(), (db::FarmDevice{"away", "cpu:0", DeviceState::kDrained, "by admin"}));
  farm.AddDevice("away");
  EXPECT_EQ(farm.farm.Devices().at(0).state, DeviceState::kDrained);
  EXPECT_EQ(farm.farm.SetDevice("nobody", "cpu:0", DeviceTrigger::kUndrain, "", 0).code(),
            absl::StatusCode::kNotFound);
}

TEST(FarmCreditTest, AnAbsurdCreditOverflowsNothing) {
  FarmHarness farm;
  for (const char* name : {"w1", "w2", "w3"}) {
    farm.farm.OnMessage(farm.AddDevice(name).stream, proto::WorkerCredit{INT64_MAX}, farm.now_ns);
  }
  const auto& asker = farm.AddSession("s", "p", 0);
  EXPECT_EQ(farm.farm.CapacityFor(asker.id), 4096);
}

TEST(FarmGrantTest, ANewGrantGoesToTheLeastLoadedDevice) {
  FarmHarness farm;
  for (const char* name : {"a", "b", "c"}) farm.AddDevice(name);
  // One at a time: whoever was served longest ago is next, not always the first by name.
  auto& asker = farm.AddSession("s", "p", 1);
  farm.RunFor(6 * kSecond);
  EXPECT_GT(asker.results.size(), 50u);
  int64_t most = 0, least = INT64_MAX;
  for (const auto& device : farm.devices) {
    most = std::max(most, device.granted);
    least = std::min(least, device.granted);
  }
  EXPECT_LE(most - least, 1);
  // One has long work to do: the others get what comes.
  farm.devices[0].run = [](const proto::Grant&) { return std::pair{8 * kSecond, Ok(1000)}; };
  asker.backlog = 3;
  farm.RunFor(kSecond);
  const int64_t before = farm.devices[0].granted;
  farm.RunFor(5 * kSecond);
  EXPECT_EQ(farm.devices[0].granted, before);
  EXPECT_LE(std::abs(farm.devices[1].granted - farm.devices[2].granted), 2);
}

TEST(FarmDropTest, WhatNobodyHasBegunIsDropped) {
  FarmHarness farm;
  auto& device = farm.AddDevice("w1");
  device.run = [](const proto::Grant&) { return std::pair{kSecond, Ok(1000)}; };
  auto& asker = farm.AddSession("s", "p", 12);
  farm.RunFor(500 * kMs);
  asker.backlog = 0;
  EXPECT_EQ(farm.farm.DropWaiting(asker.id, 1 << 20, farm.now_ns), 11) << "one runs";
  farm.RunFor(5 * kSecond);
  EXPECT_EQ(asker.results.size(), 1u);
  EXPECT_EQ(farm.farm.open_leases(), 0);
  EXPECT_EQ(device.killed, 0);
}

}  // namespace
}  // namespace hone::server
