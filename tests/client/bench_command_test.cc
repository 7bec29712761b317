// `hone bench`: several models in turns, another runtime, load beside.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/core/clock.h"
#include "base/core/fake_clock.h"
#include "base/subprocess.h"
#include "client/bench_turns.h"
#include "client/busy_processes.h"
#include "client/model_comparison.h"
#include "measure/process_load.h"
#include "tests/client/python.h"
#include "tests/client/run_hone.h"

namespace hone::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::ProgramRun;
using testing::RunHone;
using testing::RunProcess;
using testing::TemporaryFolder;

/// Takes so long, and twice that for the first run after another subject's.
class FakeSubject final : public BenchSubject {
 public:
  FakeSubject(char name, int64_t ns, FakeClock& clock, std::string& turns)
      : name_(name), ns_(ns), clock_(clock), turns_(turns) {}

  absl::Status Run(int runs, std::vector<int64_t>& run_ns) override {
    for (int i = 0; i < runs; ++i) {
      const bool first = turns_.empty() || turns_.back() != name_;
      if (first) turns_ += name_;
      run_ns.push_back(++runs_ == disturbed ? 100 * ns_ : first ? 2 * ns_ : ns_);
      clock_.AdvanceNs(run_ns.back());
    }
    return absl::OkStatus();
  }
  bool spins() const override { return true; }

  int disturbed = 0;  ///< the number of a run during which something else took the CPU

 private:
  const char name_;
  const int64_t ns_;
  FakeClock& clock_;
  std::string& turns_;  ///< who ran, each time that it was another
  int runs_ = 0;
};

