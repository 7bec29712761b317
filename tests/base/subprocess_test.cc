#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "fmt/core.h"
#include "gmock/gmock.h"
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
  const RunResult result = Run(Shell("sleep 1000 & echo $!; wait"), {.timeout_ns = 2 * kSecondNs});
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

/// A child that sleeps, and who was told that it cannot be killed.
class UnkillableTest : public SubprocessTest {
 protected:
  SubprocessOptions Sleeper(int64_t patience_ns) {
    SubprocessOptions options = Shell("exec sleep 1000");
    options.on_unkillable = [this](pid_t pid) {
      told_.push_back(pid);
      // The destructor is still at it.
      EXPECT_TRUE(std::ifstream(fmt::format("/proc/{}/stat", pid)).is_open());
      if (told_fd_ >= 0) {
        EXPECT_EQ(::write(told_fd_, &pid, sizeof pid), ssize_t{sizeof pid});
      }
    };
    options.kill_patience_ns = patience_ns;
    return options;
  }
  pid_t Destroy(int64_t patience_ns) {
    absl::StatusOr<Subprocess> child = Subprocess::Spawn(Sleeper(patience_ns));
    EXPECT_TRUE(child.ok()) << child.status();
    return child.ok() ? child->pid() : -1;
  }

  std::vector<pid_t> told_;
  int told_fd_ = -1;
};

TEST_F(UnkillableTest, WithoutPatienceItIsToldOnceAndTheChildReaped) {
  ::testing::internal::CaptureStderr();
  const pid_t pid = Destroy(0);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(told_, std::vector{pid});
  EXPECT_FALSE(std::ifstream(fmt::format("/proc/{}/stat", pid)).is_open());
  EXPECT_THAT(said, ::testing::HasSubstr(fmt::format("process {} ('/bin/sh') was killed", pid)));
}

TEST_F(UnkillableTest, AChildThatEndsInTimeIsNotTold) {
  const pid_t pid = Destroy(600 * kSecondNs);
  EXPECT_FALSE(std::ifstream(fmt::format("/proc/{}/stat", pid)).is_open());
  EXPECT_TRUE(told_.empty());
}

TEST_F(UnkillableTest, ANeedlessKillTellsNothing) {
  SubprocessOptions options = Sleeper(0);
  options.argv = Shell("exit 3").argv;
  absl::StatusOr<Subprocess> child = Subprocess::Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  if (child->exit_fd() < 0) GTEST_SKIP() << "this kernel has no pidfd to see its end by";
  pollfd ended{.fd = child->exit_fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ended, 1, 20'000), 1);
  EXPECT_EQ(child->End().value().code, 3);
  EXPECT_TRUE(told_.empty());
}

// Held where it dies by a tracer, as by a dead disk, until it has been told of. Who ends it is a
// process of its own: a tracer's own children seem to have ended when they stop.
TEST_F(UnkillableTest, OneThatHoldsOutIsToldOfAndWaitedFor) {
  int up[2], down[2];
  ASSERT_EQ(::pipe2(up, O_CLOEXEC) | ::pipe2(down, O_CLOEXEC), 0);
  const UniqueFd hear(up[0]), say_up(up[1]), wait(down[0]), go(down[1]);
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    absl::StatusOr<Subprocess> child = Subprocess::Spawn(Sleeper(kSecondNs / 20));
    pid_t pid = child.ok() ? child->pid() : 0;
    told_fd_ = say_up.get();
    char byte = 0;
    if (::write(told_fd_, &pid, sizeof pid) != sizeof pid || ::read(wait.get(), &byte, 1) != 1) {
      ::_exit(2);
    }
    const absl::StatusOr<ExitState> ended = child->End();
    ::_exit(ended.ok() && ended->signal == SIGKILL && told_.size() == 1 ? 0 : 1);
  }
  pid_t pid = 0;
  ASSERT_EQ(::read(hear.get(), &pid, sizeof pid), ssize_t{sizeof pid});
  const auto stop_at_exit = reinterpret_cast<void*>(std::uintptr_t{PTRACE_O_TRACEEXIT});
  const bool traced = ::ptrace(PTRACE_SEIZE, pid, nullptr, stop_at_exit) == 0;
  const std::string why = std::strerror(errno);
  ASSERT_EQ(::write(go.get(), "g", 1), 1);
  int status = 0;
  if (traced) {
    pid_t told = 0;
    pollfd news{.fd = hear.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&news, 1, 20'000), 1) << "nobody was told";
    if (news.revents != 0) {
      EXPECT_EQ(::read(hear.get(), &told, sizeof told), ssize_t{sizeof told});
    }
    EXPECT_EQ(told, pid);
    EXPECT_EQ(::waitpid(parent, &status, WNOHANG), 0) << "it waits on";
    EXPECT_EQ(::ptrace(PTRACE_CONT, pid, nullptr, nullptr), 0);
    while (::waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
    }
  }
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  if (!traced) GTEST_SKIP() << "this machine refuses ptrace: " << why;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(UnkillableTest, ATimeoutThatKillsTellsAsWell) {
  const RunResult result = Run(Sleeper(0), {.timeout_ns = kSecondNs / 20});
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit_state.signal, SIGKILL);
  EXPECT_EQ(told_.size(), 1u);
}

// Who starts us may have had it ignored; then the kernel reaps children.
TEST_F(UnkillableTest, WhereTheKernelReapsChildrenNobodyIsTold) {
  const auto previous = std::signal(SIGCHLD, SIG_IGN);
  absl::StatusOr<Subprocess> child = Subprocess::Spawn(Sleeper(600 * kSecondNs));
  ASSERT_TRUE(child.ok()) << child.status();
  child->Kill(SIGKILL);
  const absl::StatusCode code = child->Wait(clock_, 20 * kSecondNs).status().code();
  std::signal(SIGCHLD, previous);
  EXPECT_NE(code, absl::StatusCode::kOk) << "nothing is known of its end";
  EXPECT_TRUE(told_.empty());
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
