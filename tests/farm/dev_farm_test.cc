#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>

#include "gmock/gmock.h"

#include "tests/farm/farm_processes.h"
#include "tests/web/http_client.h"

// The first minutes with a farm: `honed --dev`, and what honed says where nothing is set up.
namespace hone::farm {
namespace {

using ::testing::HasSubstr;

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(DevFarmTest, OneCommandStartsCoordinatorWorkerAuthorityAndPage) {
  const Folder folder;
  const int port = FreePortPair();  // the second is the page's
  const std::string address = "127.0.0.1:" + std::to_string(port);
  Daemon honed("honed",
               {"/usr/bin/env", "TMPDIR=" + (folder / ""), Program("honed"), "--dev", "--listen",
                address},
               folder / "said");
  honed.Start();
  const SystemMonotonicClock clock;
  for (int i = 0; i < 600 && Count(honed.Said(), "connected to honed") == 0; ++i) {
    ASSERT_FALSE(honed.Ended()) << honed.Said();
    clock.SleepNs(50'000'000);
  }
  const std::string said = honed.Said();
  EXPECT_EQ(Count(said, "connected to honed at '" + address + "' as dev/cpu:0"), 1U) << said;
  // The command that it shows works as it stands.
  std::smatch words;
  const std::regex shown("devices: hone (device) (list) (--server) (\\S+) (--tls) (\\S+)/admin\n");
  ASSERT_TRUE(std::regex_search(said, words, shown)) << said;
  const std::string credentials = words[6].str();
  const Ran list = RunToEnd({Program("hone"), "device", "list", "--server", words[4].str(), "--tls",
                             credentials + "/admin"});
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("dev/cpu:0"));
  EXPECT_THAT(RunToEnd({Program("hone"), "session", "list", "--server", words[4].str(), "--tls",
                        credentials + "/you"})
                  .err,
              "");
  EXPECT_EQ(web_test::Ask(port + 1, "/").status, 200) << "the page is beside the farm's port";
  EXPECT_EQ(honed.Interrupt(), 0) << honed.Said();
  EXPECT_FALSE(std::filesystem::exists(credentials)) << "what is for trying out goes";
}

/// The command line of a process; empty: there is none of that number.
std::string LineOf(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/cmdline");
  std::string line(std::istreambuf_iterator<char>(file), {});
  std::replace(line.begin(), line.end(), '\0', ' ');
  return line;
}

TEST(DevFarmTest, ItsWorkerEndsAlsoWhenHonedIsKilled) {
  const Folder folder;
  Daemon honed("honed",
               {"/usr/bin/env", "TMPDIR=" + (folder / ""), Program("honed"), "--dev", "--listen",
                "127.0.0.1:" + std::to_string(FreePort()), "--page-listen",
                "127.0.0.1:" + std::to_string(FreePort())},
               folder / "said");
  honed.Start();
  const SystemMonotonicClock clock;
  const auto until = [&](const std::function<bool()>& so) {
    for (int i = 0; i < 600 && !so(); ++i) clock.SleepNs(50'000'000);
    return so();
  };
  ASSERT_TRUE(until([&] { return Count(honed.Said(), "connected to honed") > 0; })) << honed.Said();
  std::string worker;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = process.path().filename(), line = LineOf(pid);
    if (line.starts_with(Program("hone-worker")) && line.find(folder / "") != std::string::npos) {
      worker = pid;
    }
  }
  ASSERT_NE(worker, "");
  honed.Kill();
  // Nobody reaps it here: what is left of it has no command line.
  EXPECT_TRUE(until([&] { return LineOf(worker).empty(); })) << LineOf(worker);
}

TEST(HonedTest, WithoutCredentialsNamesTheTwoCommandsThatMakeThem) {
  const Folder folder;
  const std::string ca = folder / "ca", tls = folder / "tls";
  const std::vector<std::string> check = {
      Program("honed"), "--check-config", "--ca", ca, "--tls", tls, "--db", folder / "tune.db"};
  const Ran bare = RunToEnd(check);
  EXPECT_EQ(bare.code, 2);
  EXPECT_THAT(bare.err, HasSubstr("`honed init-ca --ca " + ca +
                                  "` and `honed issue server NAME "
                                  "--ca " +
                                  ca + " --out " + tls + "`"));
  EXPECT_EQ(RunToEnd({Program("honed"), "init-ca", "--ca", ca}).code, 0);
  EXPECT_EQ(RunToEnd({Program("honed"), "issue", "server", "honed", "--ca", ca, "--out", tls}).code,
            0);
  const Ran made = RunToEnd(check);
  EXPECT_EQ(made.code, 0) << made.err;
}

}  // namespace
}  // namespace hone::farm
