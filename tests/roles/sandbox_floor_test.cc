#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "measure/sandbox.h"
#include "tests/farm/tuned_farm.h"
#include "tests/test_paths.h"

// A worker on a machine where candidates cannot be locked up: the kernel refuses seccomp filters.
namespace hone::farm {
namespace {

using ::testing::HasSubstr;

class SandboxFloorTest : public TunedFarm {
 protected:
  SandboxFloorTest() : TunedFarm({"w1"}) {}

  std::vector<std::string> WithoutLandlock(const char* how, const std::string& role) const {
    std::vector<std::string> argv = farm_.WorkerArgv("w1");
    const std::string program = hone::testing::BuildDir() + "/tests/without_landlock";
    argv.insert(argv.begin(), {program, how});
    for (const char* word : {"--role", role.c_str()}) argv.emplace_back(word);
    return argv;
  }
  std::vector<std::string> ArgvOf(const std::string& role, bool unsafe) const {
    std::vector<std::string> argv = farm_.WorkerArgv("w1");
    argv.insert(argv.begin(), hone::testing::BuildDir() + "/tests/without_seccomp");
    for (const char* word : {"--role", role.c_str()}) argv.emplace_back(word);
    if (unsafe) argv.emplace_back("--unsafe-no-sandbox");
    return argv;
  }
};

TEST_F(SandboxFloorTest, ItTakesNoWorkUnlessToldTo) {
  if (!measure::SandboxHasAllowList()) GTEST_SKIP() << "no allow-list in this build";
  for (const char* role : {"both", "run", "build"}) {
    SCOPED_TRACE(role);
    const Ran refused = RunToEnd(ArgvOf(role, false));
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr("the sandbox cannot be set up: seccomp"));
    EXPECT_THAT(refused.err, HasSubstr("takes no work"));
    EXPECT_THAT(refused.err, HasSubstr("--unsafe-no-sandbox"));
  }
}

TEST_F(SandboxFloorTest, AFilterThatKeepsItsChildrenFromHidingFilesIsSaid) {
  if (!measure::SandboxHasAllowList()) GTEST_SKIP() << "no allow-list in this build";
  if (!measure::CanHideFiles().ok()) GTEST_SKIP() << "this kernel has no Landlock";
  for (const char* role : {"both", "run", "build"}) {
    SCOPED_TRACE(role);
    const Ran refused = RunToEnd(WithoutLandlock("refused", role));
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr("the sandbox cannot be set up: Landlock"));
    EXPECT_THAT(refused.err, HasSubstr("takes no work"));
  }
}

TEST_F(SandboxFloorTest, AKernelWithoutLandlockIsSeenByEverybody) {
  if (!measure::SandboxHasAllowList()) GTEST_SKIP() << "no allow-list in this build";
  Daemon honed("honed", farm_.HonedArgv(), farm_.Path("honed.log"));
  Daemon worker("w1", WithoutLandlock("absent", "both"), farm_.Path("w1.log"));
  honed.Start();
  worker.Start();
  trials_ = 8;
  ASSERT_TRUE(KeepTuning());
  AwaitSession();
  const auto json = nlohmann::json::parse(RunToEnd(Hone({"device", "list", "--json"})).out);
  EXPECT_EQ(json["devices"][0]["sandboxed"], true) << "the floor is there";
  EXPECT_THAT(json["devices"][0]["reason"].get<std::string>(),
              HasSubstr("can read its user's files"));
}

TEST_F(SandboxFloorTest, WhoSaysSoIsSeenByEverybody) {
  if (!measure::SandboxHasAllowList()) GTEST_SKIP() << "no allow-list in this build";
  Daemon honed("honed", farm_.HonedArgv(), farm_.Path("honed.log"));
  Daemon worker("w1", ArgvOf("both", true), farm_.Path("w1.log"));
  honed.Start();
  worker.Start();
  trials_ = 8;
  ASSERT_TRUE(KeepTuning());
  AwaitSession();
  const Ran text = RunToEnd(Hone({"device", "list"}));
  EXPECT_THAT(text.out, HasSubstr("w1/cpu:0"));
  EXPECT_THAT(text.out, HasSubstr("without sandbox"));
  const auto json = nlohmann::json::parse(RunToEnd(Hone({"device", "list", "--json"})).out);
  EXPECT_EQ(json["devices"][0]["sandboxed"], false);
}

}  // namespace
}  // namespace hone::farm
