#include "base/subprocess.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

#include "fmt/core.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

SubprocessOptions Shell(const std::string& script) {
  SubprocessOptions options;
  options.argv = {"/bin/sh", "-c", script};
  return options;
}

class SubprocessTest : public ::testing::Test {
 protected:
  RunResult Run(const SubprocessOptions& options, RunOptions run = {}) {
    if (run.timeout_ns < 0) run.timeout_ns = 20 * kSecondNs;
    absl::StatusOr<RunResult> result = RunSubprocess(options, run, clock_);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : RunResult{};
  }

  SystemMonotonicClock clock_;
};

// A dead process that nobody has reaped yet counts as gone: reaping orphans is init's business.
bool IsAlive(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string number, name, state;
  return static_cast<bool>(file >> number >> name >> state) && state != "Z" && state != "X";
}

TEST_F(SubprocessTest, GivesInputAndBothOutputsAndTheExitCode) {
  const RunResult result = Run(Shell("cat; echo err >&2; exit 3"), {.input = "hello"});
  EXPECT_EQ(result.standard_output, "hello");
  EXPECT_EQ(result.standard_error, "err\n");
  EXPECT_EQ(result.exit_state.code, 3);
  EXPECT_EQ(result.exit_state.signal, std::nullopt);
  EXPECT_EQ(result.exit_state.ToString(), "exit code 3");
  EXPECT_FALSE(result.exit_state.success());
  EXPECT_FALSE(result.timed_out);
}

TEST_F(SubprocessTest, SaysWhichSignalKilledTheChild) {
  const RunResult result = Run(Shell("kill -SEGV $$"));
  EXPECT_EQ(result.exit_state.signal, SIGSEGV);
  EXPECT_EQ(result.exit_state.code, std::nullopt);
  EXPECT_EQ(result.exit_state.ToString(), "signal 11 (Segmentation fault)");
}

TEST_F(SubprocessTest, MegabytesThroughBothPipesDoNotDeadlock) {
  std::string input(3'000'000, 'x');
  for (size_t i = 0; i < input.size(); i += 80) input[i] = '\n';
  const RunResult result = Run(Shell("tee /dev/stderr"), {.input = input});
  EXPECT_TRUE(result.standard_output == input);
  EXPECT_TRUE(result.standard_error == input);
}

