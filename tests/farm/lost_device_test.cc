#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "tests/farm/tuned_farm.h"

// A runner that SIGKILL does not end: a tracer holds it where it dies, as a dead disk would.
namespace hone::farm {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNsPerSecond = 1'000'000'000;

/// Two workers of one machine, so of one device's lock.
class LostDeviceTest : public TunedFarm {
 protected:
  LostDeviceTest()
      : TunedFarm({"w1", "w2"}, "squeezenet"),
        honed_("honed", farm_.HonedArgv(), farm_.Path("honed.log")),
        w1_("w1", farm_.WorkerArgv("w1"), farm_.Path("w1.log")),
        w2_("w2", farm_.WorkerArgv("w2"), farm_.Path("w2.log")) {
    trials_ = 100;
  }
  ~LostDeviceTest() override { Release(); }

  size_t Answers(const std::string& worker) const {
    size_t answers = 0;
    for (const auto& words : LinesOf(farm_.Journal(worker))) answers += words[0] == "ack";
    return answers;
  }
  /// A session that ends meanwhile is followed by another: w2 may do all of one.
  bool AwaitAnswers(const std::string& worker, size_t count) {
    return Eventually([&] { return KeepTuning() && Answers(worker) >= count; }, 60 * kNsPerSecond);
  }
  bool Told(const std::string& words) const {
    return honed_.Said().find(words) != std::string::npos;
  }
  /// The process that runs w1's candidates; 0: there is none just now.
  pid_t RunnerOfW1() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string path = entry.path().string();
      if (ReadFile(path + "/comm").value_or("") != "hone-runner\n") continue;
      const std::string stat = ReadFile(path + "/stat").value_or("");
      if (stat.empty()) continue;  // it has ended
      const std::string parent = stat.substr(stat.find(") ") + 4);
      const std::string words =
          ReadFile("/proc/" + parent.substr(0, parent.find(' ')) + "/cmdline").value_or("");
      if (words.find(farm_.Journal("w1")) != std::string::npos) {
        return std::stoi(entry.path().filename().string());
      }
    }
    return 0;
  }
  void Release() {
    if (held_ == 0) return;
    EXPECT_EQ(::ptrace(PTRACE_CONT, held_, nullptr, nullptr), 0) << std::strerror(errno);
    int status = 0;
    while (::waitpid(held_, &status, __WALL) == held_ && WIFSTOPPED(status)) {
    }
    held_ = 0;
  }
  Ran Device(std::vector<std::string> words) const {
    words.insert(words.begin(), {Program("hone"), "device"});
    for (const std::string& word : farm_.ServerWords("root")) words.push_back(word);
    return RunToEnd(words);
  }
  nlohmann::json W1() const {
    const Ran ran = Device({"list", "--json"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    const nlohmann::json list = nlohmann::json::parse(ran.out);
    for (const auto& device : list.at("devices")) {
      if (device.at("worker") == "w1") return device;
    }
    ADD_FAILURE() << ran.out;
    return {};
  }

  pid_t held_ = 0;
  Daemon honed_, w1_, w2_;
};

TEST_F(LostDeviceTest, AChildThatCannotBeKilledTakesItsDeviceOutUntilAPersonLetsItBack) {
  for (Daemon* daemon : {&honed_, &w1_, &w2_}) daemon->Start();
  ASSERT_TRUE(KeepTuning());
  ASSERT_TRUE(AwaitAnswers("w1", 2)) << w1_.Said();
  pid_t runner = 0;
  ASSERT_TRUE(Eventually([&] { return (runner = RunnerOfW1()) > 0; })) << w1_.Said();
  const auto stop_at_exit = reinterpret_cast<void*>(std::uintptr_t{PTRACE_O_TRACEEXIT});
  if (::ptrace(PTRACE_SEIZE, runner, nullptr, stop_at_exit) != 0) {
    GTEST_SKIP() << "this machine refuses ptrace: " << std::strerror(errno);
  }
  held_ = runner;
  ASSERT_EQ(::kill(runner, SIGKILL), 0);
  ASSERT_TRUE(Eventually([&] { return Told("event=device_lost"); }, 90 * kNsPerSecond))
      << w1_.Said() << honed_.Said();

  EXPECT_THAT(w1_.Said(), HasSubstr("was killed 10 s ago and has not ended"));
  const nlohmann::json lost = W1();
  EXPECT_EQ(lost.at("state"), "lost");
  EXPECT_THAT(lost.at("reason").get<std::string>(), HasSubstr("process " + std::to_string(runner)));
  EXPECT_EQ(lost.at("leases"), 0);
  const Ran refused = Device({"undrain", "w1/cpu:0"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("stays lost while this process of its worker runs"));
  // The device's lock is not free before the child has ended.
  const size_t before = Answers("w2");
  clock_.SleepNs(kNsPerSecond);
  EXPECT_EQ(Answers("w2"), before);
  Release();
  AwaitSession(120 * kNsPerSecond);
  EXPECT_GT(Answers("w2"), before);

  w1_.Kill();
  ASSERT_TRUE(Eventually([&] { return Device({"undrain", "w1/cpu:0"}).code == 0; }));
  w1_.Start();
  const size_t answers = Answers("w1");
  ASSERT_TRUE(KeepTuning());
  ASSERT_TRUE(AwaitAnswers("w1", answers + 2)) << w1_.Said();
  EXPECT_EQ(W1().at("state"), "active");
  AwaitSession(120 * kNsPerSecond);
  for (Daemon* daemon : {&w1_, &w2_, &honed_}) EXPECT_EQ(daemon->Terminate(), 0) << daemon->Said();
  const Ran audit = RunToEnd({Program("hone"), "db", "audit", farm_.LogPath()});
  EXPECT_THAT(audit.out, HasSubstr("lost"));
  EXPECT_THAT(audit.out, HasSubstr("process " + std::to_string(runner)));
  CheckLog(0);
}

}  // namespace
}  // namespace hone::farm
