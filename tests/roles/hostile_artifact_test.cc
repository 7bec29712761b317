#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/hash128.h"
#include "base/file.h"
#include "db/database.h"
#include "measure/sandbox.h"
#include "tests/farm/tuned_farm.h"
#include "tests/test_paths.h"

// A builder that is not to be trusted sends code that attacks whoever runs it; a run worker runs
// all of it, and goes on.
namespace hone::farm {
namespace {

using measure::Outcome;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Expected {
  Outcome outcome;
  const char* says;
};
const std::map<std::string, Expected>& ExpectedEnds() {
  static const std::map<std::string, Expected> kEnds = {
      {"socket", {Outcome::kRunCrashed, "the sandbox forbids"}},
      {"exec", {Outcome::kRunCrashed, "the sandbox forbids"}},
      {"write", {Outcome::kRunCrashed, "the sandbox forbids"}},
      {"key", {Outcome::kWrongAnswer, "are wrong"}},
      {"fork", {Outcome::kRunCrashed, "the sandbox forbids"}},
      {"memory", {Outcome::kOutOfMemory, "ran out of memory"}},
      {"kill-parent", {Outcome::kRunCrashed, "the sandbox forbids"}},
      // Not as one that the machine killed for memory, at nobody's cost.
      {"kill-self", {Outcome::kRunCrashed, "the sandbox forbids"}},
      {"forge-both", {Outcome::kRunCrashed, "more than it was asked"}},
      {"forge-check", {Outcome::kWrongAnswer, "are wrong"}},
      {"close", {Outcome::kRunCrashed, "broke off"}},
      {"sleep", {Outcome::kRunTimeout, "did not finish"}},
      {"exit", {Outcome::kRunCrashed, "broke off"}},
      {"signal-owner", {Outcome::kRunCrashed, "the sandbox forbids"}},
      {"signal-self", {Outcome::kRunCrashed, "the sandbox forbids"}},
      {"seal", {Outcome::kWrongAnswer, "are wrong"}},
      {"files", {Outcome::kRunCrashed, "File size limit exceeded"}},
  };
  return kEnds;
}

/// Processes of this machine that run a program of this name, by the path of their program.
int CountProcesses(const std::string& program) {
  int count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto exe = std::filesystem::read_symlink(entry.path() / "exe", error);
    count += !error && exe == program ? 1 : 0;
  }
  return count;
}

class HostileArtifactTest : public TunedFarm {
 protected:
  HostileArtifactTest() : TunedFarm({"builder", "runner"}) {
    trials_ = 34;
    // Not in memory: that may be mounted so that no program starts from it.
    std::string path = hone::testing::BuildDir() + "/tests/hostile-XXXXXX";
    EXPECT_NE(::mkdtemp(path.data()), nullptr) << path;
    tree_ = path;
  }
  ~HostileArtifactTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(tree_, ignored);
  }

  /// A tree with this worker and this child of it, so that its processes are told from those of
  /// other tests; the worker's path.
  std::string Tree(const std::string& name, const std::string& from, const std::string& child) {
    const std::filesystem::path tree = tree_ / name;
    std::filesystem::create_directories(tree / "bin");
    std::filesystem::create_directories(tree / "libexec/hone");
    std::filesystem::copy_file(Program("hone-worker"), tree / "bin/hone-worker");
    std::filesystem::copy_file(from + "/" + child, tree / "libexec/hone" / child);
    return tree / "bin/hone-worker";
  }
  /// One whose builder is the hostile one.
  std::string HostileWorker() {
    const std::string worker =
        Tree("build", hone::testing::BuildDir() + "/tests/hostile", "hone-builder");
    std::ofstream(tree_ / "build/key-path") << farm_.Path("runner") + "/key.pem";
    return worker;
  }

  std::filesystem::path tree_;
};

TEST_F(HostileArtifactTest, EachEndsAsItsOwnFailureAndTheFarmGoesOn) {
  if (!measure::SandboxHasAllowList()) GTEST_SKIP() << "no allow-list in this build";
  ASSERT_TRUE(ReadFile(farm_.Path("runner") + "/key.pem").ok());
  std::vector<std::string> builder_argv = farm_.WorkerArgv("builder");
  builder_argv.front() = HostileWorker();
  for (const char* word : {"--role", "build"}) builder_argv.emplace_back(word);
  std::vector<std::string> runner_argv = farm_.WorkerArgv("runner");
  runner_argv.front() = Tree("run", hone::testing::BuildDir() + "/libexec/hone", "hone-runner");
  for (const char* word : {"--role", "run"}) runner_argv.emplace_back(word);
  Daemon honed("honed", farm_.HonedArgv(), farm_.Path("honed.log"));
  Daemon builder("builder", builder_argv, farm_.Path("builder.log"));
  Daemon runner("runner", runner_argv, farm_.Path("runner.log"));
  for (Daemon* daemon : {&honed, &builder, &runner}) daemon->Start();
  ASSERT_TRUE(KeepTuning());
  AwaitSession(90'000'000'000);
  EXPECT_FALSE(runner.Ended().has_value()) << runner.Said();
  EXPECT_EQ(runner.Terminate(), 0) << runner.Said();
  EXPECT_EQ(builder.Terminate(), 0) << builder.Said();
  EXPECT_EQ(honed.Terminate(), 0) << honed.Said();
  EXPECT_FALSE(std::filesystem::exists("/tmp/escaped-from-hone"));
  EXPECT_EQ(CountProcesses(tree_ / "run/libexec/hone/hone-runner"), 0) << "left behind";

  std::map<std::string, std::string> kind_of;  // by hashes of workload and trace
  for (const auto& words : LinesOf(tree_ / "build/hostile.log")) {
    kind_of[words.at(1) + words.at(2)] = words.at(0);
  }
  const auto log = db::OpenLog(farm_.LogPath(), {});
  ASSERT_TRUE(log.ok()) << log.status();
  std::map<std::string, int> seen;
  int ok = 0;
  const absl::Status scanned = (*log)->ScanAttempts({}, [&](const db::Attempt& attempt) {
    const auto kind = kind_of.find(attempt.key.workload.ToHex() + HashBytes(attempt.trace).ToHex());
    ok += attempt.outcome == Outcome::kOk ? 1 : 0;
    if (kind == kind_of.end()) return absl::OkStatus();
    SCOPED_TRACE(kind->second);
    ++seen[kind->second];
    // Only Landlock (Linux 5.13 on) keeps code from opening a file; the rest holds without it.
    if (kind->second == "key" && !measure::CanHideFiles().ok()) return absl::OkStatus();
    const Expected& expected = ExpectedEnds().at(kind->second);
    EXPECT_EQ(measure::ToString(attempt.outcome), measure::ToString(expected.outcome))
        << attempt.message;
    EXPECT_THAT(attempt.message, HasSubstr(expected.says));
    return absl::OkStatus();
  });
  EXPECT_TRUE(scanned.ok()) << scanned;
  EXPECT_EQ(seen.size(), ExpectedEnds().size());
  EXPECT_GE(ok, 10) << "those behind them were measured";
  // The journals equal the log: nobody forged a result.
  CheckLog(0);
}

}  // namespace
}  // namespace hone::farm
