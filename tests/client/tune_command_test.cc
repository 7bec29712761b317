// hone tune, run as a program on a small network: what it prints, and how it ends when it is
// interrupted, killed, starved of disk or has no helpers. The first log of a test is real.

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/core/random.h"
#include "base/subprocess.h"
#include "db/log_file.h"
#include "ir/target.h"
#include "ir/text.h"
#include "schedule/space.h"
#include "tests/client/run_hone.h"
#include "tests/client/small_tuning.h"
#include "tests/test_paths.h"

namespace hone::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::HoneProgram;
using testing::kMillisecondNs;
using testing::Measured;
using testing::Parse;
using testing::ProgramRun;
using testing::RunHone;
using testing::RunProcess;
using testing::SmallTuning;

TEST(TuneOnAServer, TakesNoOptionOfATuningOnThisMachine) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--db", "x.db"}, {"--dry-run"}, {"--inputs", "x.npz"}}) {
    std::vector<std::string> words = {"tune", "x.onnx", "--server", "h:1", "--tls", "x"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun run = RunHone(words);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_THAT(run.err, HasSubstr("--server excludes " + more.front()));
  }
}

class TuneCommandTest : public SmallTuning {};

TEST_F(TuneCommandTest, ADryRunTellsTasksBudgetAndEndAndMakesNoLog) {
  const ProgramRun run = Tune({"--dry-run", "--minutes", "2"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("3 tasks for cpu:avx2,threads=1"));
  EXPECT_THAT(run.err, HasSubstr("budget 2:00, ends "));
  EXPECT_THAT(run.out, HasSubstr("MFLOP"));
  const json object = Parse(Tune({"--dry-run", "--json", "--trials", "5"}));
  EXPECT_EQ(object["tasks"].size(), 3U);
  EXPECT_EQ(object["trials"], 5);
  EXPECT_EQ(object["seconds"], 0) << "a limit of another kind replaces the ten minutes";
  EXPECT_EQ(Parse(Tune({"--dry-run", "--json"}))["seconds"], 600);
  EXPECT_FALSE(std::filesystem::exists(log_));
}

TEST_F(TuneCommandTest, ATuningReportsAndItsLogBuildsTheModel) {
  const json object = Parse(Tune({"--trials", "24", "--json"}));
  EXPECT_EQ(object["attempts"], 24);
  EXPECT_EQ(object["reason"], "trials used up");
  int64_t candidates = 0;
  for (const char* name :
       {"default", "transplant", "model", "uncertainty", "neighbour", "random"}) {
    ASSERT_TRUE(object["proposers"].contains(name)) << name;
    candidates += object["proposers"][name]["candidates"].get<int64_t>();
  }
  EXPECT_EQ(candidates, 24);
  EXPECT_EQ(object["proposers"]["default"]["candidates"], 3);
  for (const json& task : object["tasks"]) {
    EXPECT_GT(task["best_us"], 0) << task;
    EXPECT_GT(task["roofline_share"], 0) << task;
  }
  // End to end it was measured, or it says why not.
  EXPECT_GT(object["model"]["default_us"], 0) << object["model"];
  const json& model = object["model"];
  EXPECT_TRUE(model["tuned_us"].is_number() != model["skipped"].is_string());
  EXPECT_EQ(model["verdict"].is_string(),
            model["tuned_us"].is_number() && model["noisy_cpus"] == 0);
  if (model["verdict"].is_string()) {
    EXPECT_EQ(model["verdict"], model["ratio_low"] > 1 ? "won" : "keeps_defaults") << model;
  }
  const std::string package = folder_.Path("small.hone");
  EXPECT_EQ(RunHone({"compile", model_, "--db", log_, "-o", package, "--target",
                     "cpu:avx2,threads=1", "--require", "exact"})
                .exit_code,
            0);
  // Plain text begins with the whole model, ends with the next command, which works.
  const ProgramRun again = Tune({"--trials", "8"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("trials used up: 8 candidates"));
  EXPECT_EQ(again.out.find("model: "), 0) << again.out;
  EXPECT_THAT(again.out, HasSubstr("log " + log_));
  const size_t next = again.out.find("\nnext: hone compile ");
  ASSERT_NE(next, std::string::npos) << again.out;
  std::istringstream line(again.out.substr(next + 12));
  std::vector<std::string> words{std::istream_iterator<std::string>(line), {}};
  ASSERT_GT(words.size(), 2U);
  words.back() = package;
  const ProgramRun compiled = RunHone(words);
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_EQ(words.front(), "compile");
}

TEST_F(TuneCommandTest, TheNextCommandCompilesThePartThatWasTuned) {
  const json object = Parse(Tune({"--trials", "4", "--cut", "relu1", "--json"}));
  EXPECT_THAT(object["next"].get<std::string>(), HasSubstr(" --cut relu1"));
  EXPECT_EQ(object["tasks"].size(), 1U);
}

TEST_F(TuneCommandTest, TheLastProgressTellsAllHoweverSoonItEnds) {
  // Its kernels are so small that it ends within a second after a line, but on a slow machine.
  const std::string network = folder_.Path("mlp.onnx");
  ASSERT_EQ(RunHone({"zoo", "mlp", "-o", network}).exit_code, 0);
  const ProgramRun run =
      RunHone({"tune", network, "--db", log_, "--threads", "1", "--trials", "24", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const size_t last = run.err.rfind("{\"progress\":");
  ASSERT_NE(last, std::string::npos) << run.err;
  const json progress = json::parse(run.err.substr(last))["progress"];
  EXPECT_EQ(progress["candidates"], Parse(run)["attempts"]);
}

TEST_F(TuneCommandTest, TheNextCommandKeepsThePrecision) {
  const json object = Parse(Tune({"--trials", "4", "--precision", "bf16", "--json"}));
  EXPECT_THAT(object["next"].get<std::string>(), HasSubstr(" --precision bf16"));
}

TEST_F(TuneCommandTest, ADryRunTellsWhatTheLogHolds) {
  const json none = Parse(Tune({"--dry-run", "--json"}));
  EXPECT_EQ(none["log_exists"], false);
  EXPECT_EQ(none["tasks_with_records"], 0);
  ASSERT_EQ(Tune({"--trials", "12"}).exit_code, 0);
  const json some = Parse(Tune({"--dry-run", "--json"}));
  EXPECT_EQ(some["log_exists"], true);
  EXPECT_EQ(some["tasks_with_records"], 3);
  EXPECT_EQ(some["tasks"][0]["rung"], "exact");
  EXPECT_GT(some["tasks"][0]["median_us"], 0);
  EXPECT_EQ(some["unfinished_session"], "");
  EXPECT_THAT(Tune({"--dry-run"}).out, HasSubstr("the log has records of 3 of 3 tasks"));
  // A class's records are not those of a stricter one.
  EXPECT_EQ(Parse(Tune({"--dry-run", "--json", "--accuracy", "strict"}))["tasks_with_records"], 0);

  // One that was interrupted would be gone on with, its time counted.
  TuneAndKill({"--seconds", "200"}, 24);
  const json unfinished = Parse(Tune({"--dry-run", "--json", "--seconds", "200"}));
  EXPECT_EQ(unfinished["unfinished_session"].get<std::string>().size(), 32U) << unfinished;
  EXPECT_GT(unfinished["used_seconds"], 0);
}

TEST_F(TuneCommandTest, StrictMeasuresNoF4AndServesDefaultButNotTheReverse) {
  const auto compile = [&](const std::string& accuracy) {
    return RunHone({"compile", model_, "--db", log_, "-o", folder_.Path("small.hone"), "--target",
                    "cpu:avx2,threads=1", "--require", "exact", "--accuracy", accuracy})
        .exit_code;
  };
  ASSERT_EQ(Tune({"--trials", "90", "--accuracy", "strict"}).exit_code, 0);
  EXPECT_EQ(compile("strict"), 0);
  EXPECT_EQ(compile("default"), 0) << "a stricter record serves";
  const auto log = db::OpenLog(log_, {.mode = db::OpenMode::kRead});
  ASSERT_TRUE(log.ok()) << log.status();
  int64_t attempts = 0, f2 = 0;
  ASSERT_TRUE((*log)
                  ->ScanAttempts({},
                                 [&](const db::Attempt& a) {
                                   ++attempts;
                                   EXPECT_EQ(a.key.accuracy, ir::AccuracyClass::kStrict);
                                   EXPECT_EQ(a.trace.find("winograd, 4"), std::string::npos);
                                   f2 += a.trace.find("winograd, 2") != std::string::npos;
                                   return absl::OkStatus();
                                 })
                  .ok());
  EXPECT_EQ(attempts, 90);
  EXPECT_GT(f2, 0);
  // That F(4x4) is there to be left out:
  ir::Target target;
  std::string why;
  ASSERT_TRUE(ir::ParseTarget("cpu:avx2,threads=1", &target, &why)) << why;
  size_t of_default = 0, of_strict = 0;
  ASSERT_TRUE((*log)
                  ->ScanWorkloads([&](const db::WorkloadRow& row) {
                    const auto workload = ir::ParseWorkload(row.text);
                    EXPECT_TRUE(workload.ok());
                    for (const auto& [accuracy, count] :
                         {std::pair(ir::AccuracyClass::kDefault, &of_default),
                          std::pair(ir::AccuracyClass::kStrict, &of_strict)}) {
                      *count += schedule::Space(*workload, target, accuracy).sketches().size();
                    }
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_GT(of_default, of_strict);
}

TEST_F(TuneCommandTest, DefaultRecordsDoNotServeStrict) {
  ASSERT_EQ(Tune({"--trials", "12"}).exit_code, 0);
  const auto compile = [&](const std::string& accuracy, const std::string& rung) {
    return RunHone({"compile", model_, "--db", log_, "-o", folder_.Path("small.hone"), "--target",
                    "cpu:avx2,threads=1", "--require", rung, "--accuracy", accuracy});
  };
  EXPECT_EQ(compile("default", "exact").exit_code, 0);
  EXPECT_EQ(compile("strict", "exact").exit_code, 4);
  EXPECT_EQ(compile("strict", "nearest").exit_code, 4) << "nor by a transplant";
  EXPECT_EQ(compile("strict", "default").exit_code, 0);
  const ProgramRun fast = compile("fast", "default");
  EXPECT_EQ(fast.exit_code, 2);
  EXPECT_THAT(fast.err, HasSubstr("use --accuracy default"));
  EXPECT_EQ(Tune({"--trials", "3", "--accuracy", "fast"}).exit_code, 2);
  EXPECT_EQ(RunHone({"check", model_, "--accuracy", "fast"}).exit_code, 2);
  EXPECT_EQ(RunHone({"check", model_, "--accuracy", "strict", "--db", log_}).exit_code, 0);
}

// Twenty times: started, killed at a random moment, its log read. Then to the end.
TEST_F(TuneCommandTest, KilledAgainAndAgainItLosesAndRepeatsNothing) {
  constexpr int kKills = 20;
  constexpr int kTrials = 200;
  const uint64_t seed = static_cast<uint64_t>(::getpid());
  RecordProperty("seed", std::to_string(seed));
  Random random(seed);
  // Moments from before there is a session to well after its first results; the first run tells how
  // long that takes here and now. However slow it is later, each fifth comes after a result.
  const int64_t start_ns = clock_.NowNs();
  TuneAndKill({"--trials", std::to_string(kTrials)}, 1);
  Measured before = ReadLog();
  const int64_t longest_ns = (clock_.NowNs() - start_ns) * 3 / 2;
  int kills_with_attempts = 0;
  size_t ended = 0;  // by themselves
  for (int kill = 1; kill < kKills; ++kill) {
    Subprocess child = Start({"--trials", std::to_string(kTrials)});
    if (kill % 5 == 0) {
      AwaitAttempts(before.content.size() + 1);
    } else {
      clock_.SleepNs(random.Between(0, longest_ns));
    }
    ::kill(child.pid(), SIGKILL);
    const auto exit = child.Wait(clock_, 10'000 * kMillisecondNs);
    ASSERT_TRUE(exit.ok() && exit->has_value()) << exit.status();
    ended += (*exit)->code.has_value() ? 1 : 0;
    const Measured now = ReadLog();
    for (const auto& [id, content] : before.content) {
      const auto found = now.content.find(id);
      ASSERT_NE(found, now.content.end()) << "lost after kill " << kill << ", seed " << seed;
      EXPECT_EQ(found->second, content);
    }
    kills_with_attempts += now.content.size() > before.content.size() ? 1 : 0;
    before = now;
  }
  EXPECT_GE(kills_with_attempts, (kKills - 1) / 5) << "no result before a kill, seed " << seed;
  const json object = Parse(Tune({"--trials", std::to_string(kTrials), "--json"}));
  EXPECT_EQ(object["attempts"], kTrials) << "the budget counts across restarts, seed " << seed;
  const Measured all = ReadLog();
  // A session that ends before its kill is followed by a new one, also where its process had still
  // to end.
  for (const auto& [session, attempts] : all.by_session)
    EXPECT_EQ(attempts, kTrials) << "session " << session << ", seed " << seed;
  EXPECT_LE(all.by_session.size(), 3U + ended) << "seed " << seed;
  for (const auto& [what, times] : all.times)
    EXPECT_EQ(times, 1) << std::get<1>(what) << "\n" << std::get<2>(what) << "seed " << seed;
  for (const auto& [id, content] : before.content) EXPECT_EQ(all.content.count(id), 1U);
  EXPECT_EQ(RunHone({"db", "verify", log_}).exit_code, 0);
}

class TuneSignalTest : public SmallTuning, public ::testing::WithParamInterface<int> {};

INSTANTIATE_TEST_SUITE_P(All, TuneSignalTest, ::testing::Values(SIGTERM, SIGINT),
                         [](const auto& one) { return one.param == SIGINT ? "Int" : "Term"; });

TEST_P(TuneSignalTest, FinishesTheRecordAndSaysWhatStands) {
  SubprocessOptions options;
  options.argv = Words({"--seconds", "300"});
  options.argv.insert(options.argv.begin(), HoneProgram());
  options.environment = {"PATH=/usr/bin:/bin", "HOME=/dev/null"};
  options.standard_input = ChildStream::kNull;
  options.standard_output = ChildStream::kNull;
  auto child = Subprocess::Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  AwaitAttempts(8);
  child->Kill(SIGHUP);  // a closed terminal
  const size_t attempts = ReadLog().content.size();
  AwaitAttempts(attempts + 3);
  const int64_t start_ns = clock_.NowNs();
  ::kill(child->pid(), GetParam());
  EXPECT_EQ(ExitCodeOf(*child), 7);
  EXPECT_LT(clock_.NowNs() - start_ns, 15'000 * kMillisecondNs);
  const std::string said = ErrorsOf(*child);
  EXPECT_THAT(said, HasSubstr("a usable result exists"));
  EXPECT_THAT(said, HasSubstr("hone compile"));
  const auto log = db::OpenLog(log_, {.mode = db::OpenMode::kRead});
  ASSERT_TRUE(log.ok()) << log.status();
  const auto sessions = (*log)->Sessions();
  ASSERT_TRUE(sessions.ok() && sessions->size() == 1);
  const auto events = (*log)->EventsOf(sessions->front().session.id);
  ASSERT_TRUE(events.ok() && !events->empty());
  EXPECT_EQ(events->back().type, "interrupted");
}

/// Whether a process has a handler for a signal.
bool Catches(pid_t pid, int signal) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigCgt:")) continue;
    return ((std::stoull(line.substr(7), nullptr, 16) >> (signal - 1)) & 1) != 0;
  }
  return false;
}

/// Whether a process has a file open.
bool HasOpen(pid_t pid, const std::string& path) {
  std::error_code gone;  // the process, or what it had open
  auto entry = std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", gone);
  for (; !gone && entry != std::filesystem::directory_iterator(); entry.increment(gone)) {
    std::error_code closed;
    if (std::filesystem::read_symlink(entry->path(), closed) == path) return true;
  }
  return false;
}

// Whenever the signal comes, also before there is a session: it ends, soon, with 7.
TEST_F(TuneCommandTest, ASignalEndsItAtEveryMoment) {
  int signal = SIGINT;
  for (const int wait_ms : {5, 60, 200, 450, 700, 1000, 1500}) {
    SCOPED_TRACE(wait_ms);
    Subprocess child = Start({"--seconds", "300"});
    clock_.SleepNs(wait_ms * kMillisecondNs);
    const bool begun = HasOpen(child.pid(), log_), caught = Catches(child.pid(), signal);
    ::kill(child.pid(), signal);
    const auto exit = child.Wait(clock_, 15'000 * kMillisecondNs);
    ASSERT_TRUE(exit.ok() && exit->has_value()) << "it does not end";
    // Before it has set its handlers the signal itself ends it.
    EXPECT_TRUE((*exit)->code == 7 || (!caught && (*exit)->signal == signal))
        << (*exit)->ToString();
    EXPECT_TRUE(caught || !begun) << "it has the log and no handlers";
    signal = signal == SIGINT ? SIGTERM : SIGINT;
  }
}

TEST_F(TuneCommandTest, ABusyLogIsRefusedWithItsWriter) {
  const auto writer = db::OpenLog(log_, {.mode = db::OpenMode::kWrite});
  ASSERT_TRUE(writer.ok()) << writer.status();
  const ProgramRun run = Tune({"--trials", "3"});
  EXPECT_EQ(run.exit_code, 5) << run.err;
  EXPECT_THAT(run.err, HasSubstr("pid " + std::to_string(::getpid())));
  EXPECT_THAT(run.err, HasSubstr("hone db snapshot"));
}

TEST_F(TuneCommandTest, ADiskThatFillsUpEndsItCleanly) {
  SubprocessOptions options;
  options.argv = Words({"--seconds", "120"});
  options.argv.insert(options.argv.begin(), HoneProgram());
  options.environment = {"PATH=/usr/bin:/bin", "HOME=/dev/null"};
  options.standard_input = options.standard_output = ChildStream::kNull;
  auto child = Subprocess::Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  AwaitAttempts(2);
  // From now on none of its files may grow: what is written fails as on a full disk.
  const rlimit none{4096, RLIM_INFINITY};
  ASSERT_EQ(::prlimit(child->pid(), RLIMIT_FSIZE, &none, nullptr), 0);
  EXPECT_EQ(ExitCodeOf(*child), 9);
  EXPECT_THAT(ErrorsOf(*child), HasSubstr("make room"));
  const size_t attempts = ReadLog().content.size();
  EXPECT_GT(attempts, 0U);
  EXPECT_EQ(RunHone({"db", "verify", log_}).exit_code, 0);
  const json object = Parse(Tune({"--trials", "7", "--json"}));
  EXPECT_EQ(object["attempts"], 7);
}

TEST_F(TuneCommandTest, WithoutHelpersItEndsAtOnceAndSaysWhatToDo) {
  // The program looks for them beside itself.
  std::filesystem::create_directories(folder_.Path("bin"));
  std::filesystem::create_directories(folder_.Path("libexec/hone"));
  std::filesystem::copy_file(HoneProgram(), folder_.Path("bin/hone"));
  const std::string helpers = hone::testing::BuildDir() + "/libexec/hone/";
  const std::string builder = folder_.Path("libexec/hone/hone-builder");
  const std::string runner = folder_.Path("libexec/hone/hone-runner");
  const auto tune = [&] {
    std::vector<std::string> words = Words({"--seconds", "60"});
    words.insert(words.begin(), folder_.Path("bin/hone"));
    return RunProcess(words, "/dev/null");
  };
  const auto expect_absent = [&](const std::string& program) {
    const ProgramRun run = tune();
    EXPECT_EQ(run.exit_code, 8) << run.err;
    EXPECT_THAT(run.err, HasSubstr(program));
    EXPECT_THAT(run.err, HasSubstr("install Hone as a whole"));
  };
  expect_absent("hone-builder");
  std::filesystem::create_symlink(helpers + "hone-builder", builder);
  expect_absent("hone-runner");
  std::ofstream(runner) << "#!/bin/sh\nexit 3\n";
  std::filesystem::permissions(runner, std::filesystem::perms::owner_all);
  expect_absent("hone-runner");
  EXPECT_FALSE(std::filesystem::exists(log_));
}

TEST_F(TuneCommandTest, WhatOnlyAFarmKnowsNeedsOne) {
  for (const char* option : {"--project", "--device-class"}) {
    const ProgramRun run = RunHone({"tune", "model.onnx", option, "x"});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, HasSubstr("give --server ADDRESS too"));
  }
  EXPECT_EQ(RunHone({"tune", "model.onnx", "--priority", "101"}).exit_code, 2);
}

TEST_F(TuneCommandTest, LimitsThatMakeNoSenseAreUsageErrors) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--seconds", "5", "--minutes", "1"},
                                             {"--seconds", "0"},
                                             {"--minutes", "0"},
                                             {"--seconds", "inf"},
                                             {"--seconds", "1e300"},
                                             {"--minutes", "-1"},
                                             {"--until", "soon"},
                                             {"--until", "25:00"},
                                             {"--until", "2001-01-01T00:00"}}) {
    const ProgramRun run = Tune(words);
    EXPECT_EQ(run.exit_code, 2) << words.back() << run.err;
  }
}

}  // namespace
}  // namespace hone::client
