// The live table of hone tune on a real terminal, and what happens when that goes away.

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/unique_fd.h"
#include "db/log_file.h"
#include "tests/client/screen.h"
#include "tests/client/small_tuning.h"

namespace hone::client {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::HoneProgram;
using testing::kMillisecondNs;
using testing::Screen;

/// A program that has a pseudo-terminal for its controlling terminal and its three streams, as one
/// that a user has typed. What is left of it is killed at the end.
class OnTerminal {
 public:
  OnTerminal(std::vector<std::string> words, const winsize& size,
             const std::string& program = HoneProgram()) {
    words.insert(words.begin(), program);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::array<std::string, 2> variables = {"PATH=/usr/bin:/bin", "HOME=/dev/null"};
    std::array<char*, 3> environment = {variables[0].data(), variables[1].data(), nullptr};
    winsize given = size;
    int master = -1;
    pid_ = ::forkpty(&master, nullptr, nullptr, &given);
    if (pid_ == 0) {
      ::execve(arguments[0], arguments.data(), environment.data());
      ::_exit(127);
    }
    EXPECT_GT(pid_, 0);
    master_ = UniqueFd(master);
    ::fcntl(master_.get(), F_SETFD, FD_CLOEXEC);
  }
  ~OnTerminal() {
    if (ended_) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

  /// What it writes within a moment; nothing: it has closed the terminal.
  std::optional<std::string> Read() const {
    pollfd event{.fd = master_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&event, 1, 100) <= 0) return "";
    std::string text(4096, '\0');
    const ssize_t got = ::read(master_.get(), text.data(), text.size());
    if (got <= 0) return std::nullopt;
    text.resize(static_cast<size_t>(got));
    return text;
  }
  void Resize(const winsize& size) const { ::ioctl(master_.get(), TIOCSWINSZ, &size); }
  /// The window is closed.
  void Close() { master_.Reset(); }

  /// Its exit code; nothing while it runs, -1 for a signal.
  std::optional<int> ExitCode() {
    int status = 0;
    if (ended_ || ::waitpid(pid_, &status, WNOHANG) != pid_) return code_;
    ended_ = true;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return code_;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd master_;
  bool ended_ = false;
  std::optional<int> code_;
};

class TuneTerminalTest : public testing::SmallTuning {
 protected:
  /// Waits for the end of it.
  std::optional<int> Await(OnTerminal& tuning) const {
    const int64_t until_ns = clock_.NowNs() + 60'000 * kMillisecondNs;
    while (!tuning.ExitCode() && clock_.NowNs() < until_ns) clock_.SleepNs(20 * kMillisecondNs);
    return tuning.ExitCode();
  }
};

int64_t CountOf(const std::vector<std::string>& lines, const std::string& text) {
  return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(text) != std::string::npos;
  });
}

TEST_F(TuneTerminalTest, TheTableStaysOneAndWholeOnAnOrdinaryTerminal) {
  constexpr unsigned short kColumns = 80, kRows = 24;
  OnTerminal tuning(Words({"--trials", "60", "--seconds", "50"}), {kRows, kColumns, 0, 0});
  Screen screen(kColumns, kRows);
  int frames = 0, wrapped_before = 0;
  std::string kept;
  std::vector<std::string> last;
  while (const auto text = tuning.Read()) {
    kept += *text;
    for (;;) {
      // What is on the screen when a new frame begins, which is by going up over it.
      const size_t escape = kept.find("\x1b[", kept.starts_with('\x1b') ? 1 : 0);
      if (escape == std::string::npos) break;
      screen.Write(kept.substr(0, escape));
      kept.erase(0, escape);
      if (kept.starts_with("\x1b[J")) continue;
      last = screen.Lines();
      if (++frames == 1) wrapped_before = screen.wrapped();
      ASSERT_EQ(CountOf(last, "best us"), 1) << ::testing::PrintToString(last);
      ASSERT_EQ(CountOf(last, "candidates"), 1) << ::testing::PrintToString(last);
    }
  }
  EXPECT_EQ(screen.wrapped(), wrapped_before) << ::testing::PrintToString(last);
  EXPECT_GE(frames, 3);
  EXPECT_THAT(last, Contains(ContainsRegex("^ +[0-9.]+ +[0-9.]+ x .*  x1   [a-z]")).Times(3));
  EXPECT_THAT(last,
              Contains(ContainsRegex("^[0-9]+:[0-9]+, (about )?[0-9]+:[0-9]+ left  [0-9]+ cand")));
  EXPECT_THAT(
      last,
      Contains(ContainsRegex("model [0-9.]+ ms measured by default, [0-9.]+ ms predicted now")));
  // Its place is taken by the result's table.
  screen.Write(kept);
  const std::vector<std::string> end = screen.Lines();
  EXPECT_EQ(CountOf(end, "best us"), 1) << ::testing::PrintToString(end);
  EXPECT_EQ(CountOf(end, " left  "), 0);
  EXPECT_EQ(Await(tuning), 0);
}

TEST_F(TuneTerminalTest, FailuresAreToldByKindForEachTaskAndForAll) {
  InstallLyingBuilder();
  OnTerminal tuning(Words({"--trials", "30", "--seconds", "50", "--json", "--cache-mb", "0"}),
                    {24, 80, 0, 0}, program_);
  Screen screen(80, 24);
  while (const auto text = tuning.Read()) {
    screen.Write(text->substr(0, text->find('{')));
    if (text->find('{') != std::string::npos) break;  // the result
  }
  const std::vector<std::string> lines = screen.Lines();
  EXPECT_EQ(CountOf(lines, "best us"), 1) << ::testing::PrintToString(lines);
  EXPECT_THAT(lines, Contains(ContainsRegex("  x1   .*…  \\([0-9]+ wrong_answer\\)$")).Times(2));
  EXPECT_THAT(lines, Contains(ContainsRegex("^failed: [0-9]+ wrong_answer$")));
}

TEST_F(TuneTerminalTest, AClosedTerminalLeavesItTuning) {
  OnTerminal tuning(Words({"--trials", "150"}), {24, 80, 0, 0});
  const int64_t until_ns = clock_.NowNs() + 40'000 * kMillisecondNs;
  std::string said;
  while (said.find("best us") == std::string::npos && clock_.NowNs() < until_ns)
    said += tuning.Read().value_or("");
  ASSERT_THAT(said, HasSubstr("best us"));
  const size_t before = ReadLog().content.size();
  ASSERT_FALSE(tuning.ExitCode());
  tuning.Close();
  AwaitAttempts(before + 20);
  EXPECT_EQ(Await(tuning), 0) << "it ends as it would have";
  const auto log = db::OpenLog(log_, {.mode = db::OpenMode::kRead});
  ASSERT_TRUE(log.ok()) << log.status();
  const auto sessions = (*log)->Sessions();
  ASSERT_TRUE(sessions.ok() && sessions->size() == 1);
  const auto events = (*log)->EventsOf(sessions->front().session.id);
  ASSERT_TRUE(events.ok() && !events->empty());
  EXPECT_EQ(events->back().type, "finished");
}

}  // namespace
}  // namespace hone::client