TEST_F(SubprocessTest, OutputBeyondTheLimitIsDroppedAndTheChildStillEnds) {
  const RunResult result = Run(Shell("head -c 1000000 /dev/zero"), {.max_output_bytes = 1'000});
  EXPECT_EQ(result.standard_output.size(), 1'000u);
  EXPECT_TRUE(result.exit_state.success());
}

TEST_F(SubprocessTest, ChildThatNeverReadsItsInputIsNoError) {
  const std::string input(1'000'000, 'x');
  const RunResult result = Run(Shell("exec <&-; exit 0"), {.input = input});
  EXPECT_TRUE(result.exit_state.success());
}

TEST_F(SubprocessTest, TimeoutKillsTheWholeGroup) {
  const int64_t before_ns = clock_.NowNs();
  const RunResult result = Run(Shell("sleep 1000 & echo $!; wait"), {.timeout_ns = kSecondNs / 5});
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit_state.signal, SIGKILL);
  EXPECT_LT(clock_.NowNs() - before_ns, 10 * kSecondNs);
  const std::string grandchild =
      result.standard_output.substr(0, result.standard_output.find('\n'));
  ASSERT_FALSE(grandchild.empty());
  for (int i = 0; i < 1'000 && IsAlive(grandchild); ++i) clock_.SleepNs(kSecondNs / 1'000);
  EXPECT_FALSE(IsAlive(grandchild));
}

TEST_F(SubprocessTest, GrandchildrenDoNotOutliveAChildThatEndsByItself) {
  const RunResult result = Run(Shell("sleep 1000 >/dev/null 2>&1 & echo $!"));
  EXPECT_TRUE(result.exit_state.success());
  const std::string grandchild =
      result.standard_output.substr(0, result.standard_output.find('\n'));
  ASSERT_FALSE(grandchild.empty());
  for (int i = 0; i < 1'000 && IsAlive(grandchild); ++i) clock_.SleepNs(kSecondNs / 1'000);
  EXPECT_FALSE(IsAlive(grandchild));
}

TEST_F(SubprocessTest, ChildSeesOnlyTheDescriptorsItWasGiven) {
  const UniqueFd leaky(::open("/dev/null", O_RDONLY));  // deliberately not close-on-exec
  const UniqueFd high(::fcntl(leaky.get(), F_DUPFD, 200));
  ASSERT_TRUE(leaky.valid() && high.valid());
  SubprocessOptions options = Shell("ls /proc/$$/fd");
  EXPECT_EQ(Run(options).standard_output, "0\n1\n2\n");
  options.inherited = {{.parent_fd = leaky.get(), .child_fd = 7}};
  EXPECT_EQ(Run(options).standard_output, "0\n1\n2\n7\n");
}

TEST_F(SubprocessTest, InheritedDescriptorsMaySwapNumbers) {
  int first[2];
  int second[2];
  ASSERT_EQ(::pipe2(first, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(second, O_CLOEXEC), 0);
  const UniqueFd first_out(first[0]), first_in(first[1]), second_out(second[0]),
      second_in(second[1]);
  SubprocessOptions options = Shell(fmt::format("echo a >&{}; echo b >&{}", second[1], first[1]));
  options.inherited = {{first[1], second[1]}, {second[1], first[1]}};
  ASSERT_TRUE(Run(options).exit_state.success());
  char text[2] = {};
  ASSERT_EQ(::read(first_out.get(), text, 2), 2);
  EXPECT_EQ(text[0], 'a');
  ASSERT_EQ(::read(second_out.get(), text, 2), 2);
  EXPECT_EQ(text[0], 'b');
}

TEST_F(SubprocessTest, LimitsHoldForWhatTheChildDoesAfterSpawn) {
  SubprocessOptions options = Shell("read go; ulimit -v; ulimit -t; ulimit -n; ulimit -c");
  options.limits = {.address_space_bytes = int64_t{1} << 30,
                    .cpu_seconds = 17,
                    .file_bytes = std::nullopt,
                    .open_files = 99};
  absl::StatusOr<Subprocess> child = Subprocess::Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  ASSERT_EQ(::write(child->standard_input().get(), "go\n", 3), 3);
  ASSERT_TRUE(child->Wait(clock_, 20 * kSecondNs).value()->success());
  char text[100] = {};
  ASSERT_GT(::read(child->standard_output().get(), text, sizeof text - 1), 0);
  EXPECT_STREQ(text, "1048576\n17\n99\n0\n");
}

TEST_F(SubprocessTest, WaitTellsRunningFromEndedAndRepeatsItsAnswer) {
  absl::StatusOr<Subprocess> child = Subprocess::Spawn(Shell("read line; exit 5"));
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(child->Wait(clock_, 0).value(), std::nullopt);
  EXPECT_EQ(child->Wait(clock_, kSecondNs / 100).value(), std::nullopt);
  child->standard_input().Reset();
  EXPECT_EQ(child->Wait(clock_, -1).value()->code, 5);
  EXPECT_EQ(child->Wait(clock_, 0).value()->code, 5);
  child->Kill(SIGKILL);  // must not reach whoever has the number now
}

TEST_F(SubprocessTest, DestructorLeavesNoProcess) {
  std::string pid;
  {
    absl::StatusOr<Subprocess> child = Subprocess::Spawn(Shell("sleep 1000"));
    ASSERT_TRUE(child.ok()) << child.status();
    pid = std::to_string(child->pid());
    EXPECT_TRUE(IsAlive(pid));
  }
  EXPECT_FALSE(IsAlive(pid));
}

TEST_F(SubprocessTest, EnvironmentAndFolderAreThoseAskedFor) {
  SubprocessOptions options = Shell("pwd; echo $HONE_TEST_NAME; echo $HOME");
  options.environment = {"HONE_TEST_NAME=v"};
  options.working_directory = "/proc";
  EXPECT_EQ(Run(options).standard_output, "/proc\nv\n\n");
}

TEST_F(SubprocessTest, MissingProgramIsAnErrorThatNamesIt) {
  SubprocessOptions options;
  options.argv = {"/nonexistent/hone-builder"};
  EXPECT_EQ(RunSubprocess(options, {}, clock_).status(),
            absl::NotFoundError("cannot start program '/nonexistent/hone-builder': "
                                "No such file or directory"));
}

TEST_F(SubprocessTest, ReportsTimeAndMemoryUsed) {
  const RunResult result = Run(Shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"));
  EXPECT_GT(result.exit_state.user_ns + result.exit_state.system_ns, 0);
  EXPECT_GT(result.exit_state.peak_memory_bytes, 100'000);
}

TEST_F(SubprocessTest, IgnoredSignalsAreDefaultInTheChild) {
  const auto previous = std::signal(SIGTERM, SIG_IGN);
  const RunResult result = Run(Shell("kill -TERM $$; echo survived"));
  std::signal(SIGTERM, previous);
  EXPECT_EQ(result.exit_state.signal, SIGTERM);
}

}  // namespace
}  // namespace hone