TEST(BenchTurnsTest, GoInTurnsAndDropTheRunThatFindsForeignCaches) {
  FakeClock clock;
  std::string turns;
  FakeSubject a('a', 300'000, clock, turns), b('b', 200'000, clock, turns);
  a.disturbed = 330;  // the last one of the warm-up, which says how many make a turn
  const auto times = RunBenchTurns({&a, &b}, 1, clock);
  ASSERT_TRUE(times.ok()) << times.status();
  // Warmed up a and b; then a b, b a, …: b's second turn follows its first.
  EXPECT_TRUE(turns.starts_with("ababab")) << turns;
  EXPECT_GE(times->at(0).turn_ns.size(), 20U);
  EXPECT_LE(times->at(0).turn_ns.size(), 22U);
  EXPECT_EQ(times->at(0).turn_ns.size(), times->at(1).turn_ns.size());
  for (const int64_t ns : times->at(0).run_ns) ASSERT_EQ(ns, 300'000);
  for (const int64_t ns : times->at(1).run_ns) ASSERT_EQ(ns, 200'000);
  EXPECT_NEAR(RatioOf(times->at(0).turn_ns, times->at(1).turn_ns).median, 1.5, 1e-5);
}

TEST(BenchTurnsTest, SlowModelsGetFiveTurnsOfOneRunThatCounts) {
  FakeClock clock;
  std::string turns;
  FakeSubject a('a', 3'000'000'000, clock, turns), b('b', 500'000, clock, turns);
  const auto times = RunBenchTurns({&a, &b}, 0.001, clock);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->at(0).run_ns.size(), 5U);
  EXPECT_EQ(times->at(1).turn_ns.size(), 5U);
}

TEST(BenchTurnsTest, AModelAloneHasNoPausesAndAllItsRunsCount) {
  FakeClock clock;
  std::string turns;
  FakeSubject a('a', 1'000'000, clock, turns);
  const auto times = RunBenchTurns({&a}, 1, clock);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->at(0).run_ns.size(), 1000U);
  EXPECT_LE(clock.NowNs(), 1'102'000'000);
}

class BenchCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(RunHone({"zoo", "mlp", "-o", model_}).exit_code, 0);
    const ProgramRun run = RunHone({"compile", model_, "-o", package_, "--threads", "1"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }

  const TemporaryFolder folder_;
  const std::string model_ = folder_.Path("mlp.onnx");
  const std::string package_ = folder_.Path("mlp.hone");
};

TEST_F(BenchCommandTest, SeveralRunInTurnsAndComeWithTheirRatio) {
  const std::vector<std::string> words = {"bench",     package_, "--seconds", "60ms",
                                          "--threads", "1",      model_,      package_};
  const ProgramRun run = RunHone(words);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("p50 ms     p99 ms     runs/s\n"));
  EXPECT_THAT(run.out, HasSubstr("x as fast as the first ["));
  std::vector<std::string> asked = words;
  asked.emplace_back("--json");
  const json models = json::parse(RunHone(asked).out)["models"];
  ASSERT_EQ(models.size(), 3U);
  EXPECT_EQ(models[1]["file"], model_);
  EXPECT_FALSE(models[0].contains("ratio"));
  for (size_t i : {1U, 2U}) {
    const json& ratio = models[i]["ratio"];
    EXPECT_EQ(models[i]["turns_us"].size(), models[0]["turns_us"].size());
    EXPECT_GT(ratio["low"].get<double>(), 0);
    EXPECT_LE(ratio["low"], ratio["median"]);
    EXPECT_LE(ratio["median"], ratio["high"]);
  }
  const ProgramRun wrong = RunHone({"bench", package_, model_, "--profile"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--profile is for one model by itself"));
}

TEST_F(BenchCommandTest, TellsPercentilesWhereAskedTo) {
  const std::vector<std::string> words = {"bench", package_, "--seconds", "0.02"};
  EXPECT_THAT(RunHone(words).out, ::testing::Not(HasSubstr("p99.9")));
  std::vector<std::string> asked = words;
  asked.emplace_back("--percentiles");
  const ProgramRun run = RunHone(asked);
  for (const char* name : {"mlp: p50 ", ", p90 ", ", p99 ", ", p99.9 ", " runs/s ("}) {
    EXPECT_THAT(run.out, HasSubstr(name));
  }
}

TEST_F(BenchCommandTest, RunsOnnxRuntimeInTurns) {
  HONE_SKIP_WITHOUT_PYTHON();
  const std::string path =
      "PATH=" + std::filesystem::path(HONE_TEST_PYTHON).parent_path().string() + ":/usr/bin:/bin";
  const ProgramRun run =
      RunProcess({"/usr/bin/env", path, testing::HoneProgram(), "bench", package_, model_,
                  "--against", "onnxruntime", "--seconds", "20ms", "--json"},
                 folder_.path());
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json models = json::parse(run.out)["models"];
  ASSERT_EQ(models.size(), 3U);
  EXPECT_EQ(models[2]["runtime"], "onnxruntime");
  EXPECT_GT(models[2]["median_us"].get<double>(), 0);
  EXPECT_GT(models[2]["ratio"]["median"].get<double>(), 0);
}

TEST_F(BenchCommandTest, SaysWhyOnnxRuntimeDoesNotRun) {
  const auto against = [&](const std::string& path, const std::string& model) {
    return RunProcess({"/usr/bin/env", "PATH=" + path, testing::HoneProgram(), "bench", model,
                       "--against", "onnxruntime", "--seconds", "20ms"},
                      folder_.path());
  };
  const ProgramRun absent = against("/nonexistent", model_);
  EXPECT_EQ(absent.exit_code, 8);
  EXPECT_THAT(absent.err, HasSubstr("cannot import it (no python3); install it with pip"));
  const ProgramRun package = against("/nonexistent", package_);
  EXPECT_EQ(package.exit_code, 2);
  EXPECT_THAT(package.err, HasSubstr("only packages are given"));
}

/// Processes below `root`, with their parents' parents, by pid.
std::set<pid_t> Descendants(pid_t root) {
  std::map<pid_t, pid_t> parents;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string line;
    if (!std::getline(file, line)) continue;
    std::istringstream fields(line.substr(line.rfind(')') + 2));
    char state = 0;
    pid_t parent = 0;
    fields >> state >> parent;
    if (state != 'Z') parents[std::atoi(line.c_str())] = parent;
  }
  std::set<pid_t> found = {root};
  for (size_t before = 0; before != found.size();) {
    before = found.size();
    for (const auto& [pid, parent] : parents) {
      if (found.count(parent) != 0) found.insert(pid);
    }
  }
  found.erase(root);
  return found;
}

/// Those of `pids` that have used the CPU for `seconds`.
size_t Busy(const std::set<pid_t>& pids, double seconds) {
  return static_cast<size_t>(std::ranges::count_if(
      pids, [&](pid_t pid) { return measure::CpuSecondsOf(pid).value_or(0) >= seconds; }));
}

/// Whether `condition` holds within ten seconds.
template <typename Condition>
bool Comes(const Condition& condition) {
  const SystemMonotonicClock clock;
  for (int i = 0; i < 500 && !condition(); ++i) clock.SleepNs(20'000'000);
  return condition();
}

TEST(BusyProcessesTest, KeepCpusBusyUntilTheirObjectIsGone) {
  const std::set<pid_t> before = Descendants(::getpid());
  std::set<pid_t> pids;
  {
    const auto busy = BusyProcesses::Start(2);
    ASSERT_TRUE(busy.ok()) << busy.status();
    EXPECT_TRUE(Comes([&] { return Busy(pids = Descendants(::getpid()), 0.05) == 2; }));
  }
  EXPECT_EQ(Descendants(::getpid()), before);
}

TEST_F(BenchCommandTest, LoadEndsWithTheProgramHoweverThatEnds) {
  SubprocessOptions options;
  options.argv = {testing::HoneProgram(), "bench", package_, "--seconds", "1h", "--load", "1"};
  options.environment = {"PATH=/usr/bin:/bin", "HOME=" + folder_.path()};
  options.standard_output = options.standard_error = ChildStream::kNull;
  auto hone = Subprocess::Spawn(options);
  ASSERT_TRUE(hone.ok()) << hone.status();
  std::set<pid_t> pids;
  EXPECT_TRUE(Comes([&] { return Busy(pids = Descendants(hone->pid()), 0.05) == 1; }));
  hone->Kill(SIGKILL);
  EXPECT_TRUE(Comes([&] {
    return std::ranges::none_of(pids, [](pid_t pid) {
      return std::filesystem::exists("/proc/" + std::to_string(pid) + "/exe");
    });
  }));
}

}  // namespace
}  // namespace hone::client
