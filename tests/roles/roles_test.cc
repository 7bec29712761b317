#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/core/random.h"
#include "base/core/sanitizer.h"
#include "tests/farm/tuned_farm.h"

// Machines that build for others and machines that run what others built, as real programs.
namespace hone::farm {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNsPerMs = 1'000'000;

class RolesTest : public TunedFarm {
 protected:
  explicit RolesTest(std::vector<std::string> workers = {"b1", "r1"})
      : TunedFarm(std::move(workers)) {}

  Daemon Worker(const std::string& name, const std::string& role) const {
    std::vector<std::string> argv = farm_.WorkerArgv(name);
    argv.push_back("--role");
    argv.push_back(role);
    return Daemon(name, argv, farm_.Path(name + ".log"));
  }
  nlohmann::json Devices() const {
    const Ran ran = RunToEnd(Hone({"device", "list", "--json"}));
    EXPECT_EQ(ran.code, 0) << ran.err;
    const auto json = nlohmann::json::parse(ran.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << ran.out;
    return json.is_discarded() ? nlohmann::json() : json.at("devices");
  }
};

TEST_F(RolesTest, OneBuildsAndTheOtherRuns) {
  Daemon honed("honed", farm_.HonedArgv(), farm_.Path("honed.log"));
  Daemon builder = Worker("b1", "build");
  Daemon runner = Worker("r1", "run");
  honed.Start();
  runner.Start();
  ASSERT_TRUE(Eventually([&] { return Devices().size() == 1; }));
  EXPECT_THAT(Devices()[0]["reason"], HasSubstr("nobody builds for it"));
  builder.Start();
  ASSERT_TRUE(KeepTuning());
  AwaitSession();
  const nlohmann::json devices = Devices();
  ASSERT_EQ(devices.size(), 2u) << devices;
  EXPECT_EQ(devices[0]["role"], "build");
  EXPECT_EQ(devices[0]["device"], "build:0");
  EXPECT_EQ(devices[1]["role"], "run");
  EXPECT_EQ(devices[1]["reason"], "");
  EXPECT_GT(devices[0]["results"], 10);
  EXPECT_GT(devices[1]["busy_seconds"], 0.0);
  CheckPackages(honed, {&builder, &runner});
  CheckLog(0);
}

class KilledRolesTest : public RolesTest {
 protected:
  KilledRolesTest() : RolesTest({"b1", "b2", "r1"}) {}
};

TEST_F(KilledRolesTest, NothingIsLostWhoeverIsKilled) {
  Random random(seed_);
  Daemon honed("honed", farm_.HonedArgv(), farm_.Path("honed.log"));
  Daemon b1 = Worker("b1", "build"), b2 = Worker("b2", "build"), r1 = Worker("r1", "run");
  for (Daemon* daemon : {&honed, &b1, &b2, &r1}) daemon->Start();
  constexpr int kKills = 12;
  for (int i = 0; i < kKills; ++i) {
    ASSERT_TRUE(KeepTuning());
    clock_.SleepNs(random.Between(200, 700) * kNsPerMs);
    Daemon* const victims[] = {&honed, &b1, &b2, &r1};
    Daemon* const victim = victims[i % 4];
    ASSERT_FALSE(victim->Ended().has_value()) << victim->name() << ": " << victim->Said();
    victim->Kill();
    clock_.SleepNs(random.Between(0, 100) * kNsPerMs);
    victim->Start();
  }
  AwaitSession();
  CheckPackages(honed, {&b1, &b2, &r1});
  CheckLog(static_cast<size_t>(kKills * 12));
}

// The steps of children are reached in these roles too, and each may be the last of its child.
TEST_F(RolesTest, ChildrenOfEitherMayDieAtEachStep) {
  // As in LabelledKillTest: no worker says where a child died.
  if (kSanitized) GTEST_SKIP() << "a child that SIGKILL ends is out of memory in this build";
  Daemon honed("honed", farm_.HonedArgv(), farm_.Path("honed.log"));
  Daemon builder = Worker("b1", "build"), runner = Worker("r1", "run");
  honed.Start();
  builder.Start({"--test-kill", "builder.compiling:2", "--test-kill", "builder.compiled:4"});
  runner.Start({"--test-kill", "runner.loading:1", "--test-kill", "runner.ran:3", "--test-kill",
                "runner.timing:5"});
  const auto died = [](const Daemon& daemon, const std::string& step) {
    return daemon.Said().find("killed at " + step) != std::string::npos;
  };
  EXPECT_TRUE(Eventually(
      [&] {
        return KeepTuning() && died(builder, "builder.compiling") &&
               died(builder, "builder.compiled") && died(runner, "runner.loading") &&
               died(runner, "runner.ran") && died(runner, "runner.timing");
      },
      60'000'000'000))
      << builder.Said() << runner.Said();
  AwaitSession();
  CheckPackages(honed, {&builder, &runner});
  CheckLog(0);
}

TEST_F(RolesTest, AnUnknownRoleIsRefused) {
  std::vector<std::string> argv = farm_.WorkerArgv("b1");
  for (const char* word : {"--role", "sleep"}) argv.emplace_back(word);
  const Ran ran = RunToEnd(argv);
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("both, build or run, not 'sleep'"));
}

}  // namespace
}  // namespace hone::farm
